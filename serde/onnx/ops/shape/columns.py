"""Images put together from columns of their blocks."""

from __future__ import annotations

from serde.onnx.context import ImportContext as ImportCtx
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim
from serde.relay.expr import Expr
from serde.relay.registry import call
from serde.relay.shapes import split_padding


@OPS.exports("serde.col2im", since=18)
def export_col2im(
    ctx: Ctx,
    data: Value,
    *,
    image_shape: tuple[Dim, ...],
    block_shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    padding: tuple[int, ...],
    dilation: tuple[int, ...] | None,
) -> Value:
    before, after = split_padding(padding, len(block_shape))
    return ctx.emit(
        "Col2Im",
        data,
        ctx.shape(image_shape),
        ctx.ints(block_shape),
        strides=None if strides is None else list(strides),
        pads=[*before, *after],
        dilations=None if dilation is None else list(dilation),
    )


@OPS.imports("Col2Im", since=18)
def import_col2im(
    ctx: ImportCtx,
    x: Expr,
    image_shape: Expr,
    block_shape: Expr,
    *,
    dilations: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Expr:
    return call(
        "serde.col2im",
        x,
        image_shape=ctx.ints(image_shape),
        block_shape=ctx.ints(block_shape),
        strides=strides,
        padding=pads or (0,),
        dilation=dilations,
    )
