"""Scaling by a factor for each axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any as AnyValue
from typing import Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Any, Dim
from serde.relay.ir.expr import Expr, const
from serde.relay.ir.layout import layout_rank, spatial_axes
from serde.relay.ir.registry import Array, builder, call, relay_op, sample
from serde.relay.ir.shapes import at
from serde.relay.ir.traits import Float32, Fusion, FusionPattern, Layout
from serde.relay.ir.types import TensorType
from serde.relay.op.image.interpolation import Interpolation, widen_for_method, with_lengths
from serde.relay.op.shape.reshape import integers

__all__ = ["Upsampling", "Upsampling3d"]


@dataclass(frozen=True, kw_only=True)
class Upsampling3d:
    """Attributes of upsampling over three axes, scales left out."""

    layout: str = "NCDHW"
    method: Literal["nearest_neighbor", "trilinear"] = "nearest_neighbor"
    coordinate_transformation_mode: Literal["half_pixel", "align_corners", "asymmetric"] = (
        "half_pixel"
    )

    @property
    def interpolation(self) -> Interpolation:
        """How each axis is read."""
        return Interpolation(self.method.removeprefix("tri"), self.coordinate_transformation_mode)


@dataclass(frozen=True, kw_only=True)
class Upsampling:
    """Attributes of upsampling over two axes, scales left out."""

    layout: str = "NCHW"
    method: Literal["nearest_neighbor", "bilinear", "bicubic"] = "nearest_neighbor"
    align_corners: bool = False

    @property
    def interpolation(self) -> Interpolation:
        """How each axis is read."""
        mode = "align_corners" if self.align_corners else "asymmetric"
        return Interpolation(self.method.removeprefix("bi"), mode)


def _scale_length(length: Dim, scale: float) -> Dim:
    if not scale > 0:
        raise TypeInferenceError(f"expected a positive scale, found {scale}")
    if type(length) is int:
        return int(np.floor(length * scale + 0.5))
    return length * int(scale) if scale == int(scale) else Any()


def _upsampling_type(
    data: TensorType, *, scale_h: float, scale_w: float, layout: str, **_: AnyValue
) -> TensorType:
    if data.rank != layout_rank(layout):
        raise TypeInferenceError(f"expected data of layout {layout}, found {data!r}")
    height, width = at(data.shape, spatial_axes(layout, "NCHW"))
    lengths = (_scale_length(height, scale_h), _scale_length(width, scale_w))
    return TensorType(with_lengths(data, layout, lengths), data.dtype)


def _upsample(
    data: Array, axes: Sequence[int], scales: Sequence[float], how: Interpolation
) -> Array:
    result = widen_for_method(data, how.method)
    for axis, scale in zip(axes, scales, strict=True):
        length = data.shape[axis]
        size = max(int(np.floor(length * scale + 0.5)), 0)
        result = how.apply(result, axis, how.places(length, size, 0.0, 1.0))
    return result.astype(data.dtype, copy=False)


@relay_op(
    "nn.upsampling",
    traits=(Layout(), Fusion(FusionPattern.INJECTIVE), Float32("resizing")),
    infer=_upsampling_type,
    samples=[
        sample((1, 2, 3, 4), scale_h=2.0, scale_w=3.0),
        sample((1, 3, 4, 2), scale_h=2.0, scale_w=1.5, layout="NHWC", method="bilinear"),
        sample((1, 2, 3, 4), scale_h=2.0, scale_w=2.0, method="bicubic", align_corners=True),
    ],
)
def upsampling(data: Array, *, scale_h: float, scale_w: float, upsampling: Upsampling) -> Array:
    """`data` with height and width scaled to rounded lengths.

    First elements coincide, and with `align_corners` the last ones too.
    """
    axes = spatial_axes(upsampling.layout, "NCHW")
    return _upsample(data, axes, (scale_h, scale_w), upsampling.interpolation)


@builder("nn.upsampling")
def build_upsampling(
    data: Expr,
    scale_h: Expr | float = 1,
    scale_w: Expr | float = 1,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> Expr:
    """Build ``nn.upsampling``, or ``dyn.nn.upsampling`` for scales that are computed."""
    attrs = {"layout": layout, "method": method, "align_corners": align_corners}
    return _build_scaled("nn.upsampling", data, {"scale_h": scale_h, "scale_w": scale_w}, attrs)


def _build_scaled(
    name: str, data: Expr, scales: Mapping[str, Expr | float], attrs: Mapping[str, AnyValue]
) -> Expr:
    """Build the operator that takes scales as attributes, or the one that takes operands."""
    known = {key: integers(each) for key, each in scales.items()}
    if not any(isinstance(each, Expr) for each in known.values()):
        return call(name, data, **{**known, **attrs})
    given = (each if isinstance(each, Expr) else const(each, "float32") for each in known.values())
    return call(f"dyn.{name}", data, *given, **attrs)


def _upsampling3d_type(
    data: TensorType, *, scale_d: float, scale_h: float, scale_w: float, layout: str, **_: AnyValue
) -> TensorType:
    if data.rank != layout_rank(layout):
        raise TypeInferenceError(f"expected data of layout {layout}, found {data!r}")
    space = at(data.shape, spatial_axes(layout, "NCDHW"))
    scales = (scale_d, scale_h, scale_w)
    lengths = [_scale_length(length, scale) for length, scale in zip(space, scales, strict=True)]
    return TensorType(with_lengths(data, layout, lengths), data.dtype)


@relay_op(
    "nn.upsampling3d", traits=(Layout(), Fusion(FusionPattern.INJECTIVE), Float32("resizing")),
    infer=_upsampling3d_type,
    samples=[
        sample((1, 2, 2, 3, 4), scale_d=2.0, scale_h=2.0, scale_w=3.0),
        sample((1, 2, 3, 4, 2), scale_d=1.5, scale_h=2.0, scale_w=1.0, layout="NDHWC",
               method="trilinear", coordinate_transformation_mode="align_corners"),
    ],
)  # fmt: skip
def upsampling3d(
    data: Array, *, scale_d: float, scale_h: float, scale_w: float, upsampling: Upsampling3d
) -> Array:
    """`data` with depth, height and width scaled; the lengths of the result are rounded."""
    axes = spatial_axes(upsampling.layout, "NCDHW")
    return _upsample(data, axes, (scale_d, scale_h, scale_w), upsampling.interpolation)


@builder("nn.upsampling3d")
def build_upsampling3d(
    data: Expr,
    scale_d: Expr | float = 1,
    scale_h: Expr | float = 1,
    scale_w: Expr | float = 1,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> Expr:
    """Build ``nn.upsampling3d``, or ``dyn.nn.upsampling3d`` for scales that are computed."""
    scales = {"scale_d": scale_d, "scale_h": scale_h, "scale_w": scale_w}
    attrs = {
        "layout": layout,
        "method": method,
        "coordinate_transformation_mode": coordinate_transformation_mode,
    }
    return _build_scaled("nn.upsampling3d", data, scales, attrs)
