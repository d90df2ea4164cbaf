"""Quantisation, dequantisation and requantisation in plain Relay.

Source: the functions ``FTVMQnnCanonicalize`` of TVM 0.18.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.relay.ir import Array, Constant, Expr, TensorType, Type, call, const, limits
from serde.relay.op.qnn.parameters import fixed_point
from serde.relay.op.qnn.rescale import current_requantize_config

__all__ = [
    "cast", "equals", "expand_to_axis", "is_number", "lower_dequantize", "lower_quantize",
    "lower_requantize", "multiply_by_number", "require_tensor", "rescale", "rescale_or_widen",
    "saturate_to",
]  # fmt: skip

Attributes = Mapping[str, AnyValue]


def cast(x: Expr, dtype: str) -> Expr:
    """Return `x` in a dtype; a cast stands there though it were none."""
    return call("cast", x, dtype=dtype)


def is_number(x: Expr) -> bool:
    """Whether an expression is a constant of rank 0."""
    return isinstance(x, Constant) and x.data.ndim == 0


def equals(x: Expr, number: AnyValue) -> bool:
    """Whether an expression is a constant of rank 0 that equals a number, or another constant."""
    if not isinstance(x, Constant) or x.data.ndim:
        return False
    if isinstance(number, Expr):
        if not isinstance(number, Constant) or number.data.ndim:
            return False
        return bool(x.data.dtype == number.data.dtype and x.data == number.data)
    return bool(x.data == number)


def require_tensor(type_: Type | None) -> TensorType:
    """Return the type of an operand of an operator, which is inferred by now.

    Raises:
        Unsupported: It is no tensor.
    """
    if not isinstance(type_, TensorType):
        raise Unsupported(f"expected a tensor, found {type_!r}")
    return type_


def expand_to_axis(values: Expr, rank: int, axis: int) -> Expr:
    """Return a vector in a shape that broadcasts with a tensor of `rank` along `axis`."""
    following = rank - axis - 1
    return call("expand_dims", values, axis=1, num_newaxis=following) if following > 0 else values


def saturate_to(x: Expr, dtype: str) -> Expr:
    """Return `x` in an integer dtype, cut to its range."""
    info = limits(dtype)
    return cast(call("clip", x, a_min=float(info.min), a_max=float(info.max)), dtype)


def multiply_by_number(x: Expr, ratio: float) -> Expr:
    """Return int32 `x` times a number by fixed-point arithmetic, halves upwards."""
    mantissa, exponent = fixed_point(ratio)
    return call("fixed_point_multiply", x, multiplier=int(mantissa), shift=int(exponent))


def _known(x: Expr, what: str) -> Array:
    """Return the values of a scale."""
    if not isinstance(x, Constant):
        raise Unsupported(f"{what} is no constant", hint="bind it, then fold constants")
    return np.asarray(x.data)


def _axis(axis: int, rank: int) -> int:
    if axis >= 0:
        return axis
    return rank + axis if rank else 0


def _without_zero_point(x: Expr, zero_point: Expr, rank: int, axis: int, dtype: str) -> Expr:
    if equals(zero_point, 0):
        return x
    spread = expand_to_axis(call("reshape", zero_point, newshape=(-1,)), rank, _axis(axis, rank))
    return call("subtract", x, cast(_squeeze(spread, rank), dtype))


def _squeeze(spread: Expr, rank: int) -> Expr:
    """Return a vector of one number as a scalar beside data of rank 0."""
    return spread if rank else call("squeeze", spread, axis=(0,))


def rescale(
    x: Expr,
    type_: TensorType,
    scale: Expr,
    zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    *,
    out_dtype: str,
    axis: int = -1,
    rounding: str = "None",
    compute_dtype: str = "None",
) -> Expr:
    """Return ``qnn.requantize`` of `x`, which has the type `type_`, in plain Relay.

    Raises:
        Unsupported: A scale is no constant, or the output scale is zero.
    """
    current = current_requantize_config()
    rounding = current.rounding if rounding == "None" else rounding
    compute_dtype = current.compute_dtype if compute_dtype == "None" else compute_dtype
    if not _known(output_scale, "the output scale").all():
        raise Unsupported("the output scale is zero")
    wide = "int32" if compute_dtype == "int64" else compute_dtype
    level = _without_zero_point(cast(x, wide), zero_point, type_.rank, axis, wide)
    if not equals(scale, output_scale):
        known = _known(scale, "the input scale").astype(np.float64)
        ratio = np.asarray(known / np.float64(_known(output_scale, "the output scale")))
        if wide == "int32":
            level = _multiply_integers(level, type_, ratio, axis, rounding)
        else:
            level = _multiply_floats(level, type_, ratio.astype(wide), axis)
    if wide == "int32":
        if not equals(output_zero_point, 0):
            level = call("add", cast(output_zero_point, wide), level)
    else:
        if not equals(output_zero_point, 0):
            level = call("add", level, cast(output_zero_point, wide))
        level = cast(_round_floats(level, rounding, wide), "int32")
    return level if out_dtype == "int32" else saturate_to(level, out_dtype)


def _multiply_floats(x: Expr, type_: TensorType, ratio: Array, axis: int) -> Expr:
    if ratio.ndim == 0:
        return call("multiply", Constant(ratio), x)
    spread = expand_to_axis(Constant(ratio), type_.rank, _axis(axis, type_.rank))
    return call("multiply", x, _squeeze(spread, type_.rank))


def _round_floats(x: Expr, rounding: str, dtype: str) -> Expr:
    if rounding == "TONEAREST":
        return call("round", x)
    return call("floor", call("add", x, const(0.5, dtype)))


def _multiply_integers(x: Expr, type_: TensorType, ratio: Array, axis: int, rounding: str) -> Expr:
    if rounding == "TONEAREST":
        return _multiply_to_nearest(x, type_, ratio, axis)
    if ratio.size == 1:
        return multiply_by_number(x, float(ratio.reshape(())))
    mantissa, exponent = fixed_point(ratio)
    left, right = np.maximum(exponent, 0), np.maximum(-exponent, 0)
    return call(
        "fixed_point_multiply_per_axis",
        x,
        *(Constant(each.astype(np.int32)) for each in (mantissa, left, right)),
        is_lshift_required=bool(left.any()),
        is_rshift_required=bool(right.any()),
        axes=(_axis(axis, type_.rank),),
    )


def _multiply_to_nearest(x: Expr, type_: TensorType, ratio: Array, axis: int) -> Expr:
    """Return the product rounded to the nearest, halves away from zero: in int64, spelled out."""
    mantissa, exponent = fixed_point(ratio.reshape(()) if ratio.size == 1 else ratio)
    left, right = np.maximum(exponent, 0), np.maximum(-exponent, 0) + 31
    half = np.left_shift(np.int64(1), right - 1)

    def spread(values: Array) -> Expr:
        constant = Constant(np.asarray(values, np.int64))
        if not constant.data.ndim:
            return constant
        return expand_to_axis(constant, type_.rank, _axis(axis, type_.rank))

    wide = cast(x, "int64")
    if left.any():
        wide = call("left_shift", wide, spread(left))
    product = call("multiply", wide, spread(mantissa))
    zeros = call("zeros", shape=type_.shape, dtype="int64")
    rounder = call(
        "where",
        call("greater_equal", product, zeros),
        _full(spread(half), type_),
        _full(spread(half - 1), type_),
    )
    shifted = call("right_shift", call("add", product, rounder), spread(right))
    return cast(shifted, "int32")


def _full(values: Expr, type_: TensorType) -> Expr:
    if is_number(values):
        return call("full", values, shape=type_.shape, dtype="int64")
    return call("broadcast_to", values, shape=type_.shape)


def rescale_or_widen(
    x: Expr, type_: TensorType, found: Sequence[Expr], wanted: Sequence[Expr], axis: int = -1
) -> Expr:
    """Return `x` as int32 at another scale; a cast where scale and zero point are wanted ones.

    Args:
        x: The quantised numbers.
        type_: Their type.
        found: Their scale and zero point.
        wanted: Scale and zero point of the result.
        axis: The axis along which those of `x` lie, where they are vectors.
    """
    if equals(found[0], wanted[0]) and equals(found[1], wanted[1]):
        return cast(x, "int32")
    return rescale(x, type_, *found, *wanted, out_dtype="int32", axis=axis)


def lower_requantize(attrs: Attributes, args: list[Expr], types: list[Type | None]) -> Expr:
    """Return ``qnn.requantize`` in plain Relay."""
    return rescale(
        args[0], require_tensor(types[0]), *args[1:], out_dtype=require_tensor(types[-1]).dtype,
        axis=attrs["axis"], rounding=attrs["rounding"], compute_dtype=attrs["compute_dtype"],
    )  # fmt: skip


def _spread(values: Expr, type_: TensorType, rank: int, axis: int) -> Expr:
    """Return a scale or zero point in a shape that broadcasts with data."""
    if type_.rank == 0:
        return values
    if rank == 0:
        return call("squeeze", values, axis=(0,))
    return expand_to_axis(values, rank, axis % rank)


def lower_quantize(attrs: Attributes, args: list[Expr], types: list[Type | None]) -> Expr:
    """Return ``qnn.quantize`` in plain Relay."""
    data, *parameters = args
    rank = require_tensor(types[0]).rank
    scale, zero = (
        _spread(each, require_tensor(type_), rank, attrs["axis"])
        for each, type_ in zip(parameters, types[1:3], strict=True)
    )
    level = call("round", call("divide", data, scale))
    return saturate_to(call("add", level, cast(zero, "float32")), dtype_name(attrs["out_dtype"]))


def lower_dequantize(attrs: Attributes, args: list[Expr], types: list[Type | None]) -> Expr:
    """Return ``qnn.dequantize`` in plain Relay."""
    data, *parameters = args
    rank = require_tensor(types[0]).rank
    scale, zero = (
        _spread(each, require_tensor(type_), rank, attrs["axis"])
        for each, type_ in zip(parameters, types[1:3], strict=True)
    )
    shifted = call("subtract", cast(data, "int32"), zero)
    real = call("multiply", cast(shifted, "float32"), scale)
    dtype = dtype_name(attrs["out_dtype"])
    return real if dtype == "float32" else saturate_to(real, dtype)
