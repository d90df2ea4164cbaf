"""``torch.nn.functional.interpolate`` and what it was called before, as scripts call them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.import_context import ImportContext, SymInt
from serde.torch.ops.image.resize import resize, resize_nearest, resize_smoothly
from serde.torch.ops.table import OPS

Size = SymInt | tuple[SymInt, ...] | None
Factor = float | tuple[float, ...] | None


def _each(value: Size | Factor, rank: int) -> tuple[SymInt | float, ...] | None:
    """Return a value for every spatial axis, of one that holds for all or of several."""
    if value is None or isinstance(value, tuple):
        return value
    return (value,) * rank


def _interpolate(
    ctx: ImportContext,
    x: Expr,
    size: Size,
    scale_factor: Factor,
    mode: str,
    *,
    align_corners: bool = False,
    recompute: bool = False,
    antialias: bool = False,
) -> Expr:
    ctx.require_rank(x, 3, 5)
    rank = ctx.type(x).rank - 2
    wanted = _each(size, rank)
    lengths = None if wanted is None else [each for each in wanted if not isinstance(each, float)]
    factors = [
        float(each) for each in _each(scale_factor, rank) or () if not isinstance(each, Expr)
    ]
    if lengths is None and (recompute or mode == "area"):
        if len(factors) != rank or not all(map(math.isfinite, factors)):
            raise Unsupported(f"factors {factors} for {rank} axes")
        lengths = [
            math.floor(length * factor)
            for length, factor in zip(
                ctx.static_lengths(x, range(2, 2 + rank)), factors, strict=True
            )
        ]
    scales = factors if lengths is None else None
    if mode in ("nearest", "nearest-exact"):
        return resize_nearest(ctx, x, lengths, scales, exact=mode != "nearest")
    if mode == "area":
        return _average(ctx, x, lengths or (), rank)
    method = "cubic" if mode == "bicubic" else "linear"
    function = resize_smoothly if antialias else resize
    return function(ctx, x, lengths, scales, method=method, align_corners=align_corners)


def _average(ctx: ImportContext, x: Expr, lengths: Sequence[SymInt], rank: int) -> Expr:
    size = tuple(ctx.fixed(each) for each in lengths)
    if rank == 1:
        return relay.nn.adaptive_avg_pool1d(x, size)
    return (relay.nn.adaptive_avg_pool2d if rank == 2 else relay.nn.adaptive_avg_pool3d)(x, size)


@OPS.imports("aten::__interpolate")
def import_interpolate(
    ctx: ImportContext,
    input: Expr,
    *,
    size: Size = None,
    scale_factor: Factor = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Expr:
    return _interpolate(
        ctx,
        input,
        size,
        scale_factor,
        mode,
        align_corners=bool(align_corners),
        recompute=bool(recompute_scale_factor),
        antialias=antialias,
    )


@OPS.imports("aten::__upsample")
def import_upsample(
    ctx: ImportContext,
    input: Expr,
    *,
    size: Size = None,
    scale_factor: Factor = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Expr:
    corners = bool(align_corners)
    return _interpolate(ctx, input, size, scale_factor, mode, align_corners=corners)


@OPS.imports("aten::__upsample_nearest")
def import_upsample_nearest(
    ctx: ImportContext, input: Expr, *, size: Size = None, scale_factor: Factor = None
) -> Expr:
    return _interpolate(ctx, input, size, scale_factor, "nearest")


@OPS.imports("aten::__upsample_bilinear")
def import_upsample_bilinear(
    ctx: ImportContext, input: Expr, *, size: Size = None, scale_factor: Factor = None
) -> Expr:
    return _interpolate(ctx, input, size, scale_factor, "bilinear", align_corners=True)
