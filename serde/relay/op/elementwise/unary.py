"""Functions of one tensor, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Sample, TensorType, Traits, ranges, relay_op, sample, tensor
from serde.relay.ir.precision import limits
from serde.relay.ir.shapes import float_type, is_float
from serde.relay.ir.traits import (
    Arithmetic,
    Cases,
    Discontinuous,
    Elementwise,
    Moves,
    Reshape,
    SameType,
    Truth,
    TypeOnly,
    UsuallyInRange,
    Values,
)
from serde.relay.op.elementwise.erf import erf

__all__ = ["clip_limits"]

Relation = Callable[[TensorType], TensorType]


def _same(data: TensorType) -> TensorType:
    return data


def _number(data: TensorType) -> TensorType:
    if data.dtype == "bool":
        raise TypeInferenceError("expected a tensor of numbers, found bool")
    return data


def _integer(data: TensorType) -> TensorType:
    if is_float(data.dtype):
        raise TypeInferenceError(f"expected a tensor of integers, found {data.dtype}")
    return data


def _predicate(data: TensorType) -> TensorType:
    return TensorType(data.shape, "bool")


def _unary(
    name: str,
    function: Callable[[Array], Array],
    doc: str,
    *,
    infer: Relation = float_type,
    samples: Sequence[Sample] = (),
    traits: Traits = (),
) -> None:
    """Declare `function` as the elementwise operator `name`, which gives no warnings."""

    def kernel(data: Array) -> Array:
        with np.errstate(all="ignore"):
            result = np.asarray(function(data))
        # NumPy computes most functions of integers of 4 bits in int8.
        return result if infer is _predicate else result.astype(data.dtype, copy=False)

    kernel.__doc__ = doc
    given = samples or [sample((2, 3)), sample(tensor((), "float64"))]
    keeps = () if infer is _predicate else (SameType,)
    relay_op(name, infer=infer, samples=given, traits=(Elementwise, *keeps, *traits))(kernel)


def _declare_each(
    *rows: tuple[str, Callable[[Array], Array], str],
    infer: Relation,
    samples: Sequence[Sample],
    traits: Traits,
) -> None:
    """Declare operators that have all but name, function and documentation in common."""
    for name, function, doc in rows:
        _unary(name, function, doc, infer=infer, samples=samples, traits=traits)


def _sigmoid(x: Array) -> Array:
    """Return the logistic function without overflow on either side."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)).astype(x.dtype, copy=False)


def _rsqrt(x: Array) -> Array:
    return (1 / np.sqrt(x)).astype(x.dtype, copy=False)


def _round(x: Array) -> Array:
    """Return `x` rounded to the nearest integer, halves away from zero.

    The fraction is exact, so a value just below a half is not carried over it by an addition.
    """
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole).astype(x.dtype, copy=False)


def _identity_on_integers(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return `function`, the identity on integers."""
    return lambda x: function(x) if is_float(x.dtype.name) else x


def _isfinite(x: Array) -> Array:
    return np.isfinite(x) if is_float(x.dtype.name) else np.ones(x.shape, bool)


def _not(x: Array) -> Array:
    return (x == 0).astype(x.dtype)


_POSITIVE = [sample(tensor((2, 3), low=0.1)), sample(tensor((), "float64", low=0.1))]
_UNIT = [sample(tensor((2, 3), low=-0.9, high=0.9)), sample(tensor((), "float64", low=0, high=0.9))]
_NUMBERS = [sample((2, 3)), sample(tensor((4,), "int32")), sample(tensor((), "float64"))]
_SPECIAL = np.array([[np.nan, np.inf], [-np.inf, 1.5]], np.float32)
_CLASSES = [sample(_SPECIAL), sample((2, 3)), sample(tensor((2,), "int32"))]
_INTEGERS = [sample(tensor((2, 3), "int32")), sample(tensor((4,), "uint8", low=0, high=250))]
_HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 8388609.0], np.float32)

_unary("acos", np.arccos, "``y = acos(x)``, in radians.", samples=_UNIT)
_unary(
    "acosh",
    np.arccosh,
    "``y = acosh(x)``, the inverse of cosh.",
    samples=[sample(tensor((2, 3), low=1.1, high=4.0))],
)
_unary("asin", np.arcsin, "``y = asin(x)``, in radians.", samples=_UNIT)
_unary("asinh", np.arcsinh, "``y = asinh(x)``, the inverse of sinh.")
_unary("atan", np.arctan, "``y = atan(x)``, in radians.")
_unary("atanh", np.arctanh, "``y = atanh(x)``, the inverse of tanh.", samples=_UNIT)
_unary("cos", np.cos, "``y = cos(x)``, of radians.")
_unary("cosh", np.cosh, "``y = (exp(x) + exp(-x)) / 2``.")
_unary(
    "erf",
    erf,
    "``y = erf(x)``, the error function.",
    samples=[sample((2, 3)), sample(tensor((5,), "float64"))],
)
_unary("exp", np.exp, "``y = exp(x)``.")
_unary("fast_erf", erf, "``y = erf(x)``; a target may approximate it, this kernel does not.")
_unary("fast_exp", np.exp, "``y = exp(x)``; a target may approximate it, this kernel does not.")
_unary("fast_tanh", np.tanh, "``y = tanh(x)``; a target may approximate it, this kernel does not.")
_unary("log", np.log, "``y = log(x)``, to base e.", samples=_POSITIVE)
_unary("log10", np.log10, "``y = log10(x)``.", samples=_POSITIVE)
_unary("log2", np.log2, "``y = log2(x)``.", samples=_POSITIVE)
_unary("rsqrt", _rsqrt, "``y = 1 / sqrt(x)``.", samples=_POSITIVE)
_unary(
    "sigmoid",
    _sigmoid,
    "``y = 1 / (1 + exp(-x))``.",
    samples=[sample((2, 3)), sample(tensor((4,), low=-200, high=200))],
)
_unary("sin", np.sin, "``y = sin(x)``, of radians.")
_unary("sinh", np.sinh, "``y = (exp(x) - exp(-x)) / 2``.")
_unary("sqrt", np.sqrt, "``y = sqrt(x)``.", samples=_POSITIVE)
_unary("tan", np.tan, "``y = tan(x)``, of radians.")
_unary("tanh", np.tanh, "``y = (exp(x) - exp(-x)) / (exp(x) + exp(-x))``.")

_unary("abs", np.abs, "``y = abs(x)``.", infer=_number, samples=_NUMBERS, traits=(Arithmetic,))
_unary(
    "negative", np.negative, "``y = -x``.", infer=_number, samples=_NUMBERS, traits=(Arithmetic,)
)
_unary(
    "sign",
    np.sign,
    "``y = -1 if x < 0 else 1 if x > 0 else 0``.",
    infer=_number,
    samples=_NUMBERS,
    traits=(Discontinuous,),
)
_declare_each(
    ("ceil", _identity_on_integers(np.ceil), "``y = ceil(x)``: the next integer up."),
    ("floor", _identity_on_integers(np.floor), "``y = floor(x)``: the next integer down."),
    ("trunc", _identity_on_integers(np.trunc), "``y = sign(x) * floor(abs(x))``."),
    infer=_number,
    samples=_NUMBERS,
    traits=(Values(0), Discontinuous),
)
_unary(
    "round",
    _identity_on_integers(_round),
    "``y = sign(x) * floor(abs(x) + 0.5)``: halves away from zero.",
    infer=_number,
    samples=[*_NUMBERS, sample(_HALVES)],
    traits=(Values(0), Discontinuous),
)
_declare_each(
    ("isfinite", _isfinite, "``y = abs(x) < inf``: whether neither infinite nor NaN."),
    ("isinf", np.isinf, "``y = abs(x) == inf``."),
    ("isnan", np.isnan, "``y = x != x``: whether NaN."),
    infer=_predicate,
    samples=_CLASSES,
    traits=(Truth,),
)
_declare_each(
    ("ones_like", np.ones_like, "Ones, of the shape and dtype of the operand."),
    ("zeros_like", np.zeros_like, "Zeros, of the shape and dtype of the operand."),
    infer=_same,
    samples=_NUMBERS,
    traits=(TypeOnly(0),),
)
_unary("bitwise_not", np.invert, "``y = ~x``.", infer=_integer, samples=_INTEGERS)
_unary(
    "logical_not",
    _not,
    "``y = x == 0``, in the dtype of the operand.",
    infer=_same,
    samples=[sample(tensor((2, 3), "bool")), sample(tensor((4,), "int32"))],
    traits=(Truth, UsuallyInRange(ranges.truth_values)),
)
_unary(
    "copy", np.copy, "``y = x``.", infer=_same, samples=_NUMBERS, traits=(Reshape, Moves(all=True))
)


def clip_limits(dtype: np.dtype[AnyValue], a_min: float, a_max: float) -> tuple[AnyValue, AnyValue]:
    """Return the limits of a clip as scalars of `dtype`; integers saturate at its range."""
    if is_float(dtype.name):
        with np.errstate(over="ignore"):
            return dtype.type(a_min), dtype.type(a_max)
    info = limits(dtype)
    low, high = (int(min(max(limit, info.min), info.max)) for limit in (a_min, a_max))
    return dtype.type(low), dtype.type(high)


def _clip_type(data: TensorType, *, a_min: float, a_max: float) -> TensorType:
    if np.isnan(a_min) or np.isnan(a_max):
        raise TypeInferenceError(f"the limits {a_min} and {a_max} must be numbers")
    return _number(data)


@relay_op(
    "clip",
    traits=(Elementwise, SameType, Cases("clip", ranges.clipped("a_min", "a_max"))),
    infer=_clip_type,
    samples=[
        sample((2, 3), a_min=-1.0, a_max=0.5),
        sample(tensor((4,), "int8", low=-100, high=100), a_min=-6.5, a_max=1e9),
        sample(tensor((2,), "float16"), a_min=-np.inf, a_max=1.0),
    ],
)
def clip(data: Array, *, a_min: float, a_max: float) -> Array:
    """``y = min(max(x, a_min), a_max)``."""
    low, high = clip_limits(data.dtype, a_min, a_max)
    result = np.asarray(np.minimum(np.maximum(data, low), high))
    return result.astype(data.dtype, copy=False)
