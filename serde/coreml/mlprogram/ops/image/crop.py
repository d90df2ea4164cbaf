"""Parts of images: cropped, and resized."""

from __future__ import annotations

from typing import Any as AnyValue, Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.records import dataclass
from serde.coreml.mlprogram.operators import HALVES
from serde.coreml.mlprogram.ops.image.resize import Sampling
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Call, Dim, Expr, TensorType, tensor_type
from serde.relay.op.image.crop import CropAndResize
from serde.walk.takes import Takes, like

Corners = Literal[
    "CORNERS_HEIGHT_FIRST",
    "CORNERS_WIDTH_FIRST",
    "CENTER_SIZE_HEIGHT_FIRST",
    "CENTER_SIZE_WIDTH_FIRST",
]


@dataclass(frozen=True, kw_only=True)
class CropResizeAttributes:
    """Attributes of MIL's ``crop_resize``."""

    target_height: int = 1
    target_width: int = 1
    normalized_coordinates: bool = False
    spatial_scale: float = 1.0
    box_coordinate_mode: Corners = "CORNERS_HEIGHT_FIRST"
    sampling_mode: Sampling = "DEFAULT"
    pad_value: float = 0.0

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the results."""
        return self.target_height, self.target_width


@OPS.imports("crop")
def import_crop(
    ctx: Import, x: Expr, *, crop_height: tuple[int, int], crop_width: tuple[int, int]
) -> Expr:
    """Ends are counted from the last element; nothing comes off one where that is zero."""
    rank = ctx.type(x).rank
    begin, end, axes = [], [], []
    for axis, (first, last) in ((rank - 2, crop_height), (rank - 1, crop_width)):
        begin.append(first)
        end.append(-last if last else np.iinfo(np.int32).max)
        axes.append(axis)
    return relay.strided_slice(x, begin, end, [1, 1], axes=axes)


def _float(x: Expr, ctx: Import) -> Expr:
    return x if ctx.type(x).dtype == "float32" else relay.cast(x, "float32")


def _number(value: float) -> Expr:
    return relay.const(np.array(value, np.float32))


def _convert_boxes(ctx: Import, x: Expr, boxes: Expr, crop: CropResizeAttributes) -> Expr:
    """Return boxes as Relay has them: top, left, bottom, right in parts of the last pixel.

    The positions at which a box is read go from its first to its last, but for those that
    MIL puts inside.
    """
    corners, sampling = crop.box_coordinate_mode, crop.sampling_mode
    if sampling in ("DEFAULT", "UNALIGN_CORNERS"):
        raise Unsupported(f"sampling_mode={sampling!r} of a box, whose ends MIL does not tell")
    columns = list(relay.split(_float(boxes, ctx), 4, axis=1))
    if "WIDTH_FIRST" in corners:
        columns = [columns[1], columns[0], columns[3], columns[2]]
    if crop.spatial_scale != 1:
        columns = [relay.multiply(each, _number(crop.spatial_scale)) for each in columns]
    firsts, lasts = columns[:2], columns[2:]
    if corners.startswith("CENTER"):
        halves = [relay.multiply(each, _number(0.5)) for each in lasts]
        centres = firsts
        firsts = [relay.subtract(c, h) for c, h in zip(centres, halves, strict=True)]
        lasts = [relay.add(c, h) for c, h in zip(centres, halves, strict=True)]
    spans = None
    if not crop.normalized_coordinates or sampling == "OFFSET_CORNERS":
        spans = [max(length - 1, 1) for length in ctx.static_lengths(x, (2, 3))]
    for axis in range(2):
        first, last = firsts[axis], lasts[axis]
        if spans is not None and not crop.normalized_coordinates:
            unit = _number(1 / spans[axis])
            first, last = relay.multiply(first, unit), relay.multiply(last, unit)
        if sampling == "STRICT_ALIGN_CORNERS" and crop.size[axis] == 1:
            last = first
        elif sampling == "OFFSET_CORNERS" and spans is not None:
            least = _number(1 / spans[axis])
            span = relay.maximum(relay.subtract(last, first), least)
            step = relay.multiply(span, _number(1 / crop.size[axis]))
            first = relay.add(first, relay.multiply(step, _number(0.5)))
            last = relay.add(first, relay.multiply(step, _number(crop.size[axis] - 1)))
        firsts[axis], lasts[axis] = first, last
    return relay.concatenate([*firsts, *lasts], axis=1)


@OPS.imports("crop_resize", since=17)
def import_crop_resize(
    ctx: Import,
    x: Expr,
    boxes: Expr,
    box_indices: Expr | None = None,
    *,
    crop: CropResizeAttributes,
) -> Expr:
    found = _convert_boxes(ctx, x, boxes, crop)
    if box_indices is None:
        (count,) = ctx.static_lengths(boxes, [0])
        box_indices = relay.const(allocation.arange(count, dtype=np.int32))
    return _crop_and_resize(x, found, relay.cast(box_indices, "int32"), crop)


def _crop_and_resize(x: Expr, boxes: Expr, indices: Expr, crop: CropResizeAttributes) -> Expr:
    return relay.image.crop_and_resize(
        x, boxes, indices, crop.size, layout="NCHW", method="bilinear",
        extrapolation_value=crop.pad_value,
    )  # fmt: skip


@OPS.imports("crop_resize", since=(1, 16))
def import_crop_resize_v1(ctx: Import, x: Expr, roi: Expr, *, crop: CropResizeAttributes) -> Expr:
    """Boxes lie in five axes; each is cut out of all images, or of the one that it names."""
    count, fields = ctx.static_lengths(roi, (0, 2))
    rows = relay.reshape(roi, [count, fields])
    if fields == 5:
        number, boxes = relay.split(rows, [1], axis=1)
        indices = relay.cast(relay.squeeze(number, [1]), "int32")
        images = 1
    else:
        (images,) = ctx.static_lengths(x, [0])
        boxes = relay.repeat(rows, images, axis=0)
        indices = relay.Constant(allocation.tile(allocation.arange(images, dtype=np.int32), count))
    found = _convert_boxes(ctx, x, boxes, crop)
    cut = _crop_and_resize(x, found, indices, crop)
    return relay.reshape(cut, [-4, count, images, -2]) if images != 1 else relay.expand_dims(cut, 1)


_BOXES = Takes(data=HALVES, method="bilinear", out_dtype=like("data"))


def _has_size(node: Call) -> bool:
    return all(isinstance(length, int) for length in node.attrs["crop_size"] or (None,))


def _is_one_image(node: Call) -> bool:
    """Whether there is one image: before iOS17, the result has as many axes as there are."""
    one = tensor_type(node.args[0]).shape[0] == 1
    return _has_size(node) and one and isinstance(_boxes_count(node), int)


def _boxes_count(node: Call) -> Dim | None:
    type_ = node.args[1].type
    return type_.shape[0] if isinstance(type_, TensorType) else None


def _export_boxes(
    ctx: Export, data: Value, boxes: Value, box_indices: Value, *, crop: CropAndResize
) -> Value:
    """Before iOS17 boxes lie in five axes and have the dtype of the images."""
    height, width = (length for length in crop.crop_size or () if isinstance(length, int))
    wanted, dtype = ctx.result_type(), ctx.type(data).dtype
    inputs: dict[str, AnyValue] = {
        "target_height": height,
        "target_width": width,
        "normalized_coordinates": True,
        "spatial_scale": ctx.const(1.0, "float32"),
        "box_coordinate_mode": "CORNERS_HEIGHT_FIRST",
        "sampling_mode": "ALIGN_CORNERS",
    }
    if ctx.version >= 16:
        inputs["pad_value"] = ctx.const(crop.extrapolation_value, dtype)
    if ctx.version >= 17:
        indices = ctx.cast(box_indices, "int32")
        return ctx.emit("crop_resize", x=data, boxes=boxes, box_indices=indices, **inputs)
    (count,) = ctx.static_lengths(boxes, [0])

    def rows(given: Expr) -> Expr:
        return relay.reshape(relay.cast(given, dtype), [count, 1, 4, 1, 1])

    result = ctx.emit(
        "crop_resize",
        TensorType((count, 1, *wanted.shape[1:]), wanted.dtype),
        x=data,
        roi=ctx.spell(rows, boxes),
        **inputs,
    )
    return ctx.spell(lambda x: relay.squeeze(x, [1]), result)


_OF_ZEROS = _BOXES.over({"extrapolation_value": 0})
OPS.exports("image.crop_and_resize", takes=_OF_ZEROS, when=_is_one_image)(_export_boxes)
OPS.exports("image.crop_and_resize", since=16, takes=_BOXES, when=_is_one_image)(_export_boxes)
OPS.exports("image.crop_and_resize", since=17, takes=_BOXES, when=_has_size)(_export_boxes)
