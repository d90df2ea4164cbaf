"""Non-maximum suppression of each class, as many boxes as there are."""

from __future__ import annotations

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Constant, Expr, TensorType, TupleGetItem, const, ranges, tensor_type
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import join_dim, require_float
from serde.relay.ir.traits import Cases, Fractions, InRange, Ordering
from serde.relay.ir.work import pairs
from serde.relay.op.vision.suppression import Boxes, suppress


def _selected_type(
    boxes: TensorType,
    scores: TensorType,
    limit: TensorType | None,
    overlap: TensorType | None,
    least: TensorType | None,
    *,
    center_point_box: bool,
) -> TensorType:
    require_float(boxes, scores)
    if boxes.rank != 3 or scores.rank != 3:
        raise TypeInferenceError(
            f"expected boxes and scores of images, found {boxes!r}, {scores!r}"
        )
    join_dim(boxes.shape[0], scores.shape[0])
    join_dim(boxes.shape[1], scores.shape[2])
    join_dim(boxes.shape[2], 4)
    for number in (limit, overlap, least):
        if number is not None and number.rank > 1:
            raise TypeInferenceError(f"expected one number, found {number!r}")
    return TensorType((Any(), 3), "int64")


def _part(boxes: Expr, index: int) -> Expr:
    return call("take", boxes, const(np.array([index]), "int64"), axis=2, mode="fast")


def _corners(boxes: Expr, dtype: str) -> Expr:
    """Return boxes given by centre, width and height as two corners."""
    x, y, width, height = (_part(boxes, each) for each in range(4))
    half = const(0.5, dtype)
    right, down = (call("multiply", each, half) for each in (width, height))
    ends = [
        call("subtract", y, down),
        call("subtract", x, right),
        call("add", y, down),
        call("add", x, right),
    ]
    return call("concatenate", ends, axis=2)


def _scalar(number: Expr | None, default: float, dtype: str) -> Expr:
    if number is None:
        return const(default, dtype)
    if isinstance(number, Constant):
        return const(number.data.reshape(()), dtype)
    return call("cast", call("reshape", number, newshape=()), dtype=dtype)


def _decompose_selected(
    boxes: Expr,
    scores: Expr,
    limit: Expr | None,
    overlap: Expr | None,
    least: Expr | None,
    *,
    center_point_box: bool,
) -> Expr:
    """Relay drops a box from an overlap on, not above it, and takes no limit for none at all."""
    type_ = tensor_type(boxes)
    corners = _corners(boxes, type_.dtype) if center_point_box else boxes
    count = _scalar(limit, 0, "int64")
    bound = call("maximum", _scalar(overlap, 0.0, "float32"), const(0.0, "float32"))
    above = call("multiply", bound, const(np.nextafter(np.float32(1), np.float32(2)), "float32"))
    above = call("maximum", above, const(np.finfo(np.float32).tiny, "float32"))
    found = call(
        "vision.all_class_non_max_suppression",
        corners,
        scores,
        count,
        above,
        _scalar(least, -np.inf, "float32"),
    )
    some = call("cast", call("greater", count, const(0, "int64")), dtype="int64")
    end = call("multiply", TupleGetItem(found, 1), some)
    begin, step = const(np.array([0]), "int64"), const(np.array([1]), "int64")
    return call("dyn.strided_slice", TupleGetItem(found, 0), begin, end, step, axes=(0,))


_BOXES = (tensor((2, 6, 4), low=0.0), tensor((2, 3, 6)))


@relay_op(
    "serde.non_max_suppression",
    traits=(
        pairs(1, 4),
        Ordering,
        Fractions(3, 4),
        InRange(ranges.within(2, ranges.COUNT)),
        Cases("threshold", ranges.boxes_suppressed),
    ),
    infer=_selected_type,
    decompose=_decompose_selected,
    samples=[
        sample(*_BOXES, np.array([2]), np.array([0.3], np.float32), np.array([-0.5], np.float32)),
        sample(*_BOXES, np.int64(3), np.float32(0.0), None, center_point_box=True),
        sample(
            tensor((1, 8, 4), low=0.0),
            tensor((1, 2, 8)),
            np.int64(8),
            np.float32(0.5),
            tensor((), low=0.0, high=0.5),
        ),
        sample(*_BOXES),
    ],
)
def non_max_suppression(
    boxes: Array,
    scores: Array,
    limit: Array | None,
    overlap: Array | None,
    least: Array | None,
    *,
    center_point_box: bool = False,
) -> Array:
    """Rows (image, class, box) of the boxes that stay, the best of each class first.

    At most `limit` of a class stay, none where it is left out. A box goes that overlaps with one
    that stays by more than `overlap`, or is not marked above `least` where that is given. Boxes
    are two opposite corners (y, x, y, x), or centre, width and height (x, y, width, height).
    """
    most = 0 if limit is None else int(limit.item())
    bound = 0.0 if overlap is None else float(overlap.item())
    rows = []
    for image, (given, classes) in enumerate(zip(boxes, scores, strict=True)):
        corners = given
        if center_point_box:
            middle, half = given[:, 1::-1], given[:, :1:-1] / 2
            corners = np.concatenate([middle - half, middle + half], 1)
        for class_, marks in enumerate(classes):
            order = np.argsort(-marks, kind="stable")
            if least is not None:
                order = order[marks[order] > least.item()]
            kept = suppress(Boxes(corners[order]), bound, strict=True, limit=max(most, 0))
            rows += [(image, class_, int(box)) for box in order[kept]]
    return np.array(rows, np.int64).reshape(-1, 3)
