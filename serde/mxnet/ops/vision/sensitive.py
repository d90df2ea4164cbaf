"""Position-sensitive pooling of regions."""

from __future__ import annotations

from dataclasses import dataclass

from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.walk.takes import Takes, between


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
    ctx: ImportContext, data: Expr, rois: Expr, *, regions: SensitiveRegions, group_size: int = 0
) -> Expr:
    groups = group_size or regions.pooled_size
    return call("serde.psroi_pool", data, rois, **vars(regions), group_size=groups)


_FACTOR = between(0, 1)


@OPS.exports("serde.psroi_pool", takes=Takes(spatial_scale=_FACTOR))
def export_psroi_pool(
    ctx: ExportContext, data: Value, rois: Value, *, regions: SensitiveRegions, group_size: int
) -> Value:
    return ctx.emit("_contrib_PSROIPooling", data, rois, **vars(regions), group_size=group_size)


@OPS.imports("_contrib_DeformablePSROIPooling")
def import_deformable_psroi_pooling(
    ctx: ImportContext,
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
    ctx: ExportContext, data: Value, rois: Value, trans: Value | None, *, regions: DeformableRegions
) -> Value:
    operands = [data, rois] + ([] if trans is None else [trans])
    return ctx.emit(
        "_contrib_DeformablePSROIPooling", *operands, **vars(regions), no_trans=trans is None
    )
