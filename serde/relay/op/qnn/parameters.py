"""Scales and zero points: their types, their places on an axis, and ratios of scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Dim, TensorType, as_dtype, call, join_dim, normalize_axis
from serde.relay.ir.expr import Constant, Expr, const, tensor_type

__all__ = [
    "along_axis", "fixed_point", "is_zero", "measure_fraction", "narrow_zero_point",
    "parameter_axis", "require_dtype", "require_parameters", "require_scalars", "round_away",
    "same_value", "saturate", "saturate_expr", "spread", "without_zero_point",
]  # fmt: skip

LARGEST_EXPONENT = 32
"""A ratio of scales of 2**32 carries every number but zero out of int32."""

SMALLEST_EXPONENT = -31
"""A ratio of scales below 2**-32 takes every int32 to zero."""


def require_dtype(type_: TensorType, allowed: Sequence[str], what: str) -> None:
    """Refuse a tensor of another dtype."""
    if type_.dtype not in allowed:
        raise TypeInferenceError(f"{what}: expected {', '.join(allowed)}, found {type_.dtype}")


def require_parameters(
    scale: TensorType, zero_point: TensorType, length: Dim | None, name: str = ""
) -> None:
    """Refuse a scale or zero point that is neither one number nor `length` numbers.

    Args:
        scale: Type of the scale.
        zero_point: Type of the zero point.
        length: Length of the axis that they may belong to; None where they must be scalars.
        name: Prefix of the operands, for messages.
    """
    for type_, dtype, what in ((scale, "float32", "scale"), (zero_point, "int32", "zero_point")):
        require_dtype(type_, (dtype,), f"{name}{what}")
        if type_.rank == 0 or (type_.rank == 1 and type_.shape[0] == 1):
            continue
        if type_.rank > 1 or length is None:
            wanted = "one number" if length is None else f"one number or {length}"
            raise TypeInferenceError(f"{name}{what}: expected {wanted}, found {type_!r}")
        try:
            join_dim(type_.shape[0], length)
        except TypeInferenceError:
            raise TypeInferenceError(
                f"{name}{what}: expected one number or {length}, found {type_!r}"
            ) from None


def require_scalars(*pairs: tuple[TensorType, TensorType]) -> None:
    """Refuse scales and zero points that are not of rank 0."""
    for scale, zero_point in pairs:
        require_parameters(scale, zero_point, None)
        if scale.rank or zero_point.rank:
            raise TypeInferenceError(
                f"expected a scalar scale and zero point, found {scale!r} and {zero_point!r}"
            )


def parameter_axis(data: TensorType, axis: int, *parameters: TensorType) -> Dim | None:
    """Return the length of the axis that scales and zero points belong to.

    The axis counts only where one of them is a vector.
    """
    if all(type_.rank == 0 for type_ in parameters):
        return None
    if data.rank == 0:
        return 1
    return data.shape[normalize_axis(axis, data.rank)]


def along_axis(values: Array, rank: int, axis: int) -> Array:
    """Return a scale or zero point in a shape that broadcasts with data of `rank`."""
    if values.size == 1:
        return values.reshape(())
    shape = [1] * rank
    shape[axis] = -1
    return values.reshape(shape)


def fixed_point(ratio: AnyValue) -> tuple[Array, Array]:
    """Return numbers as m * 2**(e - 31), m an integer below 2**31 in magnitude.

    The mantissa is rounded to the nearest, halves away from zero, as TVM does. A number too
    small to matter for int32 becomes zero, one too large for all of int32 is capped.
    """
    fraction, exponent = np.frexp(np.asarray(ratio, np.float64))
    mantissa = round_away(fraction * 2.0**31).astype(np.int64)
    carried = np.abs(mantissa) == 2**31
    mantissa = np.where(carried, mantissa // 2, mantissa)
    exponent = np.where(carried, exponent + 1, exponent).astype(np.int64)
    mantissa = np.where(exponent < SMALLEST_EXPONENT, 0, mantissa)
    return mantissa, np.clip(exponent, SMALLEST_EXPONENT, LARGEST_EXPONENT)


def measure_fraction(ratio: Expr) -> tuple[Expr, Expr]:
    """Return numbers of float64 as :func:`fixed_point` rounds them: a / 2**b, a and b of int64.

    The mantissa is read from their bits.
    """

    def of(value: int) -> Expr:
        return const(value, "int64")

    bits = call("reinterpret", ratio, dtype="int64")
    stored = call("bitwise_and", call("right_shift", bits, of(52)), of(2047))
    digits = call("bitwise_or", call("bitwise_and", bits, of(2**52 - 1)), of(2**52))
    rounded = call("right_shift", call("add", digits, of(2**21)), of(22))
    carried = call("right_shift", rounded, of(31))
    exponent = call("add", call("subtract", stored, of(1022)), carried)
    sign = call("cast", call("sign", ratio), dtype="int64")
    mantissa = call("multiply", call("right_shift", rounded, carried), sign)
    small = call("less", exponent, of(SMALLEST_EXPONENT))
    left = call("minimum", call("maximum", exponent, of(0)), of(LARGEST_EXPONENT))
    right = call("minimum", call("maximum", call("negative", exponent), of(0)),
                 of(-SMALLEST_EXPONENT))  # fmt: skip
    numerator = call("left_shift", call("where", small, of(0), mantissa), left)
    return numerator, call("add", right, of(31))


def spread(values: Expr, rank: int, axis: int) -> Expr:
    """Return a scale or zero point in a shape that broadcasts with data of `rank`."""
    type_ = tensor_type(values)
    if not type_.rank:
        return values
    if not rank:
        return call("squeeze", values, axis=(0,))
    following = 0 if type_.shape == (1,) else rank - 1 - axis % rank
    return call("expand_dims", values, axis=1, num_newaxis=following) if following else values


def is_zero(x: Expr) -> bool:
    """Whether a zero point is known to be zero."""
    return isinstance(x, Constant) and not x.data.any()


def narrow_zero_point(zero_point: Expr, dtype: str) -> Constant | None:
    """Return a constant zero point in the dtype of what it belongs to, of one number a scalar.

    None is returned of one that is computed, or no number of that dtype.
    """
    if not isinstance(zero_point, Constant):
        return None
    data, info = zero_point.data, np.iinfo(dtype)
    if (data < info.min).any() or (data > info.max).any():
        return None
    return Constant((data.reshape(()) if data.size == 1 else data).astype(dtype))


def without_zero_point(x: Expr, zero_point: Expr, axis: int = -1, dtype: str = "int32") -> Expr:
    """Return integers as differences from their zero point, in a wider dtype."""
    wide = as_dtype(x, dtype)
    if is_zero(zero_point):
        return wide
    return call("subtract", wide, as_dtype(spread(zero_point, tensor_type(x).rank, axis), dtype))


def saturate_expr(x: Expr, dtype: str) -> Expr:
    """Return whole numbers in an integer dtype; those beyond its range become its ends."""
    if tensor_type(x).dtype == dtype:
        return x
    if dtype == "int32":
        # float32 has no 2**31 - 1.
        x = call("cast", x, dtype="float64")
    info = np.iinfo(dtype)
    return call("cast", call("clip", x, a_min=float(info.min), a_max=float(info.max)), dtype=dtype)


def round_away(values: Array) -> Array:
    """Return the nearest whole numbers, halves away from zero, in the same dtype."""
    whole = np.trunc(values)
    with np.errstate(invalid="ignore"):
        far = np.abs(values - whole) >= 0.5
    return np.where(far, whole + np.sign(values), whole).astype(values.dtype, copy=False)


def saturate(values: Array, dtype: AnyValue) -> Array:
    """Return `values` in an integer dtype; those beyond its range become its ends."""
    info = np.iinfo(dtype)
    # float32 has no 2**31 - 1, and would carry the clipped number out of int32.
    wide = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    return np.asarray(np.clip(wide, info.min, info.max)).astype(dtype)


def same_value(a: Expr, b: Expr) -> bool:
    """Whether two expressions are scalar constants of one value."""
    if not isinstance(a, Constant) or not isinstance(b, Constant):
        return False
    return a.data.size == 1 and b.data.size == 1 and bool(a.data.item() == b.data.item())
