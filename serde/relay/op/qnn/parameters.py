"""Scales and zero points: their types, their places on an axis, and ratios of scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Constant, Expr
from serde.relay.ir.registry import Array
from serde.relay.ir.shapes import join_dim, normalize_axis
from serde.relay.ir.types import TensorType

__all__ = [
    "along_axis",
    "fixed_point",
    "parameter_axis",
    "require_dtype",
    "require_parameters",
    "require_scalars",
    "round_away",
    "same_value",
    "saturate",
]

LARGEST_EXPONENT = 32
"""A ratio of scales of 2**32 carries every number but zero out of int32."""

SMALLEST_EXPONENT = -31
"""A ratio of scales below 2**-32 takes every int32 to zero."""


def require_dtype(type_: TensorType, allowed: Sequence[str], what: str) -> None:
    """Refuse a tensor of another dtype.

    Raises:
        TypeInferenceError: The dtype is none of those allowed.
    """
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

    Raises:
        TypeInferenceError: The dtype is not float32 or int32, or the shape is another.
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
    """Refuse scales and zero points that are not of rank 0.

    Raises:
        TypeInferenceError: One is not, or has another dtype.
    """
    for scale, zero_point in pairs:
        require_parameters(scale, zero_point, None)
        if scale.rank or zero_point.rank:
            raise TypeInferenceError(
                f"expected a scalar scale and zero point, found {scale!r} and {zero_point!r}"
            )


def parameter_axis(data: TensorType, axis: int, *parameters: TensorType) -> Dim | None:
    """Return the length of the axis that scales and zero points belong to.

    The axis counts only where one of them is a vector.

    Raises:
        TypeInferenceError: The axis is outside the tensor.
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
