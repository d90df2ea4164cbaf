"""Scaling by a factor for each axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any as AnyValue, Literal

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Constant, Dim, Expr, TensorType, const, tensor_type
from serde.relay.ir.layout import layout_rank, spatial_axes
from serde.relay.ir.registry import Array, builder, call, relay_op, sample
from serde.relay.ir.shapes import at, is_float, layout_axes
from serde.relay.ir.traits import Float32, Fusion, FusionPattern, Layout
from serde.relay.op.image.interpolation import (
    SPATIAL,
    Interpolation,
    widen_for_method,
    with_lengths,
)
from serde.relay.op.shape.reshape import integers

__all__ = ["Upsampling", "Upsampling3d", "decompose_upsampling", "decompose_upsampling3d"]


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
    exact = Fraction(scale)
    if exact.denominator == 1:
        return length * exact.numerator
    if isinstance(length, Any) or exact.denominator > 1 << 16:
        return Any()
    return (length * (2 * exact.numerator) + exact.denominator) // (2 * exact.denominator)


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
        result = how.apply(result, axis, how.positions(length, size, 0.0, 1.0))
    return result.astype(data.dtype, copy=False)


def _scaled(data: Expr, layout: str, scales: Sequence[AnyValue], how: Interpolation) -> Expr:
    """Return `data` resized by factors, numbers or scalars of any shape of one element.

    Lengths are told where they are known, and computed where they are not.
    """
    usual = "NC" + SPATIAL[len(scales)]
    factors = [each.data.item() if isinstance(each, Constant) else each for each in scales]
    axes, shape, lengths = spatial_axes(layout, usual), tensor_type(data).shape, []
    if not any(isinstance(each, Expr) for each in factors):
        lengths = [_scale_length(shape[axis], by) for axis, by in zip(axes, factors, strict=True)]
    if lengths and not any(isinstance(length, Any) for length in lengths):
        return call(
            f"image.resize{len(scales)}d", data, size=tuple(lengths), layout=layout,
            method=how.method, coordinate_transformation_mode=how.mode, rounding_method="",
        )  # fmt: skip
    dtype = tensor_type(data).dtype
    whole = not is_float(dtype) and how.method != "nearest_neighbor"
    images = call("cast", data, dtype="float32") if whole else data
    order = layout_axes(layout, usual)
    images = images if layout == usual else call("transpose", images, axes=order)
    found = call(
        "serde.resize", images, None, None, _scaled_shape(images, factors),
        method=how.method.removesuffix("_neighbor"), mode=how.mode,
        rounding="round_prefer_ceil" if how.mode == "align_corners" else "floor",
        cubic_alpha=how.alpha,
    )  # fmt: skip
    found = found if layout == usual else call("transpose", found, axes=layout_axes(usual, layout))
    return call("cast", found, dtype=dtype) if whole else found


def _scaled_shape(images: Expr, factors: Sequence[AnyValue]) -> Expr:
    """Return the lengths of all axes afterwards, those of the first two as they are."""
    wide = "float64"
    parts: list[Expr] = [const(np.ones(2), wide)]
    for each in factors:
        number = each if isinstance(each, Expr) else const(each, wide)
        parts.append(call("cast", call("reshape", number, newshape=(1,)), dtype=wide))
    by = call("concatenate", parts, axis=0)
    grown = call("multiply", call("cast", call("shape_of", images, dtype="int64"), dtype=wide), by)
    return call("cast", call("floor", call("add", grown, const(0.5, wide))), dtype="int64")


def _upsampling_of(method: str, align_corners: bool) -> Interpolation:
    """Return how images are read by ``nn.upsampling``."""
    mode = "align_corners" if align_corners else "asymmetric"
    return Interpolation(method.removeprefix("bi"), mode)


def decompose_upsampling(
    data: Expr, *scales: Expr, layout: str, method: str, align_corners: bool, **factors: float
) -> Expr:
    how = _upsampling_of(method, align_corners)
    return _scaled(data, layout, scales or [factors[name] for name in sorted(factors)], how)


def decompose_upsampling3d(
    data: Expr,
    *scales: Expr,
    layout: str,
    method: str,
    coordinate_transformation_mode: str,
    **factors: float,
) -> Expr:
    how = Interpolation(method.removeprefix("tri"), coordinate_transformation_mode)
    return _scaled(data, layout, scales or [factors[name] for name in sorted(factors)], how)


@relay_op(
    "nn.upsampling",
    traits=(Layout(), Fusion(FusionPattern.INJECTIVE), Float32("resizing")),
    infer=_upsampling_type,
    decompose=decompose_upsampling,
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
    decompose=decompose_upsampling3d,
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
    data: Expr, scale_d: Expr | float = 1, scale_h: Expr | float = 1, scale_w: Expr | float = 1,
    layout: str = "NCDHW", method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> Expr:  # fmt: skip
    """Build ``nn.upsampling3d``, or ``dyn.nn.upsampling3d`` for scales that are computed."""
    scales = {"scale_d": scale_d, "scale_h": scale_h, "scale_w": scale_w}
    attrs = {
        "layout": layout,
        "method": method,
        "coordinate_transformation_mode": coordinate_transformation_mode,
    }
    return _build_scaled("nn.upsampling3d", data, scales, attrs)
