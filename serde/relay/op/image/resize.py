"""Resizing to a given size."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any as AnyValue, Literal

import numpy as np

from serde.core import dataclass, dtype_name
from serde.errors import TypeInferenceError
from serde.relay.ir import Constant, Dim, Expr, Float32, Fusion, FusionPattern, Layout, const
from serde.relay.ir.layout import spatial_axes
from serde.relay.ir.registry import Array, Sample, builder, call, relay_op, sample, tensor
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import times
from serde.relay.op.image.interpolation import (
    SPATIAL,
    Interpolation,
    require_lengths,
    widen_for_method,
    with_lengths,
)
from serde.relay.op.shape.reshape import integers

__all__ = ["ImageResize", "Method", "Mode", "Rounding", "run_resize"]

Method = Literal["nearest_neighbor", "linear", "cubic"]
Mode = Literal[
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
]
Rounding = Literal["round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil", ""]


@dataclass(frozen=True, kw_only=True)
class ImageResize:
    """Attributes that resizings of images share."""

    layout: str
    method: Method = "linear"
    coordinate_transformation_mode: Mode = "half_pixel"
    rounding_method: Rounding = "round"
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    extrapolation_value: float = 0.0
    out_dtype: np.dtype[AnyValue] | None = None

    @property
    def interpolation(self) -> Interpolation:
        """How each axis is read."""
        return Interpolation(
            self.method, self.coordinate_transformation_mode, self.rounding_method,
            self.cubic_alpha, bool(self.cubic_exclude),
        )  # fmt: skip

    def dtype_of(self, dtype: str) -> str:
        """Return the dtype of the result for images of a dtype."""
        return dtype if self.out_dtype is None else dtype_name(self.out_dtype)


def run_resize(
    data: Array, size: Sequence[AnyValue] | None, roi: Sequence[float] | None, resize: ImageResize
) -> Array:
    """Return `data` resized along the spatial axes of its layout, as ``image.resize2d`` has it."""
    lengths, how, rank = size or (), resize.interpolation, len(size or ())
    region = roi or (0.0,) * (2 * rank)
    result = widen_for_method(data, how.method)
    outside: list[tuple[int, Array]] = []
    for index, axis in enumerate(spatial_axes(resize.layout, "NC" + SPATIAL[rank])):
        length = data.shape[axis]
        positions = how.positions(length, lengths[index], region[index], region[rank + index])
        outside.append((axis, (positions < 0) | (positions > length - 1)))
        result = how.apply(result, axis, positions)
    if how.mode == "tf_crop_and_resize":
        for axis, mask in outside:
            result[(*[slice(None)] * axis, mask)] = resize.extrapolation_value
    return result.astype(resize.out_dtype or data.dtype, copy=False)


def _resize_type(
    data: TensorType,
    *,
    rank: int,
    size: tuple[Dim, ...] | None,
    roi: tuple[float, ...] | None,
    resize: ImageResize,
) -> TensorType:
    """Return the type of a resizing of `rank` spatial axes."""
    lengths = require_lengths("size", size, rank)
    if roi is not None and len(roi) != 2 * rank:
        raise TypeInferenceError(f"roi: expected {2 * rank} numbers, found {list(roi)}")
    if resize.coordinate_transformation_mode == "tf_crop_and_resize" and roi is None:
        raise TypeInferenceError("tf_crop_and_resize needs a roi")
    return TensorType(with_lengths(data, resize.layout, lengths), resize.dtype_of(data.dtype))


def _declare(rank: int, *samples: Sample) -> None:
    """Declare the resizing of `rank` spatial axes."""
    usual = ImageResize(layout="NC" + SPATIAL[rank])

    @relay_op(
        f"image.resize{rank}d",
        traits=(times(8), Layout(), Fusion(FusionPattern.INJECTIVE), Float32("resizing")),
        infer=partial(_resize_type, rank=rank),
        samples=samples,
    )
    def resize(
        data: Array,
        *,
        size: tuple[Dim, ...] | None = None,
        roi: tuple[float, ...] | None = None,
        resize: ImageResize = usual,
    ) -> Array:
        """`data` with its spatial axes resized to `size`.

        The coordinate modes are those of ONNX Resize. `roi` (starts, then ends, relative)
        and `extrapolation_value` serve tf_crop_and_resize alone. An empty `rounding_method`
        rounds for align_corners and takes the floor otherwise. `cubic_exclude` leaves out
        what lies beyond the edge, which is else repeated.
        """
        return run_resize(data, size, roi, resize)


_declare(
    1,
    sample((2, 3, 5), size=(8,)),
    sample((2, 5, 3), size=(3,), layout="NWC", method="cubic", cubic_exclude=1),
    sample(
        tensor((1, 2, 4), "uint8", low=0, high=255),
        size=(7,),
        method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric",
        rounding_method="",
    ),
)
_declare(
    2,
    sample((1, 2, 5, 4), size=(7, 9)),
    sample((1, 5, 4, 2), size=(3, 8), layout="NHWC", method="cubic", cubic_alpha=-0.75,
           coordinate_transformation_mode="align_corners"),
    sample((1, 2, 5, 4), size=(10, 3), method="nearest_neighbor", rounding_method="ceil",
           coordinate_transformation_mode="tf_half_pixel_for_nn"),
    sample((1, 2, 5, 4), size=(1, 6), coordinate_transformation_mode="pytorch_half_pixel"),
    sample((1, 2, 5, 4), size=(4, 6), roi=(-0.2, 0.1, 0.6, 1.2), extrapolation_value=0.5,
           coordinate_transformation_mode="tf_crop_and_resize"),
    sample((1, 2, 5, 4), size=(10, 8), method="nearest_neighbor",
           rounding_method="round_prefer_floor"),
    sample((1, 2, 5, 4), size=(10, 8), method="nearest_neighbor",
           rounding_method="round_prefer_ceil", out_dtype="float64"),
)  # fmt: skip
_declare(
    3,
    sample((1, 2, 3, 4, 5), size=(4, 6, 3)),
    sample((1, 3, 4, 5, 2), size=(5, 3, 7), layout="NDHWC", method="nearest_neighbor"),
    sample((1, 1, 3, 4, 5), size=(4, 3, 6), method="cubic"),
)


def _declare_builder(rank: int) -> None:
    """Define the builder of a resizing of `rank` spatial axes."""

    @builder(f"image.resize{rank}d")
    def build(
        data: Expr, size: AnyValue, roi: AnyValue = None, layout: str = "NC" + SPATIAL[rank],
        method: str = "linear", coordinate_transformation_mode: str = "half_pixel",
        rounding_method: str = "", cubic_alpha: float = -0.5, cubic_exclude: int = 0,
        extrapolation_value: float = 0.0, out_dtype: AnyValue = None,
    ) -> Expr:  # fmt: skip
        """Build a resizing; one size holds for all axes, no `roi` is one of zeros.

        Of two axes, a size or region that is computed makes it ``dyn.image.resize2d``.
        """
        attrs = {
            "layout": layout,
            "method": method,
            "coordinate_transformation_mode": coordinate_transformation_mode,
            "rounding_method": rounding_method,
            "cubic_alpha": cubic_alpha,
            "cubic_exclude": cubic_exclude,
            "extrapolation_value": extrapolation_value,
            "out_dtype": out_dtype,
        }
        size, roi = integers(size), integers(roi)
        size = (size,) * rank if isinstance(size, int) else size
        roi = (0.0,) * (2 * rank) if roi is None else roi
        if rank != 2 or not any(isinstance(given, Expr) for given in (size, roi)):
            return call(f"image.resize{rank}d", data, size=size, roi=roi, **attrs)
        lengths = size if isinstance(size, Expr) else Constant(np.array(size, np.int64))
        region = roi if isinstance(roi, Expr) else const(np.array(roi, np.float32))
        return call("dyn.image.resize2d", data, lengths, region, **attrs)


for _rank in (1, 2, 3):
    _declare_builder(_rank)
