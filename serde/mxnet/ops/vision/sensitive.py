"""Position-sensitive pooling of regions."""

from __future__ import annotations

from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


@OPS.imports("_contrib_PSROIPooling")
def import_psroi_pooling(
    ctx: ImportContext,
    data: Expr,
    rois: Expr,
    *,
    spatial_scale: float,
    output_dim: int,
    pooled_size: int,
    group_size: int = 0,
) -> Expr:
    return call(
        "serde.psroi_pool", data, rois, output_dim=output_dim, pooled_size=pooled_size,
        group_size=group_size or pooled_size, spatial_scale=spatial_scale,
    )  # fmt: skip


@OPS.exports("serde.psroi_pool")
def export_psroi_pool(
    ctx: ExportContext,
    data: Value,
    rois: Value,
    *,
    output_dim: int,
    pooled_size: int,
    group_size: int,
    spatial_scale: float,
) -> Value:
    return ctx.emit(
        "_contrib_PSROIPooling", data, rois, spatial_scale=spatial_scale, output_dim=output_dim,
        pooled_size=pooled_size, group_size=group_size,
    )  # fmt: skip


@OPS.imports("_contrib_DeformablePSROIPooling")
def import_deformable_psroi_pooling(
    ctx: ImportContext,
    data: Expr,
    rois: Expr,
    trans: Expr | None = None,
    *,
    spatial_scale: float,
    output_dim: int,
    group_size: int,
    pooled_size: int,
    part_size: int = 0,
    sample_per_part: int = 1,
    trans_std: float = 0.0,
    no_trans: bool = False,
) -> Expr:
    if trans is None and not no_trans:
        raise Unsupported("no shifts, and no_trans=False")
    return call(
        "serde.deformable_psroi_pool", data, rois, None if no_trans else trans,
        output_dim=output_dim, pooled_size=pooled_size, group_size=group_size,
        part_size=part_size or pooled_size, sample_per_part=sample_per_part,
        spatial_scale=spatial_scale, trans_std=trans_std,
    )  # fmt: skip


@OPS.exports("serde.deformable_psroi_pool")
def export_deformable_psroi_pool(
    ctx: ExportContext,
    data: Value,
    rois: Value,
    trans: Value | None,
    *,
    output_dim: int,
    pooled_size: int,
    group_size: int,
    part_size: int,
    sample_per_part: int,
    spatial_scale: float,
    trans_std: float,
) -> Value:
    operands = [data, rois] + ([] if trans is None else [trans])
    return ctx.emit(
        "_contrib_DeformablePSROIPooling", *operands, spatial_scale=spatial_scale,
        output_dim=output_dim, group_size=group_size, pooled_size=pooled_size,
        part_size=part_size, sample_per_part=sample_per_part, trans_std=trans_std,
        no_trans=trans is None,
    )  # fmt: skip
