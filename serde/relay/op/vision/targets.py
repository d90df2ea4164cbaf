"""What a single-shot detector learns from: anchors matched with the objects of an image."""

from __future__ import annotations

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Float32, Ordering, TensorType, call, relay_op, sample
from serde.relay.ir.expr import Expr, Function, Tuple, TupleGetItem, Var, const
from serde.relay.ir.shapes import join_dim, require_float, require_same_dtype
from serde.relay.ir.work import pairs

_LEAST = 1e-6
"""What an anchor overlaps by at least with the object that it is the best for."""


@dataclass(frozen=True, kw_only=True)
class Targets:
    """Attributes of ``serde.multibox_target``.

    Attributes:
        overlap_threshold: What a match overlaps by, in parts of the union.
        ignore_label: The class of anchors that teach nothing: those of an image without objects,
            and those that mining does not choose.
        negative_mining_ratio: How many anchors without object are background for one that has
            one, rounded down; all of them unless it is positive.
        negative_mining_thresh: What those overlap by less; the least probable backgrounds count.
        variances: What the offsets are divided by.
    """

    overlap_threshold: float = 0.5
    ignore_label: float = -1.0
    negative_mining_ratio: float = -1.0
    negative_mining_thresh: float = 0.5
    variances: tuple[float, ...] = (0.1, 0.1, 0.2, 0.2)


def _target_type(
    anchor: TensorType, label: TensorType, cls_pred: TensorType, *, targets: Targets
) -> tuple[TensorType, TensorType, TensorType]:
    """Anchors serve all images; a label has five numbers or more."""
    require_float(label)
    require_same_dtype(anchor, label, cls_pred)
    if (anchor.rank, label.rank, cls_pred.rank, len(targets.variances)) != (3, 3, 3, 4):
        raise TypeInferenceError(
            f"expected anchors, labels, predictions and 4 variances, found {anchor!r}, {label!r}, "
            f"{cls_pred!r} and {len(targets.variances)}"
        )
    width = label.shape[2]
    if isinstance(width, int) and width < 5:
        raise TypeInferenceError(f"a label is a class and a box, found {width} numbers")
    join_dim(anchor.shape[0], 1)
    join_dim(anchor.shape[2], 4)
    batch = join_dim(label.shape[0], cls_pred.shape[0])
    number = join_dim(anchor.shape[1], cls_pred.shape[2])
    offsets = TensorType((batch, number * 4), label.dtype)
    return offsets, offsets, TensorType((batch, number), label.dtype)


def _columns(x: Expr, begin: int, end: int) -> Expr:
    return call("strided_slice", x, begin=[begin], end=[end], strides=[1], axes=[2])


def _column(x: Expr, index: int) -> Expr:
    return call("take", x, const(index, "int32"), axis=2)


def _dtype(x: Expr) -> str:
    if not isinstance(x.type, TensorType):
        raise TypeInferenceError(f"needs a tensor, found {x.type!r}")
    return x.type.dtype


def _decompose_target(anchor: Expr, label: Expr, cls_pred: Expr, *, targets: Targets) -> Expr:
    """Matching is a loop over the objects; all else is arithmetic on the pairs."""
    dtype = _dtype(label)
    boxes = _columns(label, 1, 5)
    ends = call("cast", call("equal", _column(label, 0), const(-1, dtype)), dtype="int32")
    valid = call("equal", call("cumsum", ends, axis=1), const(0, "int32"))
    overlaps = _overlaps_of(anchor, boxes, dtype)
    overlaps = call("where", call("expand_dims", valid, axis=1), overlaps, const(-1, dtype))
    most = call("max", overlaps, axis=(2,))
    match = _match_anchors(overlaps, dtype)
    if targets.overlap_threshold > 0:
        open_ = call("less", match, const(0, "int32"))
        near = call("greater", most, const(targets.overlap_threshold, dtype))
        best = call("argmax", overlaps, axis=(2,))
        match = call("where", call("logical_and", open_, near), best, match)
    positive = call("greater_equal", match, const(0, "int32"))
    other = call("logical_not", positive)
    if targets.negative_mining_ratio > 0:
        small = call("less", most, const(targets.negative_mining_thresh, dtype))
        choice = call("logical_and", other, small)
        negative = _mine_negatives(cls_pred, positive, choice, targets.negative_mining_ratio, dtype)
    else:
        known = call("any", valid, axis=(1,), keepdims=True)
        negative = call("logical_and", other, known)
    places = call("maximum", match, const(0, "int32"))
    rows = call("take", label, places, axis=1, batch_dims=1, mode="fast")
    classes = call("add", _column(rows, 0), const(1, dtype))
    rest = call("where", negative, const(0, dtype), const(targets.ignore_label, dtype))
    shown = call("expand_dims", positive, axis=2)
    offsets = _offsets_of(anchor, _columns(rows, 1, 5), targets.variances, dtype)
    kept = call("where", shown, offsets, const(0, dtype))
    mask = call("broadcast_to_like", call("cast", shown, dtype=dtype), offsets)
    flat = [call("reshape", each, newshape=(0, -1)) for each in (kept, mask)]
    return Tuple([*flat, call("where", positive, classes, rest)])


def _overlaps_of(anchor: Expr, boxes: Expr, dtype: str) -> Expr:
    """Return the overlaps ``(batch, anchors, objects)``, 0 where nothing is common."""
    zero, one = const(0, dtype), const(1, dtype)
    sides = []
    for each, axis in ((anchor, 2), (boxes, 1)):
        low, high = _columns(each, 0, 2), _columns(each, 2, 4)
        area = call("prod", call("subtract", high, low), axis=(2,))
        sides.append([call("expand_dims", x, axis=axis) for x in (low, high, area)])
    (low, high, area), (lows, highs, areas) = sides
    span = call("subtract", call("minimum", high, highs), call("maximum", low, lows))
    common = call("prod", call("maximum", span, zero), axis=(3,))
    union = call("subtract", call("add", area, areas), common)
    some = call("greater", common, zero)
    return call("divide", call("where", some, common, zero), call("where", some, union, one))


def _match_anchors(overlaps: Expr, dtype: str) -> Expr:
    """Return the object of each anchor: the best pair is one, then the best of what is left."""
    lines = [call("argmax", overlaps, axis=(axis,)) for axis in (2, 1)]
    begin = call("full_like", lines[0], const(-1, "int32"))
    one = const(1, "int32")
    at, of = (
        call("subtract", call("cumsum", call("full_like", line, one), axis=1), one)
        for line in lines
    )
    names = ("step", "left", "match", "at", "of")
    types = [TensorType((), "int64"), *(each.type for each in (overlaps, begin, at, of))]
    step, left, match, rows, columns = (
        Var(name, type_) for name, type_ in zip(names, types, strict=True)
    )
    most = call("max", left, axis=(2,))
    row = call("argmax", most, axis=(1,), keepdims=True)
    good = call("greater", call("max", most, axis=(1,), keepdims=True), const(_LEAST, dtype))
    hit = call("logical_and", call("equal", rows, row), good)
    objects = call("where", hit, call("argmax", left, axis=(2,)), const(-1, "int32"))
    column = call("max", objects, axis=(1,), keepdims=True)
    hits = [call("expand_dims", hit, axis=2)]
    hits.append(call("expand_dims", call("equal", columns, column), axis=1))
    used = call("where", call("logical_or", *hits), const(-1, dtype), left)
    found = call("maximum", match, objects)
    body = Function([step, left, match, rows, columns], Tuple([call("any", good), used, found]))
    lengths = overlaps.type.shape[1:] if isinstance(overlaps.type, TensorType) else ()
    fixed = [length for length in lengths if isinstance(length, int)]
    limit = const(min(fixed), "int64") if fixed else None
    last = call("serde.loop", limit, const(True, "bool"), [overlaps, begin], [at, of], body=body)
    return TupleGetItem(last, 1)


def _mine_negatives(cls_pred: Expr, positive: Expr, choice: Expr, ratio: float, dtype: str) -> Expr:
    """Return those of a choice that are least of all taken for background."""
    count = call("sum", call("cast", positive, dtype="float32"), axis=(1,), keepdims=True)
    number = call("floor", call("multiply", count, const(ratio, "float32")))
    background = call("take", call("nn.softmax", cls_pred, axis=1), const(0, "int32"), axis=1)
    marks = call("where", choice, background, const(2, dtype))
    order = call("argsort", marks, axis=1, dtype="int32")
    rank = call("cast", call("argsort", order, axis=1, dtype="int32"), dtype="float32")
    return call("logical_and", choice, call("less", rank, number))


def _offsets_of(anchor: Expr, boxes: Expr, variances: tuple[float, ...], dtype: str) -> Expr:
    (centre, size), (middle, span) = (
        (call("multiply", call("add", low, high), const(0.5, dtype)), call("subtract", high, low))
        for low, high in ((_columns(x, 0, 2), _columns(x, 2, 4)) for x in (anchor, boxes))
    )
    near = call("divide", call("subtract", middle, centre), size)
    grown = call("log", call("divide", span, size))
    offsets = call("concatenate", [near, grown], axis=2)
    return call("divide", offsets, const(np.array(variances), dtype))


_ANCHORS = np.array([[[0.1, 0.1, 0.5, 0.5], [0.4, 0.4, 0.9, 0.9], [0.0, 0.0, 0.2, 0.2],
                      [0.1, 0.1, 0.45, 0.5], [0.5, 0.0, 0.9, 0.4], [0.6, 0.7, 0.8, 0.9]]],
                    np.float32)  # fmt: skip
_LABELS = np.array([[[1, 0.1, 0.1, 0.4, 0.5], [2, 0.5, 0.5, 0.9, 0.9], [-1] * 5],
                    [[-1] * 5] * 3,
                    [[0, 0.1, 0.1, 0.5, 0.45], [3, 0.1, 0.15, 0.5, 0.5], [1, 0.6, 0.7, 0.8, 0.8]]],
                   np.float32)  # fmt: skip


@relay_op(
    "serde.multibox_target", traits=(pairs(), Float32(), Ordering),
    infer=_target_type,
    decompose=_decompose_target,
    samples=[
        sample(_ANCHORS, _LABELS, (3, 4, 6)),
        sample(_ANCHORS, _LABELS, (3, 2, 6), overlap_threshold=0.0, ignore_label=-2.0,
               variances=[1.0, 1.0, 0.5, 0.5]),
        sample(_ANCHORS, _LABELS, (3, 4, 6), overlap_threshold=0.7, negative_mining_ratio=1.0,
               negative_mining_thresh=0.3),
    ],
)  # fmt: skip
def multibox_target(
    anchor: Array, label: Array, cls_pred: Array, *, targets: Targets
) -> tuple[Array, Array, Array]:
    """Offsets of anchors from their objects, where they count, and classes (Liu et al., 2016).

    An object is (class, left, top, right, bottom); the first of class -1 ends those of an image.
    The pair of an anchor and an object that overlap most is matched, then that of what is left,
    and so on. Other anchors show the object that they overlap with most, if by more than
    `overlap_threshold` and that is positive.

    Args:
        anchor: Boxes ``(1, anchors, 4)``.
        label: Objects ``(batch, objects, 5 or more)``.
        cls_pred: Scores before a softmax ``(batch, classes, anchors)``, the first for background.
        targets: What is matched.

    Returns:
        Offsets and their mask ``(batch, 4 * anchors)``, zero where no object is shown, and
        classes ``(batch, anchors)``, one more than those of the objects, 0 for background.
    """
    batch, number = len(label), anchor.shape[1]
    offsets = np.zeros((batch, number, 4), label.dtype)
    mask = np.zeros_like(offsets)
    classes = np.full((batch, number), targets.ignore_label, label.dtype)
    for image, rows in enumerate(label):
        objects = rows[np.logical_and.accumulate(rows[:, 0] != -1)]
        if len(objects) == 0:
            continue
        overlaps = _overlaps(anchor[0], objects[:, 1:5])
        match, most = _pairs(overlaps), overlaps.max(1)
        if targets.overlap_threshold > 0:
            near = (match < 0) & (most > label.dtype.type(targets.overlap_threshold))
            match = np.where(near, overlaps.argmax(1), match)
        negative = np.flatnonzero(match < 0)
        if targets.negative_mining_ratio > 0:
            count = np.float32((match >= 0).sum()) * np.float32(targets.negative_mining_ratio)
            small = most[negative] < label.dtype.type(targets.negative_mining_thresh)
            order = _by_background(cls_pred[image][:, negative[small]])
            negative = negative[small][order[: int(np.minimum(count, number))]]
        classes[image, negative] = 0
        (shown,) = np.nonzero(match >= 0)
        found = objects[match[shown]]
        classes[image, shown] = found[:, 0] + 1
        offsets[image, shown] = _offsets(anchor[0, shown], found[:, 1:5], targets.variances)
        mask[image, shown] = 1
    return offsets.reshape(batch, -1), mask.reshape(batch, -1), classes


def _overlaps(anchors: Array, boxes: Array) -> Array:
    low, high = anchors[:, None, :2], anchors[:, None, 2:]
    lows, highs = boxes[:, :2], boxes[:, 2:]
    common = np.maximum(np.minimum(high, highs) - np.maximum(low, lows), 0).prod(-1)
    union = (high - low).prod(-1) + (highs - lows).prod(-1) - common
    return np.divide(common, union, out=np.zeros_like(common), where=common > 0)


def _pairs(overlaps: Array) -> Array:
    """Return the object that is matched with each anchor, -1 for none."""
    match, left = np.full(len(overlaps), -1), overlaps.copy()
    while left.max() > left.dtype.type(_LEAST):
        row, column = np.unravel_index(left.argmax(), left.shape)
        match[row] = column
        left[row] = left[:, column] = -1
    return match


def _by_background(scores: Array) -> Array:
    """Return the order of anchors by the probability of background, the least first."""
    shares = np.exp(scores - scores.max(0))
    return np.argsort(shares[0] / shares.sum(0), kind="stable")


def _offsets(anchors: Array, boxes: Array, variances: tuple[float, ...]) -> Array:
    (centre, size), (middle, span) = (
        ((x[:, :2] + x[:, 2:]) * x.dtype.type(0.5), x[:, 2:] - x[:, :2]) for x in (anchors, boxes)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        offsets = np.concatenate([(middle - centre) / size, np.log(span / size)], -1)
        return offsets / np.asarray(variances, offsets.dtype)
