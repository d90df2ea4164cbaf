"""Multiplication of integers by a number given as a Q31 mantissa and a power of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Elementwise, Expr, Fusion, FusionPattern, SameType, const, tensor_type
from serde.relay.ir.registry import Arguments, Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import at, join_dim, normalize_axes
from serde.relay.ir.types import TensorType

__all__ = ["scale_fixed_point"]

_WIDE = dict(low=-1000, high=1000)
_Q31 = dict(low=2**30, high=2**31 - 1)


def _multiply(data: Array, multiplier: Array, left: Array, right: Array) -> Array:
    """Return round(data * 2**left * multiplier / 2**(31 + right)), halves upwards."""
    product = (data.astype(np.int64) << left) * multiplier
    half = np.int64(1) << (np.int64(30) + right)
    return ((product + half) >> (np.int64(31) + right)).astype(data.dtype)


def scale_fixed_point(data: Expr, factor: Expr, bits: Expr, *, away: bool = False) -> Expr:
    """Return ``round(data * factor / 2**bits)`` in int32, of a factor and bits of int64.

    Args:
        data: Integers.
        factor: What broadcasts to them.
        bits: Likewise, at least 1.
        away: Whether halves go away from zero instead of up.
    """
    one = const(1, "int64")
    product = call("multiply", call("cast", data, dtype="int64"), factor)
    half = _power_of_two(call("subtract", bits, one))
    if away:
        negative = call("less", product, const(0, "int64"))
        half = call("where", negative, call("subtract", half, one), half)
    return call("cast", call("right_shift", call("add", product, half), bits), dtype="int32")


def _power_of_two(exponent: Expr) -> Expr:
    """Return ``2**exponent`` of int64, below 2**63; targets lack shifts of one number by many."""
    powers = const(np.int64(1) << np.arange(63, dtype=np.int64), "int64")
    return call("take", powers, exponent, axis=0, mode="clip")


def _require_int32(data: TensorType) -> None:
    if data.dtype != "int32":
        raise TypeInferenceError(f"expected an int32 tensor, found {data.dtype}")


def _fixed_point_type(data: TensorType, **_: AnyValue) -> TensorType:
    _require_int32(data)
    return data


def _decompose_multiply(data: Expr, *, multiplier: int, shift: int) -> Expr:
    factor = np.asarray(multiplier, np.int64) << np.int64(max(shift, 0))
    return scale_fixed_point(data, const(factor, "int64"), const(31 + max(-shift, 0), "int64"))


@relay_op(
    "fixed_point_multiply",
    traits=(Elementwise, SameType),
    infer=_fixed_point_type,
    decompose=_decompose_multiply,
    samples=[
        sample(tensor((2, 3), "int32", **_WIDE), multiplier=2**30, shift=2),
        sample(tensor((4,), "int32", **_WIDE), multiplier=1_500_000_000, shift=-3),
    ],
)
def fixed_point_multiply(data: Array, *, multiplier: int, shift: int) -> Array:
    """``y = floor(x * multiplier * 2**(shift - 31) + 0.5)``."""
    left, right = np.int64(max(shift, 0)), np.int64(max(-shift, 0))
    return _multiply(data, np.asarray(multiplier, np.int64), np.asarray(left), np.asarray(right))


def _per_axis_type(
    data: TensorType,
    fp_multiplier: TensorType,
    left_shift: TensorType,
    right_shift: TensorType,
    *,
    axes: Sequence[int],
    **_: AnyValue,
) -> TensorType:
    along = at(data.shape, normalize_axes(axes, data.rank))
    for operand in (data, fp_multiplier, left_shift, right_shift):
        _require_int32(operand)
    for operand in (fp_multiplier, left_shift, right_shift):
        if operand.rank != len(along):
            raise TypeInferenceError(f"expected a scale of rank {len(along)}, found {operand!r}")
        for expected, found in zip(along, operand.shape, strict=True):
            join_dim(expected, found)
    return data


def _decompose_per_axis(
    data: Expr, fp_multiplier: Expr, left_shift: Expr, right_shift: Expr,
    *, is_lshift_required: bool, is_rshift_required: bool, axes: tuple[int, ...],
) -> Expr:  # fmt: skip
    rank = tensor_type(data).rank
    along = normalize_axes(axes, rank)

    def spread(x: Expr) -> Expr:
        wide = call("cast", x, dtype="int64")
        for axis in range(rank):
            wide = wide if axis in along else call("expand_dims", wide, axis=axis)
        return wide

    factor = spread(fp_multiplier)
    bits: Expr = const(31, "int64")
    if is_lshift_required:
        factor = call("multiply", factor, _power_of_two(spread(left_shift)))
    if is_rshift_required:
        bits = call("add", spread(right_shift), bits)
    return scale_fixed_point(data, factor, bits)


@relay_op(
    "fixed_point_multiply_per_axis",
    traits=(Fusion(FusionPattern.BROADCAST),),
    infer=_per_axis_type,
    decompose=_decompose_per_axis,
    samples=[
        sample(
            tensor((2, 3), "int32", **_WIDE),
            tensor((3,), "int32", **_Q31),
            tensor((3,), "int32", low=0, high=3),
            tensor((3,), "int32", low=0, high=3),
            is_lshift_required=True,
            is_rshift_required=True,
            axes=[1],
        ),
        sample(
            tensor((2, 3), "int32", **_WIDE),
            tensor((2,), "int32", **_Q31),
            tensor((2,), "int32", low=0, high=3),
            tensor((2,), "int32", low=0, high=3),
            axes=[0],
        ),
    ],
    arguments=Arguments(
        order=("is_lshift_required", "is_rshift_required", "axes"),
        names={"data": "x", "fp_multiplier": "y", "left_shift": "lshift", "right_shift": "rshift"},
    ),
)
def fixed_point_multiply_per_axis(
    data: Array, fp_multiplier: Array, left_shift: Array, right_shift: Array,
    *, is_lshift_required: bool = False, is_rshift_required: bool = False, axes: tuple[int, ...],
) -> Array:  # fmt: skip
    """As fixed_point_multiply, with a multiplier and shifts for each index of `axes`.

    A shift that is not required counts as zero.
    """
    along = normalize_axes(axes, data.ndim)
    shape = [length if axis in along else 1 for axis, length in enumerate(data.shape)]
    left = left_shift if is_lshift_required else np.zeros_like(left_shift)
    right = right_shift if is_rshift_required else np.zeros_like(right_shift)
    parts = (fp_multiplier, left, right)
    multiplier, left, right = (part.astype(np.int64).reshape(shape) for part in parts)
    return _multiply(data, multiplier, left, right)
