"""Maximum and mean over sliding windows, over all of an image and over adaptive parts."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.conv.windows import arrange, cast, has_plain_layouts, sum_dtype
from serde.relax.ops.table import OPS
from serde.relay.ir.shapes import split_padding
from serde.walk.expansion.pool import USUAL, global_pool

__all__: list[str] = []


@OPS.exports("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", when=has_plain_layouts)
def export_max_pool(
    ctx: ExportContext,
    data: Value,
    *,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    layout: str,
    out_layout: str,
    ceil_mode: bool,
) -> Value:
    return _emit_pool(
        ctx, "max", data, layout, out_layout, pool_size, padding,
        strides=list(strides), dilation=list(dilation), ceil_mode=ceil_mode,
    )  # fmt: skip


def _emit_pool(
    ctx: ExportContext,
    kind: str,
    data: Value,
    layout: str,
    out_layout: str,
    pool_size: tuple[int, ...],
    padding: tuple[int, ...],
    **attrs: AnyValue,
) -> Value:
    rank = len(pool_size)
    plain = USUAL[rank]
    before, after = split_padding(padding, rank)
    made = ctx.emit(
        f"nn.{kind}_pool{rank}d",
        arrange(ctx, data, layout, plain),
        pool_size=list(pool_size),
        padding=[*before, *after],
        layout=plain,
        **attrs,
    )
    return arrange(ctx, made, plain, out_layout or layout)


@OPS.exports("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d", when=has_plain_layouts)
def export_avg_pool(
    ctx: ExportContext,
    data: Value,
    *,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    layout: str,
    out_layout: str,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Value:
    """Means of half precision are summed in float32."""
    dtype = ctx.type(data).dtype
    wide = sum_dtype(dtype, None)
    made = _emit_pool(
        ctx, "avg", cast(ctx, data, dtype, wide), layout, out_layout, pool_size, padding,
        strides=list(strides), dilation=list(dilation), ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
    )  # fmt: skip
    return cast(ctx, made, wide, dtype)


OPS.expands("nn.global_max_pool2d")(global_pool("max"))
OPS.expands("nn.global_avg_pool2d")(global_pool("mean"))
