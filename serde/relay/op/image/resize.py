"""Resizing: each axis in turn, by a few weighted source elements for every result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any as AnyValue
from typing import Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.dims import Any, Dim
from serde.relay.expr import Expr
from serde.relay.registry import Array, builder, call, relay_op, sample, tensor
from serde.relay.shapes import at, is_float, layout_axes
from serde.relay.types import TensorType
from serde.weights import dtype_name

__all__: list[str] = []

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

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
_GUARD = 1e-5
"""Distance from a whole number below which floor and ceil take it for that number, as in TVM."""


@dataclass(frozen=True)
class _Resize:
    """How one axis is read."""

    method: str
    mode: str
    rounding: str = ""
    alpha: float = -0.5
    exclude: bool = False

    def places(self, length: int, size: int, start: float, end: float) -> Array:
        """Return where in the source each result lies; one division, so that halves are exact."""
        x = np.arange(size)
        if self.mode == "align_corners":
            return x * (length - 1) / max(size - 1, 1)
        if self.mode == "asymmetric":
            return x * length / size
        if self.mode == "tf_half_pixel_for_nn":
            return (2 * x + 1) * length / (2 * size)
        if self.mode == "tf_crop_and_resize":
            if size == 1:
                return np.array([0.5 * (start + end) * (length - 1)])
            return start * (length - 1) + x * ((end - start) * (length - 1)) / (size - 1)
        if self.mode == "pytorch_half_pixel" and size == 1:
            return np.zeros(1)
        return ((2 * x + 1) * length - size) / (2 * size)

    def taps(self, places: Array, length: int) -> list[tuple[Array, Array | None]]:
        """Return source indices and weights; no weights where there is one index."""
        if self.method == "nearest_neighbor":
            return [(np.clip(self._nearest(places), 0, length - 1).astype(np.int64), None)]
        whole = np.floor(places)
        part = places - whole
        if self.method == "linear":
            offsets, weights = [0, 1], [1 - part, part]
        else:
            offsets, weights = [-1, 0, 1, 2], _cubic_weights(part, self.alpha)
        indices = [(whole + offset).astype(np.int64) for offset in offsets]
        if self.method == "cubic" and self.exclude:
            inside = [(index >= 0) & (index < length) for index in indices]
            weights = [w * ok for w, ok in zip(weights, inside, strict=True)]
            total = np.sum(weights, 0)
            weights = [w / total for w in weights]
        clipped = [np.clip(index, 0, length - 1) for index in indices]
        return list(zip(clipped, weights, strict=True))

    def _nearest(self, places: Array) -> Array:
        rounding = self.rounding or ("round" if self.mode == "align_corners" else "floor")
        if rounding == "floor":
            return np.floor(places + _GUARD)
        if rounding == "ceil":
            return np.ceil(places - _GUARD)
        if rounding == "round_prefer_floor":
            return np.ceil(places - 0.5)
        if rounding == "round_prefer_ceil":
            return np.floor(places + 0.5)
        return np.copysign(np.floor(np.abs(places) + 0.5), places)

    def apply(self, data: Array, axis: int, places: Array) -> Array:
        """Return `data` read at `places` along `axis`."""
        shape = [1] * data.ndim
        shape[axis] = -1
        result: Array | None = None
        for index, weight in self.taps(places, data.shape[axis]):
            part = np.take(data, index, axis)
            if weight is not None:
                part *= weight.reshape(shape).astype(part.dtype)
            result = part if result is None else np.add(result, part, out=result)
        return data if result is None else result


def _cubic_weights(part: Array, alpha: float) -> list[Array]:
    """Return the weights of four neighbours in Keys' cubic convolution (1981)."""

    def near(t: Array) -> Array:
        return ((alpha + 2) * t - (alpha + 3)) * t * t + 1

    def far(t: Array) -> Array:
        return ((alpha * t - 5 * alpha) * t + 8 * alpha) * t - 4 * alpha

    return [far(1 + part), near(part), near(1 - part), far(2 - part)]


def _working(data: Array, method: str) -> Array:
    if method == "nearest_neighbor" or data.dtype == np.float64:
        return data
    return data.astype(np.float32)


def _resize(rank: int, data: Array, attrs: Mapping[str, AnyValue]) -> Array:
    axes = layout_axes(attrs["layout"], "NC" + _SPATIAL[rank])[2:]
    mode = attrs["coordinate_transformation_mode"]
    how = _Resize(
        attrs["method"],
        mode,
        attrs["rounding_method"],
        attrs["cubic_alpha"],
        bool(attrs["cubic_exclude"]),
    )
    roi = attrs["roi"] or (0.0,) * (2 * rank)
    result = _working(data, how.method)
    outside: list[tuple[int, Array]] = []
    for index, axis in enumerate(axes):
        length = data.shape[axis]
        places = how.places(length, attrs["size"][index], roi[index], roi[rank + index])
        outside.append((axis, (places < 0) | (places > length - 1)))
        result = how.apply(result, axis, places)
    if mode == "tf_crop_and_resize":
        for axis, mask in outside:
            result[(*[slice(None)] * axis, mask)] = attrs["extrapolation_value"]
    return result.astype(attrs["out_dtype"] or data.dtype, copy=False)


def _relation(rank: int) -> Callable[..., TensorType]:
    def infer(
        data: TensorType,
        *,
        size: tuple[Dim, ...] | None,
        roi: tuple[float, ...] | None,
        layout: str,
        method: str,
        coordinate_transformation_mode: str,
        cubic_exclude: int,
        out_dtype: np.dtype[AnyValue] | None,
        **_: AnyValue,
    ) -> TensorType:
        if (
            size is None
            or len(size) != rank
            or any(isinstance(length, int) and length < 1 for length in size)
        ):
            raise TypeInferenceError(f"size: expected {rank} positive numbers, found {size}")
        cropped = coordinate_transformation_mode == "tf_crop_and_resize"
        if roi is not None and len(roi) != 2 * rank:
            raise TypeInferenceError(f"roi: expected {2 * rank} numbers, found {list(roi)}")
        if cropped and roi is None:
            raise TypeInferenceError("tf_crop_and_resize needs a roi")
        shape = _with_lengths(data, layout, size)
        dtype = data.dtype if out_dtype is None else dtype_name(out_dtype)
        return TensorType(shape, dtype)

    return infer


def _with_lengths(data: TensorType, layout: str, lengths: Sequence[Dim]) -> list[Dim]:
    axes = layout_axes(layout, "NC" + _SPATIAL[len(lengths)])
    if data.rank != len(axes):
        raise TypeInferenceError(f"expected data of layout {layout}, found {data!r}")
    shape = list(data.shape)
    for axis, length in zip(axes[2:], lengths, strict=True):
        if shape[axis] == 0:
            raise TypeInferenceError(f"{data!r} has nothing to resize")
        shape[axis] = length
    return shape


@relay_op(
    "image.resize1d",
    infer=_relation(1),
    samples=[
        sample((2, 3, 5), size=(8,)),
        sample((2, 5, 3), size=(3,), layout="NWC", method="cubic", cubic_exclude=1),
        sample(tensor((1, 2, 4), "uint8", low=0, high=255), size=(7,), method="nearest_neighbor",
               coordinate_transformation_mode="asymmetric", rounding_method=""),
    ],
)  # fmt: skip
def resize1d(
    data: Array,
    *,
    size: tuple[Dim, ...] | None = None,
    roi: tuple[float, ...] | None = None,
    layout: str = "NCW",
    method: Method = "linear",
    coordinate_transformation_mode: Mode = "half_pixel",
    rounding_method: Rounding = "round",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: np.dtype[AnyValue] | None = None,
) -> Array:
    """`data` with its width resized to `size`; see ``image.resize2d``."""
    return _resize(1, data, locals())


@relay_op(
    "image.resize2d",
    infer=_relation(2),
    samples=[
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
    ],
)  # fmt: skip
def resize2d(
    data: Array,
    *,
    size: tuple[Dim, ...] | None = None,
    roi: tuple[float, ...] | None = None,
    layout: str = "NCHW",
    method: Method = "linear",
    coordinate_transformation_mode: Mode = "half_pixel",
    rounding_method: Rounding = "round",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: np.dtype[AnyValue] | None = None,
) -> Array:
    """`data` with height and width resized to `size`.

    The coordinate modes are those of ONNX Resize. `roi` (starts, then ends, relative)
    and `extrapolation_value` serve tf_crop_and_resize alone. An empty `rounding_method`
    rounds for align_corners and takes the floor otherwise. `cubic_exclude` leaves out
    what lies beyond the edge, which is else repeated.
    """
    return _resize(2, data, locals())


@relay_op(
    "image.resize3d",
    infer=_relation(3),
    samples=[
        sample((1, 2, 3, 4, 5), size=(4, 6, 3)),
        sample((1, 3, 4, 5, 2), size=(5, 3, 7), layout="NDHWC", method="nearest_neighbor"),
        sample((1, 1, 3, 4, 5), size=(4, 3, 6), method="cubic"),
    ],
)
def resize3d(
    data: Array,
    *,
    size: tuple[Dim, ...] | None = None,
    roi: tuple[float, ...] | None = None,
    layout: str = "NCDHW",
    method: Method = "linear",
    coordinate_transformation_mode: Mode = "half_pixel",
    rounding_method: Rounding = "round",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: np.dtype[AnyValue] | None = None,
) -> Array:
    """`data` with depth, height and width resized to `size`; see ``image.resize2d``."""
    return _resize(3, data, locals())


def _declare_builder(rank: int, default_layout: str) -> None:
    @builder(f"image.resize{rank}d")
    def build(
        data: Expr,
        size: AnyValue,
        roi: AnyValue = None,
        layout: str = default_layout,
        method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel",
        rounding_method: str = "",
        cubic_alpha: float = -0.5,
        cubic_exclude: int = 0,
        extrapolation_value: float = 0.0,
        out_dtype: AnyValue = None,
    ) -> Expr:
        """Build a resizing; one size holds for all axes, no `roi` is one of zeros."""
        return call(
            f"image.resize{rank}d",
            data,
            size=(size,) * rank if isinstance(size, int) else size,
            roi=(0.0,) * (2 * rank) if roi is None else roi,
            layout=layout,
            method=method,
            coordinate_transformation_mode=coordinate_transformation_mode,
            rounding_method=rounding_method,
            cubic_alpha=cubic_alpha,
            cubic_exclude=cubic_exclude,
            extrapolation_value=extrapolation_value,
            out_dtype=out_dtype,
        )


for _rank, _layout in ((1, "NCW"), (2, "NCHW"), (3, "NCDHW")):
    _declare_builder(_rank, _layout)


def _scaled(length: Dim, scale: float) -> Dim:
    if not scale > 0:
        raise TypeInferenceError(f"expected a positive scale, found {scale}")
    if type(length) is int:
        return int(np.floor(length * scale + 0.5))
    return length * int(scale) if scale == int(scale) else Any()


def _upsampling_type(
    data: TensorType,
    *,
    scale_h: float,
    scale_w: float,
    layout: str,
    method: str,
    align_corners: bool,
) -> TensorType:
    if data.rank != 4:
        raise TypeInferenceError(f"expected data of layout {layout}, found {data!r}")
    height, width = at(data.shape, layout_axes(layout, "NCHW")[2:])
    lengths = (_scaled(height, scale_h), _scaled(width, scale_w))
    return TensorType(_with_lengths(data, layout, lengths), data.dtype)


def _upsample(data: Array, axes: Sequence[int], scales: Sequence[float], how: _Resize) -> Array:
    result = _working(data, how.method)
    for axis, scale in zip(axes, scales, strict=True):
        length = data.shape[axis]
        size = int(np.floor(length * scale + 0.5))
        result = how.apply(result, axis, how.places(length, size, 0.0, 1.0))
    return result.astype(data.dtype, copy=False)


@relay_op(
    "nn.upsampling",
    infer=_upsampling_type,
    samples=[
        sample((1, 2, 3, 4), scale_h=2.0, scale_w=3.0),
        sample((1, 3, 4, 2), scale_h=2.0, scale_w=1.5, layout="NHWC", method="bilinear"),
        sample((1, 2, 3, 4), scale_h=2.0, scale_w=2.0, method="bicubic", align_corners=True),
    ],
)
def upsampling(
    data: Array,
    *,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: Literal["nearest_neighbor", "bilinear", "bicubic"] = "nearest_neighbor",
    align_corners: bool = False,
) -> Array:
    """`data` with height and width scaled to rounded lengths.

    First elements coincide, and with `align_corners` the last ones too.
    """
    mode = "align_corners" if align_corners else "asymmetric"
    how = _Resize(method.removeprefix("bi"), mode)
    return _upsample(data, layout_axes(layout, "NCHW")[2:], (scale_h, scale_w), how)


@builder("nn.upsampling")
def build_upsampling(
    data: Expr,
    scale_h: float = 1,
    scale_w: float = 1,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> Expr:
    """Build ``nn.upsampling``."""
    return call(
        "nn.upsampling",
        data,
        scale_h=scale_h,
        scale_w=scale_w,
        layout=layout,
        method=method,
        align_corners=align_corners,
    )


def _upsampling3d_type(
    data: TensorType,
    *,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str,
    method: str,
    coordinate_transformation_mode: str,
) -> TensorType:
    if data.rank != 5:
        raise TypeInferenceError(f"expected data of layout {layout}, found {data!r}")
    space = at(data.shape, layout_axes(layout, "NCDHW")[2:])
    scales = (scale_d, scale_h, scale_w)
    lengths = [_scaled(length, scale) for length, scale in zip(space, scales, strict=True)]
    return TensorType(_with_lengths(data, layout, lengths), data.dtype)


@relay_op(
    "nn.upsampling3d",
    infer=_upsampling3d_type,
    samples=[
        sample((1, 2, 2, 3, 4), scale_d=2.0, scale_h=2.0, scale_w=3.0),
        sample((1, 2, 3, 4, 2), scale_d=1.5, scale_h=2.0, scale_w=1.0, layout="NDHWC",
               method="trilinear", coordinate_transformation_mode="align_corners"),
    ],
)  # fmt: skip
def upsampling3d(
    data: Array,
    *,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str = "NCDHW",
    method: Literal["nearest_neighbor", "trilinear"] = "nearest_neighbor",
    coordinate_transformation_mode: Literal[
        "half_pixel", "align_corners", "asymmetric"
    ] = "half_pixel",
) -> Array:
    """`data` with depth, height and width scaled; the lengths of the result are rounded."""
    how = _Resize(method.removeprefix("tri"), coordinate_transformation_mode)
    axes = layout_axes(layout, "NCDHW")[2:]
    return _upsample(data, axes, (scale_d, scale_h, scale_w), how)


@builder("nn.upsampling3d")
def build_upsampling3d(
    data: Expr,
    scale_d: float = 1,
    scale_h: float = 1,
    scale_w: float = 1,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> Expr:
    """Build ``nn.upsampling3d``."""
    return call(
        "nn.upsampling3d",
        data,
        scale_d=scale_d,
        scale_h=scale_h,
        scale_w=scale_w,
        layout=layout,
        method=method,
        coordinate_transformation_mode=coordinate_transformation_mode,
    )


def _crop_type(
    data: TensorType,
    boxes: TensorType,
    box_indices: TensorType,
    *,
    crop_size: tuple[Dim, ...] | None,
    layout: str,
    method: str,
    extrapolation_value: float,
    out_dtype: np.dtype[AnyValue] | None,
) -> TensorType:
    if crop_size is None or len(crop_size) != 2 or any(length < 1 for length in crop_size):
        raise TypeInferenceError(f"crop_size: expected 2 positive numbers, found {crop_size}")
    if (
        boxes.rank != 2
        or (type(boxes.shape[1]) is int and boxes.shape[1] != 4)
        or not is_float(boxes.dtype)
    ):
        raise TypeInferenceError(f"expected boxes of shape (n, 4), found {boxes!r}")
    if box_indices.rank != 1 or not box_indices.dtype.startswith("int"):
        raise TypeInferenceError(f"expected one image number a box, found {box_indices!r}")
    shape = _with_lengths(data, layout, crop_size)
    shape[layout.index("N")] = boxes.shape[0]
    dtype = data.dtype if out_dtype is None else dtype_name(out_dtype)
    return TensorType(shape, dtype)


@relay_op(
    "image.crop_and_resize",
    infer=_crop_type,
    samples=[
        sample((2, 6, 7, 3), tensor((3, 4), low=-0.2, high=1.1), np.array([0, 1, 1], np.int32),
               crop_size=(4, 5), layout="NHWC", extrapolation_value=0.5),
        sample((2, 3, 6, 7), tensor((2, 4), low=0.0, high=1.0), np.array([1, 0], np.int32),
               crop_size=(3, 1), method="nearest_neighbor"),
    ],
)  # fmt: skip
def crop_and_resize(
    data: Array,
    boxes: Array,
    box_indices: Array,
    *,
    crop_size: tuple[Dim, ...] | None = None,
    layout: str = "NCHW",
    method: Literal["bilinear", "nearest_neighbor"] = "bilinear",
    extrapolation_value: float = 0.0,
    out_dtype: np.dtype[AnyValue] | None = None,
) -> Array:
    """Each box cut out of the image that `box_indices` names, and resized.

    A box is (top, left, bottom, right), 0 being the first and 1 the last pixel; its
    corners land on those of the result. Beyond the image is `extrapolation_value`.
    """
    images = data.transpose(layout_axes(layout, "NCHW"))
    how = _Resize(method.removeprefix("bi"), "tf_crop_and_resize", "round")
    height, width = crop_size or (0, 0)
    dtype = np.dtype(out_dtype or data.dtype)
    out = np.empty((len(boxes), images.shape[1], height, width), dtype)
    for (top, left, bottom, right), index, cut in zip(
        boxes.astype(np.float64), box_indices, out, strict=True
    ):
        rows = how.places(images.shape[2], height, top, bottom)
        columns = how.places(images.shape[3], width, left, right)
        image = how.apply(_working(images[index], how.method), 1, rows)
        image = how.apply(image, 2, columns)
        beyond = ((rows < 0) | (rows > images.shape[2] - 1))[:, None]
        beyond = beyond | (columns < 0) | (columns > images.shape[3] - 1)
        cut[...] = np.where(beyond, np.asarray(extrapolation_value, image.dtype), image)
    return out.transpose(layout_axes("NCHW", layout))


@builder("image.crop_and_resize")
def build_crop_and_resize(
    data: Expr,
    boxes: Expr,
    box_indices: Expr,
    crop_size: AnyValue,
    layout: str,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    out_dtype: AnyValue = None,
) -> Expr:
    """Build ``image.crop_and_resize``."""
    return call(
        "image.crop_and_resize",
        data,
        boxes,
        box_indices,
        crop_size=crop_size,
        layout=layout,
        method=method,
        extrapolation_value=extrapolation_value,
        out_dtype=out_dtype,
    )
