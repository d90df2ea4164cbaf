"""What the figures of one output amount to.

**The quick rule** compares the target with the source. An element passes if
``|target - source| <= atol + rtol * |source|``; where no tolerance is given, both follow from
the dtype in which is computed and from the output's deviation. It is all there is where the
caller gives a tolerance, or wants no yardstick. With a yardstick it only spares the exact run,
where both agree to some roundings: nets of the zoo differ by 1e-6 to 1e-5 of their deviation, and
a tolerance of 1e-4 lets through what is ten times that. The exact runs of 46 nets took 138 s,
77 of them for Faster R-CNN alone, and their conversions 124 s.

**The yardstick.** E is the exact result. With ``d`` the root mean square of differences and
their largest one, target T is right if ``d(T, E) <= factor * d(S, E) + floor`` in both norms,
where d(S, E) is the larger one of the source's distance and that of its own Relay with the
rounding of its dtypes; with float16 rounding after every operator if the target computes so.
The mean is steady, the largest shows faults of single elements and borders.

Factor. Of 46 nets of the zoo, d(T, E) / d(S, E) was 0.5 to 1.3 in float32, and about 1.6 at most
in float16; against the interpreter alone it was up to 4.4 (ICNet). 8 and 4 are about twice that.
An output of k elements is a sample of the rounding, and a handful may be near by chance, so it is
multiplied by 1 + 9/k.

Floor. In float32, some roundings of the output's deviation and of its magnitude: what rounding
makes of the last operator alone, and too little to hide a fault. In 16 bits these were 4e-3 of a
deviation, and hid one: there the distance that rounding the exact output makes is measured, and
counts beside the source's own. Below the normal numbers of a dtype steps do not shrink any more,
and the floor is a step.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Final

import numpy as np

from serde.checking.distance import (
    Distance,
    cosine,
    deviation,
    difference,
    distance,
    epsilon,
    ratio,
    smallest,
)
from serde.checking.tolerance import Tolerance
from serde.core import Array, OutputVerdict, dataclass, dtype_name, numpy_dtype, replace

__all__ = [
    "DEFAULT_TOLERANCES", "OTHER_SHAPE", "RANDOM", "USELESS", "Rule", "Tolerance", "fits",
    "floor_of", "judge_output", "last_rounding", "resolve_tolerance", "silence", "within",
]  # fmt: skip

DEFAULT_TOLERANCES: Final = MappingProxyType(
    {"float64": 1e-9, "float32": 1e-4, "float16": 3e-2, "bfloat16": 2e-1}
)
"""For each dtype the tolerance of the quick rule without a yardstick, relative to the deviation.

MXNet differs from itself, with oneDNN and without, by up to 7e-6 of an output's
deviation on the nets of the Gluon zoo; 1e-4 leaves room for other algorithms of
convolution. A float16 rounds to 5e-4; over some hundred layers, and at the largest of many
elements, that grows to about 3e-2, and to eight times as much for a bfloat16. Integers and
booleans must be equal.
"""

_QUICK_ROUNDINGS = MappingProxyType({"float16": 1, "bfloat16": 1})
_QUICK = 16
"""Roundings by which target and source may differ where an exact run can follow.

Sixteen of float16 are 8e-3 of the deviation, as much as a fault.
"""

_FACTORS = MappingProxyType({"float16": 4.0, "bfloat16": 4.0})
_FACTOR = 8.0
_FEW = 9.0
_FLOOR_ROUNDINGS = 4

USELESS = 0.1
"""Part of an output's deviation beyond which a distance leaves nothing that can be used."""

RANDOM = "it is drawn at random"
"""Remark on an output that is made of random numbers."""

OTHER_SHAPE = "another shape"
"""Remark on an output of another shape than the source's."""

_SILENT_ROUNDINGS = 4


def resolve_tolerance(given: Tolerance, reference: Array, dtype: str) -> tuple[float, float]:
    """Return the absolute and relative tolerance for an output computed in `dtype`.

    A relative one is for rounding, and integers do not round: one of a thousand is not near it.
    """
    relative = DEFAULT_TOLERANCES.get(dtype, 0.0)
    whole = dtype == "bool" or "int" in dtype
    return (
        _absolute(reference, dtype, relative) if given.atol is None else given.atol,
        relative if given.rtol is None or whole else given.rtol,
    )


def _absolute(reference: Array, dtype: str, relative: float) -> float:
    """Return a part of the deviation, but not less than the rounding of the elements."""
    least = epsilon(dtype) * _magnitude(reference) + _step(reference, dtype)
    return max(relative * deviation(reference), least) if relative else 0.0


def _step(reference: Array, dtype: str) -> float:
    """Return half a step of the smallest numbers, unless it is all that there is of an output."""
    return min(smallest(dtype) / 2, USELESS * deviation(reference))


def _magnitude(value: Array) -> float:
    finite = np.abs(np.asarray(value, np.float64))
    return float(finite[np.isfinite(finite)].max(initial=0.0))


@dataclass(frozen=True, slots=True)
class Rule:
    """How outputs are judged.

    Attributes:
        tolerance: What the caller accepts.
        float16: Whether a float32 of the source may be computed in float16.
        quick: Whether an exact run follows what does not agree at once.
        wide_flag: What a conversion calls the option that leaves nodes in float32.
    """

    tolerance: Tolerance = Tolerance()
    float16: bool = False
    quick: bool = False
    wide_flag: str = ""

    def computed_dtype(self, dtype: str, found: str) -> str:
        """Return the dtype in which an output is computed, by those in which it comes."""
        if self.float16 and dtype == "float32":
            return "float16"
        narrow = [each for each in (dtype, found) if each in ("float16", "bfloat16")]
        return narrow[0] if narrow and "float" in dtype else dtype

    def tolerances(self, reference: Array, dtype: str) -> tuple[float, float]:
        """Return the absolute and relative tolerance of the quick rule."""
        if self.tolerance.given or not self.quick or not epsilon(dtype):
            return resolve_tolerance(self.tolerance, reference, dtype)
        few = _QUICK_ROUNDINGS.get(dtype, _QUICK) * epsilon(dtype) / 2
        return few * deviation(reference) + _step(reference, dtype), 0.0


def judge_output(
    name: str, reference: Array, candidate: Array | None, rule: Rule, target: str | None = None
) -> OutputVerdict:
    """Compare one output of both models by the quick rule; None for a target without it.

    NaN must meet NaN and an infinity the same infinity; elsewhere they are an
    infinite difference. Integers may come in another width, floats in fewer bits where the
    source or the target computes in them.
    """
    dtype = dtype_name(reference.dtype)
    found = "missing" if candidate is None else dtype_name(candidate.dtype)
    atol, rtol = rule.tolerances(reference, rule.computed_dtype(dtype, found))
    shape = () if candidate is None else candidate.shape
    verdict = OutputVerdict(
        output=name, shapes=(reference.shape, shape), dtypes=(dtype, found), max_abs=math.inf,
        max_rel=math.inf, cosine=math.nan, atol=atol, rtol=rtol, passed=False, target=target,
    )  # fmt: skip
    if candidate is None:
        return replace(verdict, remark="the target has no such output")
    if shape != reference.shape:
        return replace(verdict, remark=OTHER_SHAPE)
    apart = difference(reference, candidate)
    left = np.asarray(reference, np.float64)
    size = np.where(np.isfinite(left), np.abs(left), 0.0)
    most = float(apart.max(initial=0.0))
    agrees = bool(np.all(apart <= atol + rtol * size))
    fitting = fits(dtype, found, rule.float16)
    return replace(
        verdict,
        max_abs=most,
        max_rel=ratio(most, float(size.max(initial=0.0))),
        cosine=cosine(reference, candidate),
        passed=agrees and fitting,
        remark="" if fitting else "another dtype",
    )


def fits(dtype: str, found: str, float16: bool) -> bool:
    """Whether values of one dtype may come as another one.

    Formats have not all dtypes: Core ML's inputs and outputs are float32 or float16, and int32.
    """
    if dtype == found:
        return True
    if {dtype, found} == {"float16", "float32"}:
        return float16 or dtype == "float16"
    if found == "int32" and dtype in ("bool", "int8", "int16", "uint8", "uint16"):
        return True
    return {dtype, found} == {"int64", "int32"}


def silence(reference: Array, dtype: str) -> str:
    """Return why an output of the source cannot tell right from wrong, empty if it can.

    One element varies with nothing that it could be compared with, so it always counts.
    """
    values = np.asarray(reference)
    if not values.size:
        return "it has no elements"
    wide = np.asarray(values, np.float64)
    finite = wide[np.isfinite(wide)]
    if np.isnan(wide).all():
        return "all of it is NaN"
    if values.size == 1:
        return ""
    if (wide == wide.flat[0]).all():
        return "all its values are equal"
    if not finite.size:
        return ""
    spread = float(finite.max() - finite.min())
    if spread > 0.0 and spread <= _SILENT_ROUNDINGS * epsilon(dtype) * float(np.abs(finite).max()):
        return "it varies by no more than rounding"
    return ""


def last_rounding(exact: Array, dtype: str) -> Distance:
    """Return the distance that rounding an output to 16 bits makes; none for other dtypes.

    What leaves the range of the dtype is not rounded: it would be infinitely far.
    """
    if dtype not in _FACTORS or not exact.size:
        return Distance()
    with np.errstate(over="ignore"):
        rounded = exact.astype(numpy_dtype(dtype)).astype(np.float64)
    return distance(rounded, exact, np.isfinite(rounded))


def floor_of(exact: Array, dtype: str) -> Distance:
    """Return a distance that says nothing, however near the source is to the exact result."""
    if dtype in _FACTORS:
        return Distance(smallest(dtype), _FLOOR_ROUNDINGS * smallest(dtype))
    step = epsilon(dtype) / 2
    magnitude = _magnitude(exact)
    least = _FLOOR_ROUNDINGS * step * deviation(exact) + step * magnitude + smallest(dtype)
    return Distance(least, _FLOOR_ROUNDINGS * least)


def within(target: Distance, own: Distance, floor: Distance, dtype: str, count: int) -> bool:
    """Whether a target is no farther from the exact result than its rounding explains."""
    factor = _FACTORS.get(dtype, _FACTOR) * (1 + _FEW / max(count, 1))
    return (
        target.mean <= factor * own.mean + floor.mean
        and target.most <= factor * own.most + floor.most
    )
