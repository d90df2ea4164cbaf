"""The values that coremltools infers of single operations, against those of the executor."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from support.coreml_models import tools

TOLERANCE = {"float16": 2e-3, "float32": 2e-6}

WRONG = {
    "cumsum": "it fails on an axis that is an array, and where a sum is exclusive",
    "scatter_along_axis": "it ignores the mode",
    "squeeze": "of a matrix of one element it gives a row, or fails",
}
"""Operators of which coremltools infers wrong values: those where it differs do not count."""

ORDERED = {"argsort", "topk"}
"""Operators that may give equal elements in any order."""

_TARGETS = {
    "CoreML5": "iOS15", "CoreML6": "iOS16", "CoreML7": "iOS17", "CoreML8": "iOS18",
    "CoreML9": "iOS26",
}  # fmt: skip


def apple_values(op: str, given: Mapping[str, Any], target: str) -> list[np.ndarray] | None:
    """What coremltools itself infers an operator to give; None where it infers nothing.

    Args:
        op: The operator.
        given: Its inputs, all of them constant.
        target: Deployment target.
    """
    ct = tools()
    from coremltools.converters.mil import Builder
    from coremltools.converters.mil.mil import Function

    # coremltools hands a truth value on to NumPy, of which 2.5 takes only those of Python.
    given = {
        name: bool(value) if isinstance(value, np.bool_) else value for name, value in given.items()
    }
    try:
        with (
            Function({}, opset_version=getattr(ct.target, target)),
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
        ):
            warnings.simplefilter("ignore")
            result = getattr(Builder, op)(**given)
            found = result if isinstance(result, (list, tuple)) else [result]
            values = [_inferred(each) for each in found]
    except (TypeError, ValueError):
        if op not in WRONG:
            raise
        return None
    if any(value is None for value in values):
        return None
    return [np.asarray(value) for value in values]


def _inferred(var: Any) -> Any:
    """The value of a result; what makes weights has it apart, as it is not to be kept."""
    if not var.op.op_type.startswith("constexpr_") or var.val is not None:
        return var.val
    made = var.op.materialized_val_inference()
    outputs = var.op.outputs
    return made[outputs.index(var)] if isinstance(made, tuple) else made


class Proof:
    """Compares each operation that the executor runs with what coremltools infers of it.

    Attributes:
        agreed: Operators of which coremltools infers what the executor gives.
        differing: What differs, as text.
    """

    def __init__(self) -> None:
        self.agreed: set[str] = set()
        self.differing: list[str] = []

    def __call__(self, op: str, given: dict[str, Any], found: tuple[Any, ...], opset: str) -> None:
        """Compare one operation; one with values of a state or a list is left out."""
        values = [each for value in given.values() for each in _flat(value)]
        if not all(isinstance(each, (np.ndarray, np.generic, str)) for each in values):
            return
        wanted = apple_values(op, given, _TARGETS[opset])
        if wanted is None:
            return
        fault = _differences(op, given, [np.asarray(each) for each in found], wanted)
        if not fault:
            self.agreed.add(op)
        elif op not in WRONG:
            self.differing.append(f"{op}: {fault}")


def _flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _differences(
    op: str, given: Mapping[str, Any], ours: list[np.ndarray], theirs: list[np.ndarray]
) -> str:
    """Describe how values differ; empty where they agree."""
    if op in ORDERED and len(given["x"]):
        # Places of equal elements are compared by what is there.
        axis = int(given.get("axis", -1))
        ours, theirs = (
            [
                np.take_along_axis(given["x"], each, axis) if each.dtype.kind == "i" else each
                for each in values
            ]
            for values in (ours, theirs)
        )
    return "".join(_fault(a, b) for a, b in zip(ours, theirs, strict=True))


def _fault(ours: np.ndarray, theirs: np.ndarray) -> str:
    if ours.shape != theirs.shape:
        return f"{ours.shape}, not {theirs.shape}"
    numbers = np.abs(theirs * 1.0)
    size = float(numbers[np.isfinite(numbers)].max(initial=1.0))
    bound = TOLERANCE.get(ours.dtype.name, 0.0) * size
    same = np.isclose(ours * 1.0, theirs * 1.0, rtol=bound, atol=bound, equal_nan=True)
    return "" if same.all() else f"{ours[~same][:3]}, not {theirs[~same][:3]}"
