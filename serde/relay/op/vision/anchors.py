"""Anchor boxes of feature maps, and what a detector predicts relative to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
from serde.core import dataclass, numpy_dtype
from serde.errors import TypeInferenceError
from serde.relay.ir import Constant, Expr, TensorType, Tuple, TupleWrapper, const, tensor_type
from serde.relay.ir.registry import Array, builder, call, relay_op, sample
from serde.relay.ir.shapes import join_dim, require_float, require_same_dtype
from serde.relay.ir.traits import Float32, Ordering, TypeOnly
from serde.relay.lowering.lengths import length_of
from serde.relay.op.shape.create import positions_along
from serde.relay.op.vision.rows import columns, corners_of, in_front, stay_first

__all__ = ["Decoding", "Priors", "multibox_transform_loc", "prior_boxes"]


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """Attributes of ``vision.multibox_transform_loc``."""

    clip: bool = True
    threshold: float = 0.01
    variances: tuple[float, ...] = (0.1, 0.1, 0.2, 0.2)
    keep_background: bool = False


@dataclass(frozen=True, kw_only=True)
class Priors:
    """Attributes of ``vision.multibox_prior``."""

    sizes: tuple[float, ...] = (1.0,)
    ratios: tuple[float, ...] = (1.0,)
    steps: tuple[float, ...] = (-1.0, -1.0)
    offsets: tuple[float, ...] = (0.5, 0.5)
    clip: bool = False


def _multibox_prior_type(data: TensorType, *, priors: Priors) -> TensorType:
    require_float(data)
    sizes, ratios, steps, offsets = priors.sizes, priors.ratios, priors.steps, priors.offsets
    if data.rank != 4 or len(steps) != 2 or len(offsets) != 2 or not sizes or not ratios:
        raise TypeInferenceError(
            f"expected a feature map, sizes, ratios, two steps and two offsets, found {data!r}, "
            f"{list(sizes)}, {list(ratios)}, {list(steps)} and {list(offsets)}"
        )
    if any(not ratio > 0 for ratio in ratios):
        raise TypeInferenceError(f"expected positive ratios, found {list(ratios)}")
    number = len(sizes) + len(ratios) - 1
    return TensorType((1, data.shape[2] * data.shape[3] * number, 4), data.dtype)


def _decompose_prior(data: Expr, *, priors: Priors) -> Expr:
    """The boxes of a map of fixed lengths are a constant."""
    type_ = tensor_type(data)
    height, width = type_.shape[2:]
    if isinstance(height, int) and isinstance(width, int):
        known = prior_boxes(height, width, priors)
        return Constant(known.astype(numpy_dtype(type_.dtype)))
    wide = "float64"
    h, w = (call("cast", length_of(data, axis, "int64"), dtype=wide) for axis in (2, 3))
    centres = []
    for axis, length in enumerate((h, w)):
        given = const(priors.steps[axis], wide)
        step = given if priors.steps[axis] > 0 else call("divide", const(1, wide), length)
        start = const(priors.offsets[axis], wide)
        place = call("add", positions_along(data, 2 + axis, wide), start)
        centre = call("multiply", place, step)
        centres.append(call("expand_dims", centre, axis=1, num_newaxis=2 - axis))
    y, x = centres
    sizes, roots = priors.sizes, np.sqrt(np.array(priors.ratios[1:], np.float64))
    across, down = ([*sizes, *each] for each in (sizes[0] * roots, sizes[0] / roots))
    half_w = call("multiply", const(np.array(across) / 2, wide), call("divide", h, w))
    half_h = const(np.array(down) / 2, wide)
    nothing = call("zeros_like", call("add", call("add", y, x), half_h))
    edges = [
        call("add", call(sign, centre, half), nothing)
        for sign in ("subtract", "add")
        for centre, half in ((x, half_w), (y, half_h))
    ]
    found = call("stack", edges, axis=-1)
    found = call("clip", found, a_min=0.0, a_max=1.0) if priors.clip else found
    return call("reshape", call("cast", found, dtype=type_.dtype), newshape=(1, -1, 4))


@relay_op(
    "vision.multibox_prior",
    traits=(TypeOnly(0), Float32()),
    infer=_multibox_prior_type,
    decompose=_decompose_prior,
    samples=[
        sample((2, 3, 4, 5), sizes=[0.5, 0.25], ratios=[1.0, 2.0, 0.5], clip=True),
        sample((1, 1, 3, 2), steps=[0.25, 0.5], offsets=[0.0, 0.25]),
        sample((1, 1, 2, 3), sizes=[0.5, 0.25], ratios=[1.25, 2.0]),
    ],
)
def multibox_prior(data: Array, *, priors: Priors) -> Array:
    """Boxes (left, top, right, bottom) around each place of a feature map, in parts of its size.

    At each place a box of every size in the first ratio, then one of the first size in every
    other. Places are `steps` apart (vertical first), the parts themselves where these are not
    positive.
    """
    boxes = prior_boxes(data.shape[2], data.shape[3], priors)
    return boxes.astype(data.dtype)


def prior_boxes(height: int, width: int, priors: Priors) -> Array:
    """Return the boxes of :func:`multibox_prior` in double precision.

    Raises:
        LimitError: They are more than the budget of the conversion affords.
    """
    sizes, ratios, steps, offsets = priors.sizes, priors.ratios, priors.steps, priors.offsets
    allocation.allow((height, width, len(sizes) + len(ratios) - 1, 4), np.float64)
    down = steps[0] if steps[0] > 0 else 1 / height
    across = steps[1] if steps[1] > 0 else 1 / width
    y = (np.arange(height) + offsets[0]) * down
    x = (np.arange(width) + offsets[1]) * across
    shape = height / width
    half_w = [size * shape / 2 for size in sizes]
    half_w += [sizes[0] * shape * np.sqrt(ratio) / 2 for ratio in ratios[1:]]
    half_h = [size / 2 for size in sizes]
    half_h += [sizes[0] / np.sqrt(ratio) / 2 for ratio in ratios[1:]]
    centres_y, centres_x, halves = np.meshgrid(y, x, np.arange(len(half_w)), indexing="ij")
    w, h = np.array(half_w)[halves], np.array(half_h)[halves]
    boxes = np.stack([centres_x - w, centres_y - h, centres_x + w, centres_y + h], -1)
    return (np.clip(boxes, 0, 1) if priors.clip else boxes).reshape(1, -1, 4)


def _transform_type(
    cls_prob: TensorType, loc_pred: TensorType, anchor: TensorType, *, decoding: Decoding
) -> list[TensorType]:
    """There is a row of six numbers for each anchor."""
    require_float(cls_prob)
    dtype = require_same_dtype(cls_prob, loc_pred, anchor)
    if cls_prob.rank != 3 or loc_pred.rank != 2 or anchor.rank != 3 or len(decoding.variances) != 4:
        raise TypeInferenceError(
            f"expected scores, offsets, anchors and four variances, found {cls_prob!r}, "
            f"{loc_pred!r}, {anchor!r} and {list(decoding.variances)}"
        )
    batch, number = join_dim(cls_prob.shape[0], loc_pred.shape[0]), cls_prob.shape[2]
    join_dim(number, anchor.shape[1])
    join_dim(loc_pred.shape[1], number * 4)
    join_dim(anchor.shape[2], 4)
    return [TensorType((batch, number, 6), dtype), TensorType((batch,), "int32")]


def _decompose_transform(
    cls_prob: Expr, loc_pred: Expr, anchor: Expr, *, decoding: Decoding
) -> Expr:
    dtype = tensor_type(cls_prob).dtype
    objects = columns(cls_prob, 1, 2**31 - 1, 1)
    score = call("max", objects, axis=(1,))
    class_ = call("cast", call("argmax", objects, axis=(1,)), dtype=dtype)
    least = const(max(decoding.threshold, -1.0), dtype)
    found = call("greater_equal" if decoding.threshold > -1 else "greater", score, least)
    class_ = call("where", found, class_, const(-1, dtype))
    offsets = call("reshape", loc_pred, newshape=(0, -1, 4))
    boxes = _offset_boxes(offsets, anchor, decoding.variances)
    boxes = call("clip", boxes, a_min=0.0, a_max=1.0) if decoding.clip else boxes
    marks = (call("expand_dims", each, axis=2) for each in (class_, score))
    rows = call("concatenate", [*marks, boxes], axis=2)
    shown = call("cast", found, dtype="int32")
    if decoding.keep_background:
        return Tuple([rows, call("sum", call("ones_like", shown), axis=(1,))])
    return Tuple([in_front(rows, *stay_first(found)), call("sum", shown, axis=(1,))])


def _offset_boxes(offsets: Expr, anchor: Expr, variances: Sequence[float]) -> Expr:
    dtype = tensor_type(anchor).dtype
    near, wide = (const(np.array(each), dtype) for each in (variances[:2], variances[2:]))
    (low, high), (shift, growth) = corners_of(anchor), corners_of(offsets)
    size, two = call("subtract", high, low), const(2, dtype)
    centre = call("divide", call("add", low, high), two)
    moved = call("multiply", call("multiply", shift, near), size)
    middle = call("add", moved, centre)
    grown = call("multiply", call("exp", call("multiply", growth, wide)), size)
    half = call("divide", grown, two)
    ends = [call("subtract", middle, half), call("add", middle, half)]
    return call("concatenate", ends, axis=2)


_ANCHORS = np.array([[[0.1, 0.2, 0.5, 0.7], [0.0, 0.1, 0.3, 0.2], [0.4, 0.4, 0.9, 1.0],
                      [0.2, 0.6, 0.3, 0.9], [0.5, 0.0, 0.8, 0.4]]], np.float32)  # fmt: skip


@relay_op(
    "vision.multibox_transform_loc",
    traits=(Float32(), Ordering),
    infer=_transform_type,
    decompose=_decompose_transform,
    samples=[
        sample((2, 3, 5), (2, 20), _ANCHORS, threshold=0.5),
        sample((2, 3, 5), (2, 20), (1, 5, 4), clip=False, variances=[1.0, 0.5, 0.25, 0.5]),
        sample((1, 2, 5), (1, 20), _ANCHORS, threshold=0.2, keep_background=True),
    ],
)
def multibox_transform_loc(
    cls_prob: Array, loc_pred: Array, anchor: Array, *, decoding: Decoding
) -> tuple[Array, Array]:
    """Rows (class, score, left, top, right, bottom) of anchors that show objects; their count.

    An object's class is the best of those behind the first, which is the background; it is
    counted from there and must score `threshold`. The rows come first in their order, -1 follows.
    With `keep_background` all anchors stay, those of no object as class -1.
    """
    dtype = cls_prob.dtype
    best = cls_prob[:, 1:].argmax(1)
    scores = cls_prob[:, 1:].max(1)
    found = (scores >= dtype.type(decoding.threshold)) & (scores > -1)
    boxes = _decode_boxes(loc_pred.reshape(len(loc_pred), -1, 4), anchor, decoding.variances)
    if decoding.clip:
        boxes = np.clip(boxes, 0, 1)
    classes = np.where(found, best, -1)
    rows = np.concatenate([classes[..., None], scores[..., None], boxes], -1).astype(dtype)
    kept = np.ones_like(found) if decoding.keep_background else found
    order = np.argsort(~kept, 1, kind="stable")
    result = np.where(
        np.take_along_axis(kept, order, 1)[..., None],
        np.take_along_axis(rows, order[..., None], 1),
        dtype.type(-1),
    )
    return result, kept.sum(1).astype(np.int32)


def _decode_boxes(offsets: Array, anchor: Array, variances: Sequence[float]) -> Array:
    low, high = anchor[..., :2], anchor[..., 2:]
    size, centre = high - low, (low + high) / 2
    scale = np.asarray(variances, anchor.dtype)
    middle = offsets[..., :2] * scale[:2] * size + centre
    half = np.exp(offsets[..., 2:] * scale[2:]) * size / 2
    return np.concatenate([middle - half, middle + half], -1)


@builder("vision.multibox_transform_loc")
def build_multibox_transform_loc(
    cls_prob: Expr, loc_pred: Expr, anchor: Expr, clip: bool = True, threshold: float = 0.01,
    variances: AnyValue = (0.1, 0.1, 0.2, 0.2), keep_background: bool = False,
) -> TupleWrapper:  # fmt: skip
    """Build ``vision.multibox_transform_loc``."""
    result = call(
        "vision.multibox_transform_loc", cls_prob, loc_pred, anchor, clip=clip, threshold=threshold,
        variances=variances, keep_background=keep_background,
    )  # fmt: skip
    return TupleWrapper(result, 2)
