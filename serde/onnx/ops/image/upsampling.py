"""Upsampling by factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.image.resize import ResizeAttributes, build_resize
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr

UpsampleMode = Literal["nearest", "linear", "bilinear"]


def _const_scales(values: Sequence[AnyValue]) -> Expr:
    return relay.const(np.array(values, np.float32))


@OPS.imports("Upsample", since=(9, 10))
def import_upsample(
    ctx: ImportContext, x: Expr, scales: Expr, *, mode: UpsampleMode = "nearest"
) -> Expr:
    resize = ResizeAttributes(
        coordinate_transformation_mode="asymmetric",
        mode="nearest" if mode == "nearest" else "linear",
        nearest_mode="floor",
    )
    return build_resize(ctx, x, scales, resize=resize)


@OPS.imports("Upsample", since=7)
def import_upsample_v7(
    ctx: ImportContext, x: Expr, *, scales: tuple[float, ...], mode: UpsampleMode = "nearest"
) -> Expr:
    return import_upsample(ctx, x, _const_scales(scales), mode=mode)


@OPS.imports("Upsample", since=1)
def import_upsample_v1(
    ctx: ImportContext,
    x: Expr,
    *,
    height_scale: float,
    width_scale: float,
    mode: UpsampleMode = "nearest",
) -> Expr:
    return import_upsample(ctx, x, _const_scales([1.0, 1.0, height_scale, width_scale]), mode=mode)
