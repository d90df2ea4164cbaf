"""Sums, differences, products and joins of quantised tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Constant, Expr, Rescales, SameAxes, TensorType, const, tensor_type
from serde.relay.ir.registry import Array, builder, call, get, relay_op, sample, tensor
from serde.relay.ir.shapes import broadcast, require_same_dtype
from serde.relay.ir.traits import Quantized
from serde.relay.op.qnn.parameters import (
    along_axis,
    parameter_axis,
    require_dtype,
    require_parameters,
    require_scalars,
    same_value,
    saturate,
    saturate_expr,
    without_zero_point,
)
from serde.relay.op.qnn.rescale import requantize

__all__ = ["requantize_expr"]

_INT32 = np.dtype(np.int32)
_LEFT = tensor((2, 3), "uint8", low=0, high=255)
_RIGHT = tensor((3,), "uint8", low=0, high=255)
_SIGNED = tensor((2, 3), "int8", low=-128, high=127)


def _pair(scale: float | list[float], zero_point: int | list[int]) -> tuple[Array, Array]:
    return np.array(scale, np.float32), np.array(zero_point, np.int32)


_VECTOR = _pair([0.5, 0.1, 0.9], [1, 2, 3])
_SAMPLES = [
    sample(_LEFT, _RIGHT, *_pair(0.1, 3), *_pair(0.2, 128), *_pair(0.25, 10)),
    sample(_SIGNED, _SIGNED, *_pair(0.05, 0), *_pair(0.04, -3), *_pair(0.05, 0)),
    sample(_SIGNED, _SIGNED, *_VECTOR, *_VECTOR, *_pair(0.7, -1)),
    sample(_LEFT, _LEFT, *_VECTOR, *_pair(0.3, 1), *_pair(0.5, 7), lhs_axis=1, rhs_axis=1),
]


def requantize_expr(
    x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr,
    *, axis: int = -1,
) -> Expr:  # fmt: skip
    """Return `x` as int32 at another scale; a mere cast where scale and zero point are equal."""
    if same_value(scale, output_scale) and same_value(zero_point, output_zero_point):
        return call("cast", x, dtype="int32")
    parameters = (scale, zero_point, output_scale, output_zero_point)
    return call("qnn.requantize", x, *parameters, axis=axis, out_dtype="int32")


def _binary_type(
    lhs: TensorType, rhs: TensorType, *parameters: TensorType, lhs_axis: int, rhs_axis: int
) -> TensorType:
    lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, *target = parameters
    require_same_dtype(lhs, rhs)
    require_dtype(lhs, ("int8", "uint8", "int16", "int32"), "lhs")
    length = parameter_axis(lhs, lhs_axis, lhs_scale, lhs_zero_point)
    require_parameters(lhs_scale, lhs_zero_point, length, "lhs_")
    length = parameter_axis(rhs, rhs_axis, rhs_scale, rhs_zero_point)
    require_parameters(rhs_scale, rhs_zero_point, length, "rhs_")
    require_scalars((target[0], target[1]))
    return TensorType(broadcast(lhs.shape, rhs.shape), lhs.dtype)


def _declare_sum(name: str, combine: Callable[[Array, Array], Array], sign: int, doc: str) -> None:
    """Declare the sum of operands (`sign` 1) or their difference (-1)."""

    def kernel(
        lhs: Array, rhs: Array, lhs_scale: Array, lhs_zero_point: Array, rhs_scale: Array,
        rhs_zero_point: Array, output_scale: Array, output_zero_point: Array,
        *, lhs_axis: int = -1, rhs_axis: int = -1,
    ) -> Array:  # fmt: skip
        target = (output_scale, output_zero_point)
        a = requantize(lhs, lhs_scale, lhs_zero_point, *target, axis=lhs_axis, out_dtype=_INT32)
        b = requantize(rhs, rhs_scale, rhs_zero_point, *target, axis=rhs_axis, out_dtype=_INT32)
        return saturate(combine(a, b) - np.int32(sign) * output_zero_point, lhs.dtype)

    def decompose(lhs: Expr, rhs: Expr, *parameters: Expr, lhs_axis: int, rhs_axis: int) -> Expr:
        target = parameters[4:]
        a = requantize_expr(lhs, *parameters[:2], *target, axis=lhs_axis)
        b = requantize_expr(rhs, *parameters[2:4], *target, axis=rhs_axis)
        both = call("add" if sign > 0 else "subtract", a, b)
        shifted = call("subtract" if sign > 0 else "add", both, target[1])
        return saturate_expr(shifted, tensor_type(lhs).dtype)

    kernel.__doc__ = doc
    relay_op(
        f"qnn.{name}",
        traits=(SameAxes(("lhs_axis", "rhs_axis"), operands=2), Rescales, Quantized),
        infer=_binary_type,
        samples=_SAMPLES,
        decompose=decompose,
    )(kernel)


_declare_sum(
    "add", np.add, 1, "``y = lhs + rhs`` of real numbers, each requantized to the result's scale."
)
_declare_sum(
    "subtract", np.subtract, -1,
    "``y = lhs - rhs`` of real numbers, each requantized to the result's scale.",
)  # fmt: skip


def _mul_type(
    lhs: TensorType, rhs: TensorType, *parameters: TensorType, lhs_axis: int, rhs_axis: int
) -> TensorType:
    result = _binary_type(lhs, rhs, *parameters, lhs_axis=lhs_axis, rhs_axis=rhs_axis)
    if any(type_.rank for type_ in parameters) and (lhs_axis != rhs_axis or lhs.rank != rhs.rank):
        raise TypeInferenceError(
            f"a product with scales of an axis needs one axis of one rank, "
            f"found {lhs_axis} of {lhs!r} and {rhs_axis} of {rhs!r}"
        )
    return result


@relay_op(
    "qnn.mul",
    traits=(SameAxes(("lhs_axis", "rhs_axis"), operands=2), Rescales, Quantized),
    infer=_mul_type,
    samples=_SAMPLES,
    decompose=lambda *x, **a: _as_mul(*x, **a),
)
def mul(
    lhs: Array, rhs: Array, lhs_scale: Array, lhs_zero_point: Array, rhs_scale: Array,
    rhs_zero_point: Array, output_scale: Array, output_zero_point: Array,
    *, lhs_axis: int = -1, rhs_axis: int = -1,
) -> Array:  # fmt: skip
    """``requantize((lhs - lhs_zero_point) * (rhs - rhs_zero_point), lhs_scale * rhs_scale)``."""
    a = lhs.astype(np.int32) - along_axis(lhs_zero_point, lhs.ndim, lhs_axis)
    b = rhs.astype(np.int32) - along_axis(rhs_zero_point, rhs.ndim, rhs_axis)
    return requantize(
        np.asarray(a * b), np.asarray(lhs_scale * rhs_scale), np.array(0, np.int32), output_scale,
        output_zero_point, axis=lhs_axis, out_dtype=lhs.dtype,
    )  # fmt: skip


def _as_mul(lhs: Expr, rhs: Expr, *parameters: Expr, lhs_axis: int, rhs_axis: int) -> Expr:
    lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, *target = parameters
    a = without_zero_point(lhs, lhs_zero_point, lhs_axis)
    b = without_zero_point(rhs, rhs_zero_point, rhs_axis)
    if isinstance(lhs_scale, Constant) and isinstance(rhs_scale, Constant):
        scale: Expr = Constant(np.asarray(lhs_scale.data * rhs_scale.data))
    else:
        scale = call("multiply", lhs_scale, rhs_scale)
    return call(
        "qnn.requantize", call("multiply", a, b), scale, const(0, "int32"), *target, axis=lhs_axis,
        out_dtype=tensor_type(lhs).dtype,
    )  # fmt: skip


def _concatenate_type(
    data: tuple[TensorType, ...],
    input_scales: tuple[TensorType, ...],
    input_zero_points: tuple[TensorType, ...],
    output_scale: TensorType,
    output_zero_point: TensorType,
    *,
    axis: int,
) -> TensorType:
    if not len(data) == len(input_scales) == len(input_zero_points):
        raise TypeInferenceError(
            f"{len(data)} tensors, {len(input_scales)} scales and "
            f"{len(input_zero_points)} zero points do not belong together"
        )
    pairs = zip(input_scales, input_zero_points, strict=True)
    require_scalars(*pairs, (output_scale, output_zero_point))
    joined = get("concatenate").infer(data, axis=axis)
    require_dtype(joined, ("int8", "uint8", "int16", "int32"), "data")
    return TensorType(joined.shape, joined.dtype)


def _as_concatenate(
    data: tuple[Expr, ...],
    input_scales: tuple[Expr, ...],
    input_zero_points: tuple[Expr, ...],
    output_scale: Expr,
    output_zero_point: Expr,
    *,
    axis: int,
) -> Expr:
    parts = []
    for each, scale, zero_point in zip(data, input_scales, input_zero_points, strict=True):
        if same_value(scale, output_scale) and same_value(zero_point, output_zero_point):
            parts.append(each)
            continue
        parameters = (scale, zero_point, output_scale, output_zero_point)
        parts.append(call("qnn.requantize", each, *parameters, out_dtype=tensor_type(each).dtype))
    return call("concatenate", parts, axis=axis)


@relay_op(
    "qnn.concatenate", traits=(Rescales, Quantized),
    infer=_concatenate_type,
    decompose=_as_concatenate,
    samples=[
        sample([_LEFT, tensor((2, 4), "uint8", low=0, high=255)],
               [np.array(0.5, np.float32), np.array(0.25, np.float32)],
               [np.array(1, np.int32), np.array(2, np.int32)], *_pair(0.5, 1), axis=1),
        sample([_SIGNED], [np.array(0.1, np.float32)], [np.array(0, np.int32)], *_pair(0.3, 4)),
    ],
)  # fmt: skip
def concatenate(
    data: tuple[Array, ...],
    input_scales: tuple[Array, ...],
    input_zero_points: tuple[Array, ...],
    output_scale: Array,
    output_zero_point: Array,
    *,
    axis: int = 0,
) -> Array:
    """The tensors one after the other along `axis`, each requantized to the result's scale."""
    parts = [
        requantize(each, scale, zero, output_scale, output_zero_point, out_dtype=each.dtype)
        for each, scale, zero in zip(data, input_scales, input_zero_points, strict=True)
    ]
    return np.concatenate(parts, axis)


@builder("qnn.op.concatenate")
def build_concatenate(
    data: AnyValue,
    input_scales: AnyValue,
    input_zero_points: AnyValue,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int,
) -> Expr:
    """Build ``qnn.concatenate`` of a tuple or several expressions."""
    operands = [
        each if isinstance(each, Expr) or not isinstance(each, Iterable) else list(each)
        for each in (data, input_scales, input_zero_points)
    ]
    return call("qnn.concatenate", *operands, output_scale, output_zero_point, axis=axis)
