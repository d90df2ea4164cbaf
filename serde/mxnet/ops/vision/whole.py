"""MXNet's detection of boxes as an operator of the graph while it is lowered.

Relay says in two operators what it says at once.
"""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.relay.expr import Call, Constant, Expr, TupleGetItem
from serde.relay.registry import Array, OpDef, get, infer_call
from serde.relay.types import TensorType

__all__ = ["DETECTION", "constant_of", "detection", "field_of"]

DETECTION = "mxnet.multibox_detection"
"""Rows (class, score, box) in order of their scores; the class of one that goes is -1."""


def _detection_type(
    cls_prob: TensorType, loc_pred: TensorType, anchor: TensorType, **attrs: AnyValue
) -> TensorType:
    return TensorType((cls_prob.shape[0], cls_prob.shape[2], 6), cls_prob.dtype)


def _detection(
    cls_prob: Array,
    loc_pred: Array,
    anchor: Array,
    *,
    clip: bool,
    threshold: float,
    variances: tuple[float, ...],
    nms_threshold: float,
    force_suppress: bool,
    nms_topk: int,
) -> Array:
    """What MXNet computes, by Relay's kernels; the scores of rows that go are -1 here."""
    rows, counts = get("vision.multibox_transform_loc").kernel(
        cls_prob, loc_pred, anchor, clip=clip, threshold=threshold, variances=variances,
        keep_background=False,
    )  # fmt: skip
    kept: Array = get("vision.non_max_suppression").kernel(
        rows, counts, np.zeros(rows.shape[:2], np.int32), np.int32(-1), np.float32(nms_threshold),
        force_suppress=force_suppress, top_k=nms_topk, return_indices=False,
    )  # fmt: skip
    return kept


_DETECTION = OpDef(DETECTION, _detection, _detection_type, ())


def detection(cls_prob: Expr, loc_pred: Expr, anchor: Expr, **attrs: AnyValue) -> Expr:
    """Return a call of :data:`DETECTION`."""
    operands = (cls_prob, loc_pred, anchor)
    node = Call(_DETECTION, operands, _DETECTION.bind(attrs))
    node.type = infer_call(node)
    return node


def field_of(x: Expr, name: str, index: int) -> Call | None:
    """Return the call of an operator that `x` is a result of; None if it is not that one."""
    if not isinstance(x, TupleGetItem) or x.index != index:
        return None
    call = x.tuple_value
    named = isinstance(call, Call) and isinstance(call.op, OpDef) and call.op.name == name
    return call if named and isinstance(call, Call) else None


def constant_of(x: Expr) -> float | None:
    """Return the number that a constant is, None for what is computed."""
    return float(x.data) if isinstance(x, Constant) and x.data.size == 1 else None
