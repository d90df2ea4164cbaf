"""Sums of products of bytes, each less its zero point, as ONNX defines them: in int32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Expr, TensorType, call, get, relay_op, sample, tensor_type
from serde.relay.ir.shapes import broadcast, join_dim
from serde.relay.ir.traits import Quantized
from serde.relay.ir.work import PRODUCT, filters
from serde.relay.op.qnn.parameters import require_dtype
from serde.relay.op.qnn.product import int8, uint8
from serde.relay.op.qnn.sums import sum_products

__all__ = ["body_of_convolution"]

_BYTES = ("int8", "uint8")
_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _require_sides(sides: Sequence[TensorType], zero_points: Sequence[TensorType | None]) -> None:
    for side, zero_point in zip(sides, zero_points, strict=True):
        require_dtype(side, _BYTES, "data")
        if zero_point is not None and zero_point.dtype != side.dtype:
            raise TypeInferenceError(f"expected a zero point of {side.dtype}, found {zero_point!r}")


def _subtract_zero_point(data: Expr, zero_point: Expr | None) -> Expr:
    """Return numbers less their zero point in int32."""
    level = call("cast", data, dtype="int32")
    if zero_point is None:
        return level
    return call("subtract", level, call("cast", zero_point, dtype="int32"))


def _subtract_in_int16(data: Array, zero_point: Array | None) -> Array:
    """Return the same as int16, which holds every difference of bytes."""
    return data.astype(np.int16) - (0 if zero_point is None else zero_point.astype(np.int16))


def _fits(side: TensorType, zero_point: TensorType) -> bool:
    """Whether a zero point broadcasts to its side, and makes no axis of it longer."""
    joint = broadcast(side.shape, zero_point.shape)
    return len(joint) == side.rank and not any(
        isinstance(length, int) and isinstance(own, int) and length != own
        for length, own in zip(joint, side.shape, strict=True)
    )


def _matmul_type(
    a: TensorType, b: TensorType, a_zero_point: TensorType | None, b_zero_point: TensorType | None
) -> TensorType:
    _require_sides((a, b), (a_zero_point, b_zero_point))
    for side, zero_point in ((a, a_zero_point), (b, b_zero_point)):
        if zero_point is not None and not _fits(side, zero_point):
            raise TypeInferenceError(f"a zero point {zero_point!r} does not fit {side!r}")
    if not (a.rank >= 1 and b.rank == 2) and not a.rank == b.rank == 3:
        raise TypeInferenceError(f"cannot multiply {a!r} by {b!r}")
    name = "nn.matmul" if b.rank == 2 else "nn.batch_matmul"
    attrs = {"out_dtype": np.dtype(np.int32), "transpose_a": False, "transpose_b": False}
    if b.rank == 2:
        attrs["units"] = None
    result: TensorType = get(name).infer(a, b, **attrs)
    return result


def _decompose_matmul(
    a: Expr, b: Expr, a_zero_point: Expr | None, b_zero_point: Expr | None
) -> Expr:
    left, right = _subtract_zero_point(a, a_zero_point), _subtract_zero_point(b, b_zero_point)
    if isinstance(b.type, TensorType) and b.type.rank == 3:
        return call("nn.batch_matmul", left, right, transpose_a=False, transpose_b=False)
    return call("nn.matmul", left, right, units=None, transpose_a=False, transpose_b=False)


@relay_op(
    "serde.matmul_integer",
    traits=(PRODUCT, Quantized),
    infer=_matmul_type,
    decompose=_decompose_matmul,
    samples=[
        sample(uint8(3, 4), int8(4, 5)),
        sample(uint8(2, 3, 4), uint8(4, 5), np.uint8(7), np.uint8(130)),
        sample(int8(3, 4), int8(4, 5), np.int8(-3), np.arange(5, dtype=np.int8)),
        sample(uint8(2, 3, 4), int8(2, 4, 5), np.uint8(7)),
        sample(uint8(3, 4), uint8(4, 2), np.arange(3, dtype=np.uint8).reshape(3, 1)),
    ],
)
def matmul_integer(
    a: Array, b: Array, a_zero_point: Array | None, b_zero_point: Array | None
) -> Array:
    """``y = (a - a_zero_point) @ (b - b_zero_point)`` in int32, as in ONNX.

    Args:
        a: Bytes, (..., rows, depth); a vector is a row.
        b: Bytes, (depth, columns), or a batch of such matrices if `a` is one.
        a_zero_point: In the dtype of `a`, of a shape that broadcasts to it; zero if left out.
        b_zero_point: Likewise of `b`.
    """
    left, right = _subtract_in_int16(a, a_zero_point), _subtract_in_int16(b, b_zero_point)
    exact = np.matmul(left.astype(np.float64), right.astype(np.float64))
    return exact.astype(np.int64).astype(np.int32)


def _conv_type(
    data: TensorType,
    weight: TensorType,
    data_zero_point: TensorType | None,
    weight_zero_point: TensorType | None,
    **attrs: AnyValue,
) -> TensorType:
    _require_sides((data, weight), (data_zero_point, weight_zero_point))
    if data_zero_point is not None and data_zero_point.rank:
        raise TypeInferenceError(f"expected one zero point of the data, found {data_zero_point!r}")
    if weight_zero_point is not None and weight_zero_point.rank:
        if weight_zero_point.rank > 1:
            raise TypeInferenceError(f"expected a vector, found {weight_zero_point!r}")
        join_dim(weight_zero_point.shape[0], weight.shape[0])
    result: TensorType = get(_conv_name(data)).infer(data, weight, **_conv_attrs(data.rank, attrs))
    return result


def _conv_name(data: TensorType) -> str:
    ndim = data.rank - 2
    if ndim not in _SPATIAL:
        raise TypeInferenceError(f"cannot convolve {data!r}: expected 1 to 3 spatial axes")
    return f"nn.conv{ndim}d"


def _conv_attrs(rank: int, attrs: dict[str, AnyValue]) -> dict[str, AnyValue]:
    axes = _SPATIAL[rank - 2]
    layouts = {"data_layout": "NC" + axes, "kernel_layout": "OI" + axes, "out_layout": ""}
    fixed = {"channels": None, "kernel_size": None, "out_dtype": np.dtype(np.int32)}
    return {**attrs, **layouts, **fixed}


def body_of_convolution(*, floats: bool = True) -> Callable[..., Expr]:
    """Return what a convolution of bytes is made of, in float64 or else in integers."""

    def convolve(
        data: Expr,
        weight: Expr,
        data_zero_point: Expr | None,
        weight_zero_point: Expr | None,
        **attrs: AnyValue,
    ) -> Expr:
        rank, point = tensor_type(data).rank, weight_zero_point
        if point is not None and tensor_type(point).rank:
            point = call("expand_dims", point, axis=1, num_newaxis=rank - 1)
        plain = _conv_attrs(rank, attrs)
        points = data_zero_point, point
        name = _conv_name(tensor_type(data))
        return sum_products(name, data, weight, points, floats=floats, **plain)

    return convolve


@relay_op(
    "serde.conv_integer",
    traits=(filters(), Quantized),
    infer=_conv_type,
    decompose=body_of_convolution(),
    samples=[
        sample(uint8(1, 3, 6, 5), uint8(4, 3, 3, 2), np.uint8(120), np.uint8(99),
               strides=(2, 1), padding=(1, 2, 0, 1), dilation=(1, 1)),
        sample(uint8(1, 4, 5, 5), int8(6, 2, 3, 3), np.uint8(3), groups=2,
               strides=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1)),
        sample(uint8(1, 3, 5, 5), uint8(2, 3, 3, 3), np.uint8(3),
               np.array([5, 130], np.uint8),
               strides=(1, 1), padding=(1, 1, 1, 1), dilation=(1, 1)),
        sample(uint8(2, 3, 7), uint8(2, 3, 3), np.uint8(9), None,
               strides=(2,), padding=(1, 0), dilation=(2,)),
        sample(uint8(1, 2, 4, 4, 3), uint8(2, 2, 2, 2, 2),
               strides=(1, 1, 1), padding=(0,) * 6, dilation=(1, 1, 1)),
    ],
)  # fmt: skip
def conv_integer(
    data: Array, weight: Array, data_zero_point: Array | None, weight_zero_point: Array | None,
    *, strides: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...],
    groups: int = 1,
) -> Array:  # fmt: skip
    """``y = conv(data - data_zero_point, weight - weight_zero_point)`` in int32, as in ONNX.

    Args:
        data: Bytes, (batch, channels, ...) with one to three spatial axes.
        weight: Bytes, (outputs, channels over groups, ...).
        data_zero_point: In the dtype of `data`, what padding consists of; zero if left out.
        weight_zero_point: In the dtype of `weight`, one or one for each output.
        strides: Step of each axis.
        padding: Of all axes before them, and then behind them.
        dilation: Distance of the elements of a filter on each axis.
        groups: How many groups channels form.
    """
    point = weight_zero_point
    if point is not None and point.ndim:
        point = point.reshape(-1, *[1] * (weight.ndim - 1))
    attrs = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    kind = _conv_name(TensorType(data.shape, "int16"))
    sides = _subtract_in_int16(data, data_zero_point), _subtract_in_int16(weight, point)
    result: Array = get(kind).kernel(*sides, **_conv_attrs(data.ndim, attrs))
    return result
