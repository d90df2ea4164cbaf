"""Resizing by lengths or factors that are operands."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.core.weights import dtype_name
from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Array, TensorType, ranges, relay_op, sample, tensor
from serde.relay.ir.traits import Float32, Fusion, FusionPattern, InRange, Layout
from serde.relay.op.image import upsampling as planes
from serde.relay.op.image.resize import ImageResize, run_resize
from serde.relay.op.image.upsampling import (
    Upsampling,
    Upsampling3d,
    decompose_upsampling,
    decompose_upsampling3d,
)
from serde.relay.op.shape.dynamic import Given, integers_of, static_type


def _with_unknown_lengths(data: TensorType, layout: str, dtype: AnyValue = None) -> TensorType:
    """Return the type with unknown lengths in place of those of the spatial axes."""
    if data.rank != len(layout):
        raise TypeInferenceError(f"expected data of layout {layout}, found {data!r}")
    shape = [
        dim if letter in "NC" else Any() for letter, dim in zip(layout, data.shape, strict=True)
    ]
    return TensorType(shape, dtype or data.dtype)


def _resize2d_type(data: TensorType, size: Given, roi: Given, **attrs: AnyValue) -> TensorType:
    # Lengths may be whole floats, as TVM has them.
    if tuple(size.shape) != (2,) or tuple(roi.shape) != (4,):
        raise TypeInferenceError(f"expected two lengths and four edges, found {size!r}, {roi!r}")
    if isinstance(size, np.ndarray):
        edges = tuple(map(float, roi)) if isinstance(roi, np.ndarray) else (0.0,) * 4
        return static_type("image.resize2d", data, size=integers_of(size), roi=edges, **attrs)
    dtype = attrs["out_dtype"]
    return _with_unknown_lengths(
        data, attrs["layout"], None if dtype is None else dtype_name(dtype)
    )


_NO_ROI, _USUAL = np.zeros(4, np.float32), ImageResize(layout="NCHW")


@relay_op(
    "dyn.image.resize2d",
    traits=(
        Layout(),
        Fusion(FusionPattern.INJECTIVE),
        Float32(),
        InRange(ranges.within(1, (8, 64))),
    ),
    infer=_resize2d_type,
    by_value=["size", "roi"],
    samples=[
        sample((1, 2, 5, 4), np.array([7, 9], np.int64), _NO_ROI),
        sample(
            (1, 5, 4, 2),
            tensor((2,), "int64", low=8, high=8),
            _NO_ROI,
            layout="NHWC",
            method="nearest_neighbor",
            coordinate_transformation_mode="asymmetric",
            rounding_method="floor",
        ),
    ],
)
def resize2d(data: Array, size: Array, roi: Array, *, resize: ImageResize = _USUAL) -> Array:
    """`data` with height and width resized to `size`; see ``image.resize2d``."""
    return run_resize(data, integers_of(size), tuple(map(float, roi)), resize)


def _infer_upsampling(
    name: str, data: TensorType, scales: dict[str, Given], attrs: dict[str, AnyValue]
) -> TensorType:
    if any(tuple(scale.shape) not in ((), (1,)) for scale in scales.values()):
        raise TypeInferenceError(f"expected scalars, found {list(scales.values())}")
    known = {key: each.item() for key, each in scales.items() if isinstance(each, np.ndarray)}
    if len(known) == len(scales):
        return static_type(name, data, **known, **attrs)
    return _with_unknown_lengths(data, attrs["layout"])


def _upsampling_type(
    data: TensorType, scale_h: Given, scale_w: Given, **attrs: AnyValue
) -> TensorType:
    return _infer_upsampling("nn.upsampling", data, {"scale_h": scale_h, "scale_w": scale_w}, attrs)


_TWICE = tensor((), low=2, high=2)


@relay_op(
    "dyn.nn.upsampling",
    traits=(Layout(), Fusion(FusionPattern.INJECTIVE), Float32()),
    infer=_upsampling_type,
    decompose=decompose_upsampling,
    by_value=["scale_h", "scale_w"],
    samples=[
        sample((1, 2, 3, 4), np.float32(2), np.float32(1.5)),
        sample((1, 3, 4, 2), _TWICE, _TWICE, layout="NHWC", method="bilinear"),
    ],
)
def dynamic_upsampling(
    data: Array, scale_h: Array, scale_w: Array, *, upsampling: Upsampling
) -> Array:
    """`data` with height and width scaled; see ``nn.upsampling``."""
    height, width = scale_h.item(), scale_w.item()
    return planes.upsampling(data, scale_h=height, scale_w=width, upsampling=upsampling)


def _upsampling3d_type(
    data: TensorType, scale_d: Given, scale_h: Given, scale_w: Given, **attrs: AnyValue
) -> TensorType:
    scales = {"scale_d": scale_d, "scale_h": scale_h, "scale_w": scale_w}
    return _infer_upsampling("nn.upsampling3d", data, scales, attrs)


@relay_op(
    "dyn.nn.upsampling3d", traits=(Layout(), Fusion(FusionPattern.INJECTIVE)),
    infer=_upsampling3d_type,
    decompose=decompose_upsampling3d,
    by_value=["scale_d", "scale_h", "scale_w"],
    samples=[
        sample((1, 2, 2, 3, 4), np.float32(2), np.float32(2), np.float32(3)),
        sample((1, 2, 3, 2, 2), _TWICE, _TWICE, _TWICE, layout="NDHWC", method="trilinear",
               coordinate_transformation_mode="align_corners"),
    ],
)  # fmt: skip
def dynamic_upsampling3d(
    data: Array, scale_d: Array, scale_h: Array, scale_w: Array, *, upsampling: Upsampling3d
) -> Array:
    """`data` with depth, height and width scaled; see ``nn.upsampling3d``."""
    scales = {"scale_d": scale_d.item(), "scale_h": scale_h.item(), "scale_w": scale_w.item()}
    return planes.upsampling3d(data, **scales, upsampling=upsampling)
