"""Resizing by the names of its kernels, to lengths or by factors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.relay.ir import Dim, Expr, TensorType, is_float
from serde.relay.op.image.interpolation import Interpolation
from serde.relay.op.image.resampling import Resampling
from serde.relay.op.image.resize import ImageResize
from serde.torch.ops.conv.windows import SPATIAL
from serde.torch.ops.image.interpolation import Resizing
from serde.torch.ops.image.resize import Scales, resize, resize_nearest, resize_smoothly
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value
from serde.torch.ops.written import cast
from serde.walk.takes import Takes


def _import_nearest_vec(
    ctx: Import,
    input: Expr,
    *,
    exact: bool,
    output_size: tuple[SymInt, ...] | None = None,
    scale_factors: tuple[float, ...] | None = None,
) -> Expr:
    return resize_nearest(ctx, input, output_size, scale_factors, exact=exact)


@dataclass(frozen=True, kw_only=True)
class _Factors:
    """Factors of the axes, each by its name."""

    scales: float | None = None
    scales_d: float | None = None
    scales_h: float | None = None
    scales_w: float | None = None

    def of(self, rank: int) -> Scales:
        """Return those of the spatial axes."""
        if rank == 1:
            return [self.scales]
        if rank not in (2, 3):
            raise Unsupported(f"a resizing of {rank} axes")
        return [self.scales_d, self.scales_h, self.scales_w][3 - rank :]


def _import_nearest(
    ctx: Import, self: Expr, *, exact: bool, output_size: tuple[SymInt, ...], factors: _Factors
) -> Expr:
    scales = factors.of(ctx.type(self).rank - 2)
    return resize_nearest(ctx, self, output_size, scales, exact=exact)


for _name, _exact in {"upsample_nearest": False, "_upsample_nearest_exact": True}.items():
    _names = [f"aten::{_name}{_rank}d" for _rank in (1, 2, 3)]
    OPS.imports(*(f"{each}.vec" for each in _names))(partial(_import_nearest_vec, exact=_exact))
    OPS.imports(*_names)(partial(_import_nearest, exact=_exact))


def _register(resizer: Callable[..., Expr], method: str, *names: str) -> None:
    """Register importers of kernels that may align corners: of lengths or factors, and of both."""

    @OPS.imports(*(f"{name}.vec" for name in names))
    def import_vec(
        ctx: Import,
        input: Expr,
        *,
        output_size: tuple[SymInt, ...] | None = None,
        align_corners: bool,
        scale_factors: tuple[float, ...] | None = None,
    ) -> Expr:
        return resizer(
            ctx, input, output_size, scale_factors, method=method, align_corners=align_corners
        )

    @OPS.imports(*names)
    def import_sized(
        ctx: Import,
        self: Expr,
        *,
        output_size: tuple[SymInt, ...],
        align_corners: bool,
        factors: _Factors,
    ) -> Expr:
        scales = factors.of(ctx.type(self).rank - 2)
        return resizer(ctx, self, output_size, scales, method=method, align_corners=align_corners)


_register(
    resize,
    "linear",
    "aten::upsample_linear1d",
    "aten::upsample_bilinear2d",
    "aten::upsample_trilinear3d",
)
_register(resize, "cubic", "aten::upsample_bicubic2d")
_register(resize_smoothly, "linear", "aten::_upsample_bilinear2d_aa")
_register(resize_smoothly, "cubic", "aten::_upsample_bicubic2d_aa")


def _finish(ctx: Export, written: object, source: str, dtype: str) -> Value:
    """Return what was written in a dtype."""
    result, work = written if isinstance(written, tuple) else (written, source)
    return cast(ctx, result, dtype, work)


def _make_resize_exporter(rank: int) -> Callable[..., Value]:
    def export_resize(
        ctx: Export,
        data: Value,
        *,
        size: tuple[Dim, ...] | None,
        roi: tuple[float, ...] | None,
        resize: ImageResize,
    ) -> Value:
        bounds = roi or (0.0,) * (2 * rank)
        region = [(bounds[i], bounds[rank + i]) for i in range(rank)]
        resizing = Resizing(resize.interpolation, 1e-5, region, resize.extrapolation_value)
        written = resizing.write(ctx, data, range(2, 2 + rank), size or ())
        return _finish(ctx, written, ctx.type(data).dtype, ctx.result_type().dtype)

    return export_resize


for _rank in SPATIAL:
    OPS.exports(f"image.resize{_rank}d")(_make_resize_exporter(_rank))


def _resize_at_run_time(
    ctx: Export, data: Value, sizes: Sequence[Value], resizing: Resizing
) -> Value:
    """Return images resized to lengths that are computed."""
    work = ctx.type(data).dtype
    if resizing.how.method != "nearest_neighbor" and work != "float64":
        data, work = cast(ctx, data, "float32"), "float32"
    result = resizing.write_axes(ctx, data, range(2, 2 + len(sizes)), sizes)
    return cast(ctx, result, ctx.result_type().dtype, work)


@OPS.exports("dyn.image.resize2d")
def export_dyn_resize2d(
    ctx: Export, data: Value, size: Value, roi: Value, *, resize: ImageResize
) -> Value:
    bounds = [0.0] * 4
    if resize.coordinate_transformation_mode == "tf_crop_and_resize":
        bounds = [float(each) for each in ctx.constant(roi).reshape(-1)]
    region = [(bounds[0], bounds[2]), (bounds[1], bounds[3])]
    sizes = [ctx.call("int", ctx.index(size, place)) for place in range(2)]
    resizing = Resizing(resize.interpolation, 1e-5, region, resize.extrapolation_value)
    return _resize_at_run_time(ctx, data, sizes, resizing)


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
    type_ = ctx.type(data)
    named = [axis % type_.rank for axis in resize.axes] if resize.axes else list(range(type_.rank))
    wanted = ctx.result_type()
    bounds: list[tuple[AnyValue, AnyValue]] = [(0.0, 1.0)] * len(named)
    cropped = resize.mode == "tf_crop_and_resize"
    if resize.region is not None and cropped:
        bounds = [(resize.region[i], resize.region[len(named) + i]) for i in range(len(named))]
    computed = sizes is not None or scales is not None or (roi is not None and cropped)
    if roi is not None and cropped:
        ends = [ctx.call("float", ctx.index(roi, i)) for i in range(2 * len(named))]
        bounds = [(ends[i], ends[len(named) + i]) for i in range(len(named))]
    ratios: Sequence[AnyValue] | None = _ratios(type_, named, resize.scale, wanted)
    lengths: list[AnyValue] = [wanted.shape[axis] for axis in named]
    if sizes is not None:
        lengths = [ctx.call("int", ctx.index(sizes, i)) for i in range(len(named))]
    if scales is not None:
        ratios = [ctx.call("float", ctx.index(scales, i)) for i in range(len(named))]
        name = ctx.helper("floored_length")
        pairs = zip(named, ratios, strict=True)
        lengths = [ctx.call(name, ctx.size(data, axis), ratio) for axis, ratio in pairs]
    kept = [
        i for i, axis in enumerate(named)
        if lengths[i] == type_.shape[axis]
        and bounds[i] == (0.0, 1.0)
        and (ratios is None or ratios[i] == 1)
    ]  # fmt: skip
    rest = [i for i in range(len(named)) if i not in kept]
    if not rest:
        return data
    order = sorted(rest, key=lambda i: named[i])
    name = "nearest_neighbor" if resize.method == "nearest" else resize.method
    how = Interpolation(
        name, resize.mode, resize.rounding, resize.cubic_alpha, resize.exclude_outside
    )
    resizing = Resizing(
        how,
        0.0,
        [bounds[i] for i in order],
        resize.extrapolation_value,
        None if ratios is None else [ratios[i] for i in order],
    )
    found = [named[i] for i in order]
    if not computed:
        given: list[Dim] = [wanted.shape[axis] for axis in found]
        spatial = list(range(2, type_.rank))
        if resizing.ratios is None and set(found) < set(spatial) and resize.method != "nearest":
            found, given = spatial, [wanted.shape[axis] for axis in spatial]
            resizing = Resizing(how, 0.0, [(0.0, 1.0)] * len(spatial), resize.extrapolation_value)
        written: object = resizing.write(ctx, data, found, given)
    else:
        work = type_.dtype
        if resize.method != "nearest" and work != "float64":
            data, work = cast(ctx, data, "float32"), "float32"
        written = resizing.write_axes(ctx, data, found, [lengths[i] for i in order]), work
    result, work = written if isinstance(written, tuple) else (written, type_.dtype)
    if not is_float(type_.dtype) and work != type_.dtype:
        limits = np.iinfo(type_.dtype)
        result = ctx.call("torch.round", result)
        result = ctx.call("torch.clamp", result, int(limits.min), int(limits.max))
    return cast(ctx, result, type_.dtype, work)


def _ratios(
    type_: TensorType, named: Sequence[int], scale: tuple[float, ...] | None, wanted: TensorType
) -> list[float] | None:
    """Return factors as they count, None where they are those of the lengths."""
    pairs = [(type_.shape[axis], wanted.shape[axis]) for axis in named]
    if scale is not None:
        exact = all(
            isinstance(old, int) and isinstance(new, int) and ratio * old == new
            for (old, new), ratio in zip(pairs, scale, strict=True)
        )
        return None if exact else [float(each) for each in scale]
    return None


Size = SymInt | tuple[SymInt, ...] | None
Factor = float | tuple[float, ...] | None


def _each(value: Size | Factor, rank: int) -> tuple[SymInt | float, ...] | None:
    """Return a value for every spatial axis, of one that holds for all or of several."""
    if value is None or isinstance(value, tuple):
        return value
    return (value,) * rank


def _interpolate(
    ctx: Import,
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


def _average(ctx: Import, x: Expr, lengths: Sequence[SymInt], rank: int) -> Expr:
    size = tuple(ctx.fixed(each) for each in lengths)
    if rank == 1:
        return relay.nn.adaptive_avg_pool1d(x, size)
    return (relay.nn.adaptive_avg_pool2d if rank == 2 else relay.nn.adaptive_avg_pool3d)(x, size)


@OPS.imports("aten::__interpolate")
def import_interpolate(
    ctx: Import,
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
        ctx, input, size, scale_factor, mode, align_corners=bool(align_corners),
        recompute=bool(recompute_scale_factor), antialias=antialias,
    )  # fmt: skip


@OPS.imports("aten::__upsample")
def import_upsample(
    ctx: Import,
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
    ctx: Import, input: Expr, *, size: Size = None, scale_factor: Factor = None
) -> Expr:
    return _interpolate(ctx, input, size, scale_factor, "nearest")


@OPS.imports("aten::__upsample_bilinear")
def import_upsample_bilinear(
    ctx: Import, input: Expr, *, size: Size = None, scale_factor: Factor = None
) -> Expr:
    return _interpolate(ctx, input, size, scale_factor, "bilinear", align_corners=True)
