"""Resizing by the names of its kernels, to lengths or by factors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any as AnyValue

from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.relay.ir import Dim, Expr, call
from serde.relay.op.image.interpolation import Interpolation
from serde.relay.op.image.resampling import Resampling
from serde.relay.op.image.resize import ImageResize
from serde.torch.ops.conv.windows import SPATIAL
from serde.torch.ops.image.interpolation import Resizing
from serde.torch.ops.image.resize import Scales, is_ratio, resize
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value
from serde.walk.takes import Takes

Size = SymInt | tuple[SymInt, ...] | None
Factor = float | tuple[float, ...] | None


@dataclass(frozen=True, kw_only=True)
class _Factors:
    """Factors of the axes, each by its name."""

    scales: float | None = None
    scales_d: float | None = None
    scales_h: float | None = None
    scales_w: float | None = None

    def of(self, rank: int) -> Scales:
        """Return those of the spatial axes."""
        named = [self.scales_d, self.scales_h, self.scales_w]
        return [self.scales] if rank == 1 else named[3 - rank :]


def _register(name: str, mode: str, *, antialias: bool = False) -> None:
    """Register importers of a kernel: to lengths or by factors, and by both."""
    read: Callable[..., Expr] = partial(resize, mode=mode, antialias=antialias)
    corners: dict[str, AnyValue] = {"align_corners": False} if mode.startswith("nearest") else {}

    def import_vec(
        ctx: Import,
        input: Expr,
        *,
        output_size: tuple[SymInt, ...] | None = None,
        align_corners: bool,
        scale_factors: tuple[float, ...] | None = None,
    ) -> Expr:
        return read(ctx, input, output_size, scale_factors, align_corners=align_corners)

    def import_sized(
        ctx: Import,
        self: Expr,
        *,
        output_size: tuple[SymInt, ...],
        align_corners: bool,
        factors: _Factors,
    ) -> Expr:
        scales = factors.of(ctx.type(self).rank - 2)
        return read(ctx, self, output_size, scales, align_corners=align_corners)

    OPS.imports(f"aten::{name}.vec")(partial(import_vec, **corners))
    OPS.imports(f"aten::{name}")(partial(import_sized, **corners))


for _name, _mode in {
    "upsample_nearest1d": "nearest",
    "upsample_nearest2d": "nearest",
    "upsample_nearest3d": "nearest",
    "_upsample_nearest_exact1d": "nearest-exact",
    "_upsample_nearest_exact2d": "nearest-exact",
    "_upsample_nearest_exact3d": "nearest-exact",
    "upsample_linear1d": "linear",
    "upsample_bilinear2d": "bilinear",
    "upsample_trilinear3d": "trilinear",
    "upsample_bicubic2d": "bicubic",
}.items():
    _register(_name, _mode)
_register("_upsample_bilinear2d_aa", "bilinear", antialias=True)
_register("_upsample_bicubic2d_aa", "bicubic", antialias=True)


def _each(value: Size | Factor, rank: int) -> tuple[SymInt | float, ...] | None:
    """Return a value for every spatial axis, of one that holds for all or of several."""
    if value is None or isinstance(value, tuple):
        return value
    return (value,) * rank


@OPS.imports("aten::__interpolate", "aten::__upsample", "aten::__upsample_nearest")
def import_interpolate(
    ctx: Import, input: Expr,
    *, size: Size = None, scale_factor: Factor = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Expr:  # fmt: skip
    ctx.require_rank(input, 3, 5)
    rank = ctx.type(input).rank - 2
    wanted = _each(size, rank)
    lengths = None if wanted is None else [each for each in wanted if not isinstance(each, float)]
    factors = [
        float(each) for each in _each(scale_factor, rank) or () if not isinstance(each, Expr)
    ]
    if lengths is None and (recompute_scale_factor or mode == "area"):
        if len(factors) != rank or not all(map(math.isfinite, factors)):
            raise Unsupported(f"factors {factors} for {rank} axes")
        before = ctx.static_lengths(input, range(2, 2 + rank))
        pairs = zip(before, factors, strict=True)
        lengths = [math.floor(length * factor) for length, factor in pairs]
    if mode == "area":
        size = tuple(ctx.fixed(each) for each in lengths or ())
        return call(f"nn.adaptive_avg_pool{rank}d", input, output_size=size)
    return resize(
        ctx, input, lengths, factors if lengths is None else None, mode=mode,
        align_corners=bool(align_corners), antialias=antialias,
    )  # fmt: skip


OPS.imports("aten::__upsample_bilinear")(
    partial(import_interpolate, mode="bilinear", align_corners=True)
)


def _export_resize(
    ctx: Export,
    data: Value,
    *,
    rank: int,
    size: tuple[Dim, ...] | None,
    roi: tuple[float, ...] | None,
    resize: ImageResize,
) -> Value:
    region = _spans(roi or (0.0,) * (2 * rank))
    resizing = Resizing(resize.interpolation, 1e-5, region, resize.extrapolation_value)
    return resizing.write(ctx, data, range(2, 2 + rank), size or ())


for _rank in SPATIAL:
    OPS.exports(f"image.resize{_rank}d")(partial(_export_resize, rank=_rank))


def _spans(ends: Sequence[AnyValue]) -> list[tuple[AnyValue, AnyValue]]:
    """Return the start and end of each axis of all starts and then all ends."""
    half = len(ends) // 2
    return list(zip(ends[:half], ends[half:], strict=True))


@OPS.exports("dyn.image.resize2d")
def export_dyn_resize2d(
    ctx: Export, data: Value, size: Value, roi: Value, *, resize: ImageResize
) -> Value:
    bounds = [0.0] * 4
    if resize.coordinate_transformation_mode == "tf_crop_and_resize":
        bounds = [float(each) for each in ctx.constant(roi).reshape(-1)]
    sizes = [ctx.call("int", ctx.index(size, place)) for place in range(2)]
    region = _spans(bounds)
    resizing = Resizing(resize.interpolation, 1e-5, region, resize.extrapolation_value)
    return resizing.write(ctx, data, (2, 3), sizes)


_Span = tuple[AnyValue, tuple[AnyValue, AnyValue], AnyValue]
"""The length that an axis gets, the part of it that is read, and its factor, if there is one."""


def _changed_axes(
    ctx: Export,
    data: Value,
    roi: Value | None,
    scales: Value | None,
    sizes: Value | None,
    resize: Resampling,
) -> dict[int, _Span]:
    """Return the axes that something happens to."""
    shape, wanted = ctx.type(data).shape, ctx.result_type().shape
    named = [axis % len(shape) for axis in resize.axes] if resize.axes else list(range(len(shape)))
    cropped, every = resize.mode == "tf_crop_and_resize", range(len(named))
    bounds: list[tuple[AnyValue, AnyValue]] = [(0.0, 1.0)] * len(named)
    if cropped and roi is not None:
        bounds = _spans([ctx.call("float", ctx.index(roi, i)) for i in range(2 * len(named))])
    elif cropped and resize.region is not None:
        bounds = _spans(resize.region)
    ratios: Sequence[AnyValue] = resize.scale or [None] * len(named)
    lengths: list[AnyValue] = [wanted[axis] for axis in named]
    if sizes is not None:
        lengths = [ctx.call("int", ctx.index(sizes, i)) for i in every]
    if scales is not None:
        ratios = [ctx.call("float", ctx.index(scales, i)) for i in every]
        name = ctx.helper("floored_length")
        pairs = zip(named, ratios, strict=True)
        lengths = [ctx.call(name, ctx.size(data, axis), ratio) for axis, ratio in pairs]
    spans = dict(zip(named, zip(lengths, bounds, ratios, strict=True), strict=True))
    return {axis: each for axis, each in spans.items() if not _is_kept(shape[axis], *each)}


def _is_kept(
    before: Dim, length: AnyValue, bounds: tuple[AnyValue, AnyValue], by: AnyValue
) -> bool:
    return length == before and bounds == (0.0, 1.0) and by in (None, 1)


@OPS.exports("serde.resize", takes=Takes(antialias=False, policy="stretch"))
def export_serde_resize(
    ctx: Export,
    data: Value,
    roi: Value | None,
    scales: Value | None,
    sizes: Value | None,
    *,
    resize: Resampling,
) -> Value:
    """Axes that nothing happens to are left alone."""
    shape, wanted = ctx.type(data).shape, ctx.result_type().shape
    spans = _changed_axes(ctx, data, roi, scales, sizes, resize)
    if not spans:
        return data
    plain = all(is_ratio(shape[axis], wanted[axis], by) for axis, (_, _, by) in spans.items())
    spatial = range(2, len(shape))
    smooth = resize.method != "nearest" and resize.mode != "tf_crop_and_resize"
    if plain and smooth and sizes is None and spans.keys() < {*spatial}:
        spans = {axis: spans.get(axis, (wanted[axis], (0.0, 1.0), 1)) for axis in spatial}
    axes = sorted(spans)
    given, region, factors = zip(*(spans[axis] for axis in axes), strict=True)
    how = Interpolation(
        "nearest_neighbor" if resize.method == "nearest" else resize.method, resize.mode,
        resize.rounding, resize.cubic_alpha, resize.exclude_outside,
    )  # fmt: skip
    resizing = Resizing(
        how, 0.0, region, resize.extrapolation_value, None if plain else factors, rounds=True
    )
    return resizing.write(ctx, data, axes, given)
