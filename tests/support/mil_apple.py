"""The values that coremltools infers of single operations, against those of the executor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from support.coreml_models import tools
from support.mil import TOLERANCE

APPLE_DIFFERS = {
    "argsort": "it gives equal elements in any order",
    "conv_transpose": "it infers none",
}

_TARGETS = {f"CoreML{5 + i}": target for i, target in enumerate(("iOS15", "iOS16", "iOS17", "iOS18", "iOS26"))}


class Proof:
    """Compares each operation that it is told of; keeps which operators agreed.

    Attributes:
        agreed: Operators of which coremltools infers what the executor gives.
        differing: What differs, as text.
    """

    def __init__(self) -> None:
        self.agreed: set[str] = set()
        self.differing: list[str] = []

    def __call__(
        self, op: str, given: dict[str, Any], found: tuple[Any, ...], opset: str
    ) -> None:
        wanted = apple_value(op, given, opset)
        if wanted is None:
            return
        for ours, theirs in zip(found, wanted, strict=True):
            fault = _fault(np.asarray(ours), np.asarray(theirs))
            if fault:
                self.differing.append(f"{op}: {fault}")
                return
        self.agreed.add(op)


def apple_value(op: str, given: Mapping[str, Any], opset: str) -> list[Any] | None:
    """What coremltools infers an operation to give; None where it infers nothing."""
    ct = tools()
    from coremltools.converters.mil import Builder
    from coremltools.converters.mil.mil import Function

    try:
        with Function({}, opset_version=getattr(ct.target, _TARGETS[opset])):
            result = getattr(Builder, op)(**given)
            results = result if isinstance(result, (list, tuple)) else [result]
            values = [each.val for each in results]
    except Exception as error:
        print("apple", op, type(error), str(error)[:200])
        return None
    return None if any(value is None for value in values) else values


def _fault(ours: np.ndarray, theirs: np.ndarray) -> str:
    if ours.shape != theirs.shape:
        return f"{ours.shape}, not {theirs.shape}"
    bound = TOLERANCE.get(ours.dtype.name, 0.0) * max(1.0, float(np.abs(ours * 1.0).max(initial=0)))
    same = np.isclose(ours * 1.0, theirs * 1.0, rtol=bound, atol=bound, equal_nan=True)
    return "" if same.all() else f"{ours.ravel()[~same.ravel()][:3]}, not {theirs.ravel()[~same.ravel()][:3]}"
