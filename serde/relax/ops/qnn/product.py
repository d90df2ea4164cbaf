"""Products and convolutions of quantised numbers: those of the integers without zero points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

import serde.allocation as allocation
from serde.errors import Unsupported
from serde.relax.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Constant, Expr, tensor_type
from serde.relay.ir.registry import call
from serde.relay.op.qnn.conv import channel_zero_point

__all__: list[str] = []

DType = np.dtype[AnyValue]


_SPATIAL = ("W", "HW", "DHW")


def _shifted(x: Expr, zero: Expr | None, dtype: str) -> Expr:
    """Return integers as differences from their zero point, in a wider dtype."""
    wide = call("cast", x, dtype=dtype)
    if zero is None or (isinstance(zero, Constant) and not zero.data.any()):
        return wide
    if tensor_type(zero).dtype != dtype:
        zero = call("cast", zero, dtype=dtype)
    return call("subtract", wide, zero)


def _scalar(zero: Expr) -> Expr:
    return zero if not tensor_type(zero).rank else call("reshape", zero, newshape=())


def _filter_zero(zero: Expr, weight: Expr, layout: str, first: str) -> Expr:
    """Return the zero point of each output channel in a shape that broadcasts with the weight.

    Raises:
        Unsupported: How many channels there are is not known.
    """
    if not tensor_type(zero).rank:
        return zero
    lengths = tensor_type(weight).concrete_shape
    count = tensor_type(zero).shape[0]
    if lengths is None or not isinstance(count, int):
        raise Unsupported("zero points of an open number of channels")
    places = channel_zero_point(allocation.arange(count), lengths, layout, first)
    return call("take", zero, Constant(np.asarray(places)), axis=0, mode="clip")


def _sums(out_dtype: DType | None) -> str:
    """Return the dtype in which products are summed; narrower ones are cut off that."""
    return "int64" if out_dtype is not None and out_dtype.name == "int64" else "int32"


def _narrowed(sums: Expr, dtype: DType | None) -> Expr:
    if dtype is None or tensor_type(sums).dtype == dtype.name:
        return sums
    return call("cast", sums, dtype=dtype.name)


def _make_convolution(op: str, filters: str) -> Callable[..., Expr]:
    """Return the expansion of a convolution whose filters are along the axis of that letter."""

    def expand(
        data: Expr,
        weight: Expr,
        input_zero_point: Expr,
        weight_zero_point: Expr,
        input_scale: Expr,
        weight_scale: Expr,
        *,
        out_dtype: DType | None,
        kernel_layout: str,
        **window: AnyValue,
    ) -> Expr:
        work = _sums(out_dtype)
        zero = _filter_zero(weight_zero_point, weight, kernel_layout, filters)
        sides = _shifted(data, _scalar(input_zero_point), work), _shifted(weight, zero, work)
        found = call(op, *sides, kernel_layout=kernel_layout, out_dtype=work, **window)
        return _narrowed(found, out_dtype)

    return expand


for _op, _filters in (("nn.conv2d", "O"), ("nn.conv2d_transpose", "I")):
    OPS.expands(_op.replace("nn.", "qnn."))(_make_convolution(_op, _filters))


@OPS.expands("qnn.dense")
def expand_dense(
    data: Expr,
    weight: Expr,
    input_zero_point: Expr,
    weight_zero_point: Expr,
    input_scale: Expr,
    weight_scale: Expr,
    *,
    units: Dim | None,
    out_dtype: DType | None,
) -> Expr:
    work = _sums(out_dtype)
    zero = weight_zero_point
    if tensor_type(zero).rank:
        zero = call("expand_dims", zero, axis=1)
    sides = _shifted(data, _scalar(input_zero_point), work), _shifted(weight, zero, work)
    return _narrowed(call("nn.dense", *sides, units=units, out_dtype=work), out_dtype)


@OPS.expands("qnn.batch_matmul")
def expand_batch_matmul(
    x: Expr,
    y: Expr,
    x_zero_point: Expr,
    y_zero_point: Expr,
    x_scale: Expr,
    y_scale: Expr,
    *,
    out_dtype: DType | None,
    transpose_a: bool,
    transpose_b: bool,
) -> Expr:
    sides = (
        _shifted(x, _scalar(x_zero_point), "int32"),
        _shifted(y, _scalar(y_zero_point), "int32"),
    )
    return call(
        "nn.batch_matmul",
        *sides,
        out_dtype="int32",
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )


@OPS.expands("serde.conv_integer")
def expand_conv_integer(
    data: Expr,
    weight: Expr,
    data_zero_point: Expr | None,
    weight_zero_point: Expr | None,
    **window: AnyValue,
) -> Expr:
    spatial = tensor_type(data).rank - 2
    zero = weight_zero_point
    if zero is not None and tensor_type(zero).rank:
        zero = call("expand_dims", zero, axis=1, num_newaxis=spatial + 1)
    axes = _SPATIAL[spatial - 1]
    return call(
        f"nn.conv{spatial}d",
        _shifted(data, data_zero_point, "int32"),
        _shifted(weight, zero, "int32"),
        data_layout="NC" + axes,
        kernel_layout="OI" + axes,
        out_dtype="int32",
        **window,
    )
