"""The numeric verdict of a conversion: two engines, the same inputs, one line an output.

An element passes if ``|target - source| <= atol + rtol * |source|``. Where no
tolerance is given, `atol` is the figure of the dtype below times the root mean
square of the source's output, so that it means the same for logits and for the
probabilities of a thousand classes, and at least the dtype's rounding of values
near one, so that an output that is zero but for rounding does not fail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np

from serde.checking.engines import Engine, run_engine
from serde.checking.inputs import random_inputs, resolve_dims
from serde.errors import CheckError
from serde.relay.model import RelayModel
from serde.report import OutputVerdict, Report
from serde.weights import Array, dtype_name

__all__ = ["DEFAULT_TOLERANCES", "Tolerance", "compare", "judge_output"]


DEFAULT_TOLERANCES: Final = MappingProxyType(
    {
        "float64": (1e-9, 2.0**-52),
        "float32": (1e-4, 2.0**-23),
        "float16": (3e-2, 2.0**-10),
        "bfloat16": (2e-1, 2.0**-7),
    }
)
"""For each dtype the tolerance relative to the output's scale, and the least absolute one.

MXNet differs from itself, with oneDNN and without, by up to 7e-6 of an output's
deviation on the nets of the Gluon zoo; 1e-4 leaves room for other algorithms of
convolution and is far below what any error of conversion does. A float16 rounds
to 5e-4; over some hundred layers, and at the largest of many elements, that
grows to about 3e-2, and to eight times as much for a bfloat16. Integers and
booleans must be equal.
"""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a check accepts; a part that is None follows from the dtype of the output.

    Attributes:
        atol: Absolute tolerance, in the unit of the output.
        rtol: Tolerance relative to each element of the source's output.
    """

    atol: float | None = None
    rtol: float | None = None

    def resolve(self, reference: Array, dtype: str) -> tuple[float, float]:
        """Return the absolute and relative tolerance for an output computed in `dtype`."""
        relative, least = DEFAULT_TOLERANCES.get(dtype, (0.0, 0.0))
        atol = max(relative * _root_mean_square(reference), least)
        return (
            atol if self.atol is None else self.atol,
            relative if self.rtol is None else self.rtol,
        )


def compare(
    reference: Engine,
    candidate: Engine,
    model: RelayModel,
    *,
    report: Report,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    float16: bool = False,
    seed: int = 0,
) -> None:
    """Run two engines on the same inputs and add a verdict for each output to the report.

    The verdict of an output is that of its worst run.

    Args:
        reference: Runs the source.
        candidate: Runs the target.
        model: The source as Relay: names, types and what limits the inputs.
        report: Gets ``verdicts``, ``engines`` and notes.
        runs: Number of sets of inputs.
        tolerance: What is accepted.
        dims: Lengths of dynamic dimensions; see :func:`serde.checking.inputs.resolve_dims`.
        float16: The target was asked to compute in float16: inputs are values that float16
            holds, a float32 output may come as float16, and its tolerance is float16's.
        seed: Seed of the inputs.

    Raises:
        CheckError: An engine failed, or the source has no outputs.
        OptionError: `dims` names a dimension that does not exist.
    """
    report.engines = (reference.name, candidate.name)
    lengths = resolve_dims(model, dims)
    if lengths:
        sizes = ", ".join(f"{name}={length}" for name, length in lengths.items())
        report.notes.append(f"dynamic dimensions were checked at {sizes}")
    verdicts: dict[int, OutputVerdict] = {}
    places = _places(reference.outputs, candidate.outputs)
    for run in range(max(1, runs)):
        inputs = random_inputs(model, seed=(seed, run), lengths=lengths, float16=float16)
        expected = run_engine(reference, inputs)
        found = run_engine(candidate, inputs)
        for index, (name, value) in enumerate(zip(reference.outputs, expected, strict=True)):
            place = places[index]
            other = None if place is None else found[place]
            verdict = judge_output(name, value, other, tolerance or Tolerance(), float16=float16)
            verdicts[index] = _worse(verdicts.get(index), verdict)
            note = f"output {name} of the source is not finite everywhere"
            if note not in report.notes and not _all_finite(value):
                report.notes.append(note)
    if not verdicts:
        raise CheckError(f"{reference.name}: the source has no outputs to compare")
    report.verdicts += verdicts.values()


def _places(names: Sequence[str], others: Sequence[str]) -> list[int | None]:
    """Return where each output stands among the others; those of one name go by their order."""
    left: dict[str, list[int]] = {}
    for place, name in enumerate(others):
        left.setdefault(name, []).append(place)
    return [left[name].pop(0) if left.get(name) else None for name in names]


def judge_output(
    name: str,
    reference: Array,
    candidate: Array | None,
    tolerance: Tolerance,
    *,
    float16: bool = False,
) -> OutputVerdict:
    """Compare one output of both models; a target without it (None) does not pass.

    NaN must meet NaN and an infinity the same infinity; elsewhere they are an
    infinite difference.
    """
    dtype = dtype_name(reference.dtype)
    narrow = float16 and dtype == "float32"
    atol, rtol = tolerance.resolve(reference, "float16" if narrow else dtype)
    shape = () if candidate is None else candidate.shape
    found = "missing" if candidate is None else dtype_name(candidate.dtype)
    verdict = OutputVerdict(
        output=name,
        shapes=(reference.shape, shape),
        dtypes=(dtype, found),
        max_abs=math.inf,
        max_rel=math.inf,
        cosine=math.nan,
        atol=atol,
        rtol=rtol,
        passed=False,
    )
    if candidate is None or shape != reference.shape:
        return verdict
    left, right = _as_float64(reference), _as_float64(candidate)
    difference = _difference(reference, candidate, left, right)
    finite = np.isfinite(left)
    size = np.where(finite, np.abs(left), 0.0)
    within = bool(np.all(difference <= atol + rtol * size))
    same_dtype = found == dtype or (narrow and found == "float16")
    both = finite & np.isfinite(right)
    max_abs = float(difference.max(initial=0.0))
    return replace(
        verdict,
        max_abs=max_abs,
        max_rel=_ratio(max_abs, float(size.max(initial=0.0))),
        cosine=_cosine(left[both], right[both]),
        passed=within and same_dtype,
    )


def _difference(reference: Array, candidate: Array, left: Array, right: Array) -> Array:
    """Return absolute differences: 0 for like infinities and NaNs, infinite for unlike ones."""
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(right - left)
    alike = (left == right) | (np.isnan(left) & np.isnan(right))
    if reference.dtype.kind in "iu" and candidate.dtype.kind in "iu":
        # Integers beyond 2**53 may differ and yet be one float64.
        alike = reference == candidate
        difference = np.maximum(difference, 1.0)
    return np.where(alike, 0.0, np.where(np.isnan(difference), np.inf, difference))


def _worse(known: OutputVerdict | None, new: OutputVerdict) -> OutputVerdict:
    """Return the verdict of the worse run, with the worst figures of both; NaN is the worst."""
    if known is None:
        return new
    worst = min(known, new, key=lambda verdict: (verdict.passed, -verdict.max_abs))
    return replace(
        worst,
        max_abs=max(known.max_abs, new.max_abs),
        max_rel=max(known.max_rel, new.max_rel),
        cosine=float(np.minimum(known.cosine, new.cosine)),
    )


def _as_float64(value: Array) -> Array:
    return np.asarray(value, dtype=np.float64)


def _all_finite(value: Array) -> bool:
    return value.dtype.kind in "iub" or bool(np.isfinite(_as_float64(value)).all())


def _root_mean_square(value: Array) -> float:
    finite = _as_float64(value)
    finite = finite[np.isfinite(finite)]
    largest = float(np.abs(finite).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    return largest * math.sqrt(float(np.mean(np.square(finite / largest))))


def _ratio(part: float, whole: float) -> float:
    if part == 0.0:
        return 0.0
    return part / whole if whole > 0.0 else math.inf


def _cosine(left: Array, right: Array) -> float:
    """Return the cosine of two flat vectors; 1 if both are zero or empty, 0 if one is zero."""
    scales = [float(np.abs(side).max(initial=0.0)) for side in (left, right)]
    if 0.0 in scales:
        return float(scales[0] == scales[1])
    a, b = left / scales[0], right / scales[1]
    norms = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
    return max(-1.0, min(1.0, float(a @ b) / norms))
