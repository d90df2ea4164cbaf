"""Convolutions with what follows them, and layers with the channels behind."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.conv.direct import AutoPad, import_conv
from serde.onnx.ops.microsoft.activation import activated
from serde.onnx.ops.pool.window import import_max_pool
from serde.onnx.ops.qnn.integer import import_qlinear_conv
from serde.onnx.ops.table import MICROSOFT
from serde.relay.ir.expr import Expr

__all__ = ["channels_behind", "channels_first"]


def channels_first(ctx: ImportContext, x: Expr) -> Expr:
    """Return a tensor whose channels are behind as one with them before the other axes."""
    rank = ctx.type(x).rank
    return relay.transpose(x, axes=[0, rank - 1, *range(1, rank - 1)])


def channels_behind(ctx: ImportContext, x: Expr) -> Expr:
    """Return the inverse."""
    rank = ctx.type(x).rank
    return relay.transpose(x, axes=[0, *range(2, rank), 1])


@MICROSOFT.imports("FusedConv")
def import_fused_conv(
    ctx: ImportContext,
    x: Expr,
    w: Expr,
    b: Expr | None = None,
    z: Expr | None = None,
    *,
    activation: str = "",
    activation_params: tuple[float, ...] = (),
    auto_pad: AutoPad = "NOTSET",
    dilations: tuple[int, ...] = (),
    group: int = 1,
    kernel_shape: tuple[int, ...] = (),
    pads: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Expr:
    """Another tensor is added before the activation."""
    found = import_conv(
        ctx,
        x,
        w,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    total = found if z is None else relay.add(found, z)
    return activated(ctx, total, activation, activation_params)


@MICROSOFT.imports("NhwcConv")
def import_nhwc_conv(
    ctx: ImportContext,
    x: Expr,
    w: Expr,
    b: Expr | None = None,
    *,
    auto_pad: AutoPad = "NOTSET",
    dilations: tuple[int, ...] = (),
    group: int = 1,
    kernel_shape: tuple[int, ...] = (),
    pads: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Expr:
    """The data alone has its channels behind; the weight is as in Conv."""
    found = import_conv(
        ctx,
        channels_first(ctx, x),
        w,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return channels_behind(ctx, found)


@MICROSOFT.imports("NhwcMaxPool")
def import_nhwc_max_pool(
    ctx: ImportContext,
    x: Expr,
    *,
    kernel_shape: tuple[int, ...],
    auto_pad: AutoPad = "NOTSET",
    ceil_mode: bool = False,
    dilations: tuple[int, ...] = (),
    pads: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Expr:
    if ctx.wants(1):
        raise Unsupported("the places of the greatest values")
    found = import_max_pool(
        ctx,
        channels_first(ctx, x),
        kernel_shape=kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        dilations=dilations,
        pads=pads,
        strides=strides,
    )
    return channels_behind(ctx, found[0] if isinstance(found, list) else found)


@MICROSOFT.imports("QLinearConv")
def import_microsoft_qlinear_conv(
    ctx: ImportContext,
    x: Expr,
    x_scale: Expr,
    x_zero_point: Expr,
    w: Expr,
    w_scale: Expr,
    w_zero_point: Expr,
    y_scale: Expr,
    y_zero_point: Expr,
    b: Expr | None = None,
    *,
    auto_pad: AutoPad = "NOTSET",
    channels_last: bool = False,
    dilations: tuple[int, ...] = (),
    group: int = 1,
    kernel_shape: tuple[int, ...] = (),
    pads: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Expr:
    """The data may have its channels behind; the weight is as in ONNX."""
    found = import_qlinear_conv(
        ctx,
        channels_first(ctx, x) if channels_last else x,
        x_scale,
        x_zero_point,
        w,
        w_scale,
        w_zero_point,
        y_scale,
        y_zero_point,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return channels_behind(ctx, found) if channels_last else found
