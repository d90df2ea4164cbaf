"""Pooling over images whose channels come last; averages leave padding out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.records import dataclass, replace
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, TensorType, is_float, split_padding, tensor_type
from serde.relay.op.pool.reduction import Pooling
from serde.tflite.ops.conv import padded
from serde.tflite.ops.table import INTEGERS, OPS, Export, Import, Value
from serde.tflite.ops.window import padding_of, same_padding
from serde.tflite.quantization import limited
from serde.walk.expansion.pool import pool_expansion
from serde.walk.expansion.tensors import fixed_shape

__all__ = ["PoolOptions"]


@dataclass(frozen=True, kw_only=True)
class PoolOptions:
    """Options that the poolings share."""

    padding: int = 0
    stride_w: int = 0
    stride_h: int = 0
    filter_width: int = 0
    filter_height: int = 0
    fused_activation_function: int = 0

    def window(self, ctx: Import, x: Expr) -> dict[str, AnyValue]:
        """Return windows as Relay's attributes have them."""
        size, strides = (self.filter_height, self.filter_width), (self.stride_h, self.stride_w)
        pads = padding_of(ctx, x, self.padding, size, strides)
        return {"pool_size": size, "strides": strides, "padding": pads, "layout": "NHWC"}


@OPS.imports("AVERAGE_POOL_2D")
def import_average_pool_2d(ctx: Import, x: Expr, *, pool: PoolOptions) -> Expr:
    found = relay.nn.avg_pool2d(x, **pool.window(ctx, x))
    return ctx.activated(found, pool.fused_activation_function)


@OPS.imports("MAX_POOL_2D")
def import_max_pool_2d(ctx: Import, x: Expr, *, pool: PoolOptions) -> Expr:
    found = relay.nn.max_pool2d(x, **pool.window(ctx, x))
    return ctx.activated(found, pool.fused_activation_function)


@INTEGERS.imports("MAX_POOL_2D")
def import_integer_max_pool_2d(ctx: Import, x: Expr, *, pool: PoolOptions) -> Expr:
    """Codes are compared as they are."""
    found = relay.nn.max_pool2d(x, **pool.window(ctx, x))
    return limited(found, ctx.result(), pool.fused_activation_function)


@OPS.imports("L2_POOL_2D")
def import_l2_pool_2d(ctx: Import, x: Expr, *, pool: PoolOptions) -> Expr:
    found = relay.sqrt(relay.nn.avg_pool2d(relay.multiply(x, x), **pool.window(ctx, x)))
    return ctx.activated(found, pool.fused_activation_function)


def _is_written(node: Call) -> bool:
    """Whether windows are those of TFLite: not apart, no more of them, padding left out."""
    pool, type_ = node.attrs, node.args[0].type
    return (
        pool["layout"] == "NHWC"
        and not pool["out_layout"]
        and all(each == 1 for each in pool["dilation"])
        and not pool["ceil_mode"]
        and isinstance(type_, TensorType)
    )


def _write_pool(ctx: Export, data: Value, pool: Pooling, op: str, border: float) -> Value:
    size, strides = pool.pool_size, pool.strides
    data, kind = padded(ctx, data, pool.padding, size, strides, value=border)
    return ctx.emit(
        op, data, padding=kind, stride_h=strides[0], stride_w=strides[1], filter_height=size[0],
        filter_width=size[1], fused_activation_function=0,
    )  # fmt: skip


@OPS.exports("nn.max_pool2d", when=_is_written)
def export_max_pool2d(ctx: Export, data: Value, *, pool: Pooling) -> Value:
    dtype = ctx.type(data).dtype
    least = -np.inf if is_float(dtype) else np.iinfo(dtype).min
    return _write_pool(ctx, data, pool, "MAX_POOL_2D", least)


def _is_same(node: Call) -> bool:
    """Whether a mean leaves out the padding that TFLite has itself, or counts what it pads."""
    return _is_written(node) and (
        bool(node.attrs["count_include_pad"]) or not any(node.attrs["padding"]) or _pads_same(node)
    )


def _pads_same(node: Call) -> bool:
    pool, type_ = node.attrs, node.args[0].type
    lengths = type_.shape[1:3] if isinstance(type_, TensorType) else ()
    pairs = list(zip(*split_padding(pool["padding"], 2), strict=True))
    return same_padding(lengths, pool["pool_size"], pool["strides"]) == pairs


@OPS.exports("nn.avg_pool2d", when=_is_same)
def export_avg_pool2d(ctx: Export, data: Value, *, pool: Pooling, count_include_pad: bool) -> Value:
    """Padding that counts is written as zeros around the image."""
    if count_include_pad and any(pool.padding):
        before, after = split_padding(pool.padding, 2)
        width = [(0, 0), *zip(before, after, strict=True), (0, 0)]
        data = ctx.spell(lambda x: relay.nn.pad(x, width), data)
        pool = replace(pool, padding=(0, 0, 0, 0))
    return _write_pool(ctx, data, pool, "AVERAGE_POOL_2D", 0.0)


def _global_writer(op: str) -> Callable[..., Value]:
    def write(ctx: Export, data: Value, *, layout: str) -> Value:
        return ctx.emit(op, data, ctx.ints([layout.index("H"), layout.index("W")]), keep_dims=True)

    return write


OPS.exports("nn.global_avg_pool2d", ignored=("out_layout",))(_global_writer("MEAN"))
OPS.exports("nn.global_max_pool2d", ignored=("out_layout",))(_global_writer("REDUCE_MAX"))


def _is_even(node: Call) -> bool:
    """Whether all windows of an adaptive pool are as large."""
    sizes, data = node.attrs["output_size"], tensor_type(node.args[0])
    if node.attrs["layout"] != "NHWC" or node.attrs["out_layout"] or not sizes:
        return False
    known = all(isinstance(n, int) for n in data.shape[1:3])
    return known and not any(n % m for n, m in zip(data.shape[1:3], sizes, strict=True))


def _export_adaptive(
    ctx: Export, data: Value, *, op: str, whole: str, output_size: tuple[int, ...]
) -> Value:
    if set(output_size) == {1}:
        return ctx.emit(whole, data, ctx.ints([1, 2]), keep_dims=True)
    lengths = zip(ctx.static_lengths(data, (1, 2)), output_size, strict=True)
    size = tuple(n // m for n, m in lengths)
    pool = Pooling(pool_size=size, strides=size, dilation=(1, 1), padding=(0,) * 4, layout="NHWC")
    return _write_pool(ctx, data, pool, op, 0.0)


_LAYOUTS = ("layout", "out_layout")
OPS.exports("nn.adaptive_avg_pool2d", when=_is_even, ignored=_LAYOUTS)(
    partial(_export_adaptive, op="AVERAGE_POOL_2D", whole="MEAN")
)
OPS.exports("nn.adaptive_max_pool2d", when=_is_even, ignored=_LAYOUTS)(
    partial(_export_adaptive, op="MAX_POOL_2D", whole="REDUCE_MAX")
)


def _over_two_axes(build: Callable[..., Expr]) -> Callable[..., Expr]:
    """Return what windows over one axis are made of: an axis of one element is added."""

    def expand(data: Expr, *, pool: Pooling, **more: AnyValue) -> Expr:
        at = pool.layout.index("W")
        before, after = split_padding(pool.padding, 1)
        found = build(
            relay.expand_dims(data, axis=at),
            pool_size=(1, *pool.pool_size),
            strides=(1, *pool.strides),
            dilation=(1, *pool.dilation),
            padding=(0, *before, 0, *after),
            layout=pool.layout.replace("W", "HW"),
            ceil_mode=pool.ceil_mode,
            **more,
        )
        return relay.squeeze(found, axis=[at])

    return expand


OPS.expands("nn.max_pool1d")(_over_two_axes(relay.nn.max_pool2d))


@OPS.expands("nn.avg_pool1d")
def expand_avg_pool1d(data: Expr, *, pool: Pooling, count_include_pad: bool) -> Expr:
    build = _over_two_axes(relay.nn.avg_pool2d)
    return build(data, pool=pool, count_include_pad=count_include_pad)


@OPS.expands("nn.avg_pool2d")
def expand_avg_pool2d(data: Expr, *, pool: Pooling, count_include_pad: bool) -> Expr:
    """Padding that is left out of a mean counts, and the mean is of fewer then."""
    if pool.ceil_mode or pool.out_layout or any(each != 1 for each in pool.dilation):
        raise Unsupported("windows that pass the edge, or whose elements lie apart")
    axes = [pool.layout.index(letter) for letter in "HW"]
    before, after = split_padding(pool.padding, 2)
    lengths, shares = fixed_shape(data, axes), []
    for n, k, s, b, a in zip(lengths, pool.pool_size, pool.strides, before, after, strict=True):
        starts = allocation.arange((n + b + a - k) // s + 1) * s - b
        shares.append(k / (np.minimum(starts + k, n) - np.maximum(starts, 0)))
    ratio, dtype = np.multiply.outer(*shares), tensor_type(data).dtype
    found = relay.nn.avg_pool2d(
        data, pool.pool_size, pool.strides, padding=pool.padding, layout=pool.layout,
        count_include_pad=True,
    )  # fmt: skip
    shape = [ratio.shape[axes.index(i)] if i in axes else 1 for i in range(4)]
    return relay.multiply(found, relay.const(ratio.reshape(shape), dtype))


@OPS.expands("nn.max_pool2d")
def expand_max_pool2d(data: Expr, *, pool: Pooling) -> Expr:
    """Windows that pass the edge see what is least there."""
    return relay.nn.max_pool2d(
        data, pool_size=pool.pool_size, strides=pool.strides, dilation=pool.dilation,
        padding=_with_ceiling(data, pool), layout=pool.layout, out_layout=pool.out_layout,
    )  # fmt: skip


def _with_ceiling(data: Expr, pool: Pooling) -> tuple[int, ...]:
    """Return the padding with which as many windows fit as a ceiling gives."""
    if not pool.ceil_mode or any(each != 1 for each in pool.dilation):
        raise Unsupported("windows whose elements lie apart")
    before, after = split_padding(pool.padding, 2)
    axes = [pool.layout.index(letter) for letter in "HW"]
    more = []
    for n, k, s, b, a in zip(
        fixed_shape(data, axes), pool.pool_size, pool.strides, before, after, strict=True
    ):
        count = -(-(n + b + a - k) // s) + 1
        count -= (count - 1) * s >= n + b
        more.append(max((count - 1) * s + k - n - b, a))
    return (*before, *more)


for _kind in ("max", "avg"):
    OPS.expands(f"nn.{_kind}_pool3d")(
        pool_expansion(_kind, lambda dtype, _kind: dtype, direct=False)
    )
