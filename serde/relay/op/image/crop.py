"""Boxes cut out of images."""

from __future__ import annotations

from functools import partial
from typing import Any as AnyValue, Literal

import numpy as np

from serde.core import dataclass, dtype_name
from serde.errors import TypeInferenceError
from serde.relay.ir import Arguments, Array, Dim, TensorType, ranges, relay_op, sample, tensor
from serde.relay.ir.shapes import is_float, join_dim, layout_axes
from serde.relay.ir.traits import Float32, Fusion, FusionPattern, InRange, Layout
from serde.relay.ir.work import times
from serde.relay.lowering import sampling
from serde.relay.op.image.interpolation import (
    Interpolation,
    require_lengths,
    widen_for_method,
    with_lengths,
)

__all__ = ["CropAndResize"]


@dataclass(frozen=True, kw_only=True)
class CropAndResize:
    """Attributes of ``image.crop_and_resize``."""

    crop_size: tuple[Dim, ...] | None = None
    layout: str = "NCHW"
    method: Literal["bilinear", "nearest_neighbor"] = "bilinear"
    extrapolation_value: float = 0.0
    out_dtype: np.dtype[AnyValue] | None = None


def _crop_type(
    data: TensorType,
    boxes: TensorType,
    box_indices: TensorType,
    *,
    crop_size: tuple[Dim, ...] | None,
    layout: str,
    out_dtype: np.dtype[AnyValue] | None,
    **_: AnyValue,
) -> TensorType:
    """There are as many results as boxes."""
    lengths = require_lengths("crop_size", crop_size, 2)
    if (
        boxes.rank != 2
        or (type(boxes.shape[1]) is int and boxes.shape[1] != 4)
        or not is_float(boxes.dtype)
    ):
        raise TypeInferenceError(f"expected boxes of shape (n, 4), found {boxes!r}")
    if box_indices.rank != 1 or not box_indices.dtype.startswith("int"):
        raise TypeInferenceError(f"expected one image number a box, found {box_indices!r}")
    shape = with_lengths(data, layout, lengths)
    shape[layout.index("N")] = join_dim(boxes.shape[0], box_indices.shape[0])
    dtype = data.dtype if out_dtype is None else dtype_name(out_dtype)
    return TensorType(shape, dtype)


@relay_op(
    "image.crop_and_resize",
    traits=(
        times(8),
        Layout(),
        Fusion(FusionPattern.INJECTIVE),
        Float32(),
        InRange(ranges.along_operand(2, 0, 0)),
    ),
    infer=_crop_type,
    decompose=partial(sampling.crop_and_resize, "float64", "float64"),
    samples=[
        sample(
            (2, 6, 7, 3),
            tensor((3, 4), low=-0.2, high=1.1),
            np.array([0, 1, 1], np.int32),
            crop_size=(4, 5),
            layout="NHWC",
            extrapolation_value=0.5,
        ),
        sample(
            (2, 3, 6, 7),
            tensor((2, 4), low=0.0, high=1.0),
            np.array([1, 0], np.int32),
            crop_size=(3, 1),
            method="nearest_neighbor",
        ),
    ],
    arguments=Arguments(required=("crop_size", "layout")),
)
def crop_and_resize(data: Array, boxes: Array, box_indices: Array, *, crop: CropAndResize) -> Array:
    """Each box cut out of the image that `box_indices` names, and resized.

    A box is (top, left, bottom, right), 0 being the first and 1 the last pixel; its
    corners land on those of the result. Beyond the image is `extrapolation_value`.
    """
    images = data.transpose(layout_axes(crop.layout, "NCHW"))
    how = Interpolation(crop.method.removeprefix("bi"), "tf_crop_and_resize", "round")
    height, width = (length for length in crop.crop_size or () if isinstance(length, int))
    dtype = np.dtype(crop.out_dtype or data.dtype)
    out = np.empty((len(boxes), images.shape[1], height, width), dtype)
    for (top, left, bottom, right), index, cut in zip(
        boxes.astype(np.float64), box_indices, out, strict=True
    ):
        rows = how.positions(images.shape[2], height, top, bottom)
        columns = how.positions(images.shape[3], width, left, right)
        image = how.apply(widen_for_method(images[index], how.method), 1, rows)
        image = how.apply(image, 2, columns)
        beyond = ((rows < 0) | (rows > images.shape[2] - 1))[:, None]
        beyond = beyond | (columns < 0) | (columns > images.shape[3] - 1)
        cut[...] = np.where(beyond, np.asarray(crop.extrapolation_value, image.dtype), image)
    return out.transpose(layout_axes("NCHW", crop.layout))
