"""Pooled regions of feature maps, sensitive to position too."""

from __future__ import annotations

from typing import Any as AnyValue, TypeVar

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.records import dataclass, replace
from serde.errors import Unsupported
from serde.mxnet.ops.table import COMPUTED, OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, TensorType, call, require_float
from serde.walk.takes import Takes, between


@dataclass(frozen=True, kw_only=True)
class Regions:
    """Attributes of what pools regions, in MXNet and in Relay."""

    pooled_size: tuple[int, ...]
    spatial_scale: float


@dataclass(frozen=True, kw_only=True)
class OpenRegions:
    """The same where lengths may be symbols."""

    pooled_size: tuple[Dim, ...]
    spatial_scale: float

    def to_mxnet(self) -> dict[str, AnyValue]:
        """Return the attributes as MXNet has them."""
        shape = TensorType(self.pooled_size, "int32").concrete_shape
        if shape is None:
            raise Unsupported(f"regions pooled to open lengths {self.pooled_size}")
        return {"pooled_size": shape, "spatial_scale": self.spatial_scale}


@OPS.imports("_contrib_ROIAlign")
def import_roi_align(
    ctx: Import, data: Expr, rois: Expr,
    *, regions: Regions, sample_ratio: int = -1, position_sensitive: bool = False,
    aligned: bool = False,
) -> Expr:  # fmt: skip
    """Aligned, the centre of a pixel is at one half, and a region may be narrower than one."""
    rows = _clamp_images(ctx, rois)
    if aligned:
        image, corners = relay.split(rows, [1], axis=1)
        images = relay.cast(relay.squeeze(image, [1]), "int32")
        result: Expr = call(
            "serde.roi_align", data, corners, images, **vars(regions),
            sample_ratio=max(sample_ratio, 0), half_pixel=True,
        )  # fmt: skip
    else:
        result = relay.vision.roi_align(data, rows, sample_ratio=sample_ratio, **vars(regions))
    if position_sensitive:
        result = _select_own_channels(ctx, data, result, regions.pooled_size)
    return _zero_without_image(ctx, rois, result)


@OPS.exports("serde.roi_align", takes=Takes(data=COMPUTED, mode="avg", half_pixel=True))
def export_roi_align_aligned(
    ctx: Export, data: Value, rois: Value, images: Value, *, regions: Regions, sample_ratio: int
) -> Value:
    regions, rois = _bounded(ctx, regions, rois, slice(4))
    numbers = ctx.emit("Cast", images, dtype=ctx.type(rois).dtype)
    rows = ctx.emit("Concat", ctx.emit("expand_dims", numbers, axis=1), rois, dim=1, num_args=2)
    return ctx.emit(
        "_contrib_ROIAlign", data, rows, **vars(regions), sample_ratio=sample_ratio, aligned=True,
    )  # fmt: skip


@OPS.imports("ROIPooling")
def import_roi_pooling(ctx: Import, data: Expr, rois: Expr, *, regions: Regions) -> Expr:
    pooled = relay.vision.roi_pool(data, _clamp_images(ctx, rois), **vars(regions))
    return _zero_without_image(ctx, rois, pooled)


@OPS.imports("_contrib_RROIAlign")
def import_rroi_align(
    ctx: Import, data: Expr, rois: Expr, *, regions: Regions, sampling_ratio: int = -1
) -> Expr:
    return call("serde.roi_align_rotated", data, rois, **vars(regions), sample_ratio=sampling_ratio)


@OPS.exports("serde.roi_align_rotated")
def export_roi_align_rotated(
    ctx: Export, data: Value, rois: Value, *, regions: Regions, sample_ratio: int
) -> Value:
    regions, rois = _bounded(ctx, regions, rois, slice(1, 5))
    return ctx.emit("_contrib_RROIAlign", data, rois, **vars(regions), sampling_ratio=sample_ratio)


Kind = TypeVar("Kind", Regions, OpenRegions)


def _bounded(ctx: Export, regions: Kind, rois: Value, lengths: slice) -> tuple[Kind, Value]:
    """Return regions with a scale from 0 to 1, as MXNet takes it, scaled themselves if need be.

    Args:
        ctx: What a converter may reach.
        regions: The attributes.
        rois: One region a row.
        lengths: Which columns are places and lengths.
    """
    if 0 <= regions.spatial_scale <= 1:
        return regions, rois
    type_ = ctx.type(rois)
    factors = allocation.ones(ctx.static_lengths(rois, [1])[0], type_.dtype)
    factors[lengths] = regions.spatial_scale
    scaled = ctx.spell(lambda x: relay.multiply(x, relay.Constant(factors)), rois)
    return replace(regions, spatial_scale=1.0), replace(scaled, type=type_)


def _clamp_images(ctx: Import, rois: Expr) -> Expr:
    """Return regions, those of no image (a negative number) as of the first."""
    require_float(ctx.type(rois))
    least = np.array([0, *[-np.inf] * 4], ctx.type(rois).dtype)
    return relay.maximum(rois, relay.Constant(least))


def _zero_without_image(ctx: Import, rois: Expr, pooled: Expr) -> Expr:
    """Return what was pooled, zero for regions of no image."""
    dtype = ctx.type(rois).dtype
    image = relay.strided_slice(rois, [0], [1], [1], axes=[1])
    nowhere = relay.less(relay.expand_dims(image, 2, 2), relay.const(0, dtype))
    return relay.where(nowhere, relay.const(0, dtype), pooled)


def _select_own_channels(ctx: Import, data: Expr, pooled: Expr, size: tuple[int, ...]) -> Expr:
    """Return for each bin the channels that are its own: those of a number are all bins' once."""
    bins = size[0] * size[1]
    (channels,) = ctx.static_lengths(data, [1])
    if channels % bins:
        raise Unsupported(f"{channels} channels for {bins} bins")
    apart = relay.reshape(pooled, (-1, channels // bins, bins * bins))
    own = relay.strided_slice(apart, [0], [bins * bins], [bins + 1], axes=[2])
    return relay.reshape(own, (-1, channels // bins, *size))


@OPS.exports("vision.roi_align", takes=Takes(data=COMPUTED, mode="avg"))
def export_roi_align(
    ctx: Export, data: Value, rois: Value, *, regions: OpenRegions, sample_ratio: int
) -> Value:
    regions, rois = _bounded(ctx, regions, rois, slice(1, 5))
    return ctx.emit(
        "_contrib_ROIAlign", data, rois, **regions.to_mxnet(), sample_ratio=sample_ratio
    )


@OPS.exports("vision.roi_pool", takes=Takes(data=COMPUTED))
def export_roi_pool(ctx: Export, data: Value, rois: Value, *, regions: OpenRegions) -> Value:
    regions, rois = _bounded(ctx, regions, rois, slice(1, 5))
    return ctx.emit("ROIPooling", data, rois, **regions.to_mxnet())


@dataclass(frozen=True, kw_only=True)
class SensitiveRegions:
    """Attributes of position-sensitive pooling, in MXNet and in Relay."""

    spatial_scale: float
    output_dim: int
    pooled_size: int


@dataclass(frozen=True, kw_only=True)
class DeformableRegions:
    """Attributes of pooling with learned shifts, in MXNet and in Relay."""

    spatial_scale: float
    output_dim: int
    group_size: int
    pooled_size: int
    part_size: int = 0
    sample_per_part: int = 1
    trans_std: float = 0.0


@OPS.imports("_contrib_PSROIPooling")
def import_psroi_pooling(
    ctx: Import, data: Expr, rois: Expr, *, regions: SensitiveRegions, group_size: int = 0
) -> Expr:
    groups = group_size or regions.pooled_size
    return call("serde.psroi_pool", data, rois, **vars(regions), group_size=groups)


_FACTOR = between(0, 1)


@OPS.exports("serde.psroi_pool", takes=Takes(spatial_scale=_FACTOR))
def export_psroi_pool(
    ctx: Export, data: Value, rois: Value, *, regions: SensitiveRegions, group_size: int
) -> Value:
    return ctx.emit("_contrib_PSROIPooling", data, rois, **vars(regions), group_size=group_size)


@OPS.imports("_contrib_DeformablePSROIPooling")
def import_deformable_psroi_pooling(
    ctx: Import,
    data: Expr,
    rois: Expr,
    trans: Expr | None = None,
    *,
    regions: DeformableRegions,
    no_trans: bool = False,
) -> Expr:
    if trans is None and not no_trans:
        raise Unsupported("no shifts, and no_trans=False")
    attrs = vars(regions) | {"part_size": regions.part_size or regions.pooled_size}
    return call("serde.deformable_psroi_pool", data, rois, None if no_trans else trans, **attrs)


@OPS.exports("serde.deformable_psroi_pool", takes=Takes(spatial_scale=_FACTOR, trans_std=_FACTOR))
def export_deformable_psroi_pool(
    ctx: Export, data: Value, rois: Value, trans: Value | None, *, regions: DeformableRegions
) -> Value:
    operands = [data, rois] + ([] if trans is None else [trans])
    return ctx.emit(
        "_contrib_DeformablePSROIPooling", *operands, **vars(regions), no_trans=trans is None
    )
