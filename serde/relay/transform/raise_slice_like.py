"""Slices that end where another tensor does, raised to ``slice_like``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from serde.relay.ir import Call, Constant, Expr, Function, OpDef, Reshape, TensorType, Tuple, call
from serde.relay.ir.visit import rewrite_function
from serde.relay.transform.base import FunctionPass

__all__ = ["RaiseSliceLike"]

_End = int | tuple[Expr, int]
"""Where a slice ends along an axis: at a number, or at a tensor's length along one of its axes."""


class RaiseSliceLike(FunctionPass):
    """Write slices to the lengths of other tensors, along the same axes, as ``slice_like``.

    A slice stops where its data ends; ``slice_like`` is defined only where the other tensor is
    no longer than the data. For targets that have no slice whose end is known at run time.
    """

    name: ClassVar[str] = "RaiseSliceLike"

    def transform(self, function: Function) -> Function:
        """Replace each slice that is one."""
        return rewrite_function(function, _raise_slice)


def _raise_slice(_node: Expr, node: Expr) -> Expr:
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return node
    if node.op.name != "dyn.strided_slice" or node.attrs["slice_mode"] != "end":
        return node
    data, begin, end, strides = node.args
    ends = _ends(end)
    if ends is None or not _all(begin, 0) or not _all(strides, 1):
        return node
    rank = data.type.rank if isinstance(data.type, TensorType) else 0
    axes = [axis % rank for axis in node.attrs["axes"] or range(len(ends))]
    return _slice_like(data, dict(zip(axes, ends, strict=True)), node)


def _slice_like(data: Expr, ends: dict[int, _End], node: Call) -> Expr:
    """Return `data` cut along axes, or the node where one tensor is longer along another axis."""
    likes: dict[Expr, list[int]] = {}
    for axis, end in ends.items():
        if isinstance(end, int):
            continue
        if end[1] != axis:
            return node
        likes.setdefault(end[0], []).append(axis)
    fixed = {axis: end for axis, end in ends.items() if isinstance(end, int)}
    shape = data.type.shape if isinstance(data.type, TensorType) else ()
    cut = {axis: end for axis, end in fixed.items() if shape[axis] != end}
    if cut:
        data = call(
            "strided_slice", data, begin=(0,) * len(cut), end=tuple(cut.values()),
            strides=(1,) * len(cut), axes=tuple(cut), span=node.span,
        )  # fmt: skip
    for like, axes in likes.items():
        data = call("slice_like", data, like, axes=tuple(axes), span=node.span)
    return data


def _ends(end: Expr) -> list[_End] | None:
    """Return where each axis ends; None if an end is neither a number nor a tensor's length."""
    if isinstance(end, Constant):
        return [int(each) for each in end.data.reshape(-1)]
    if not isinstance(end, Call) or not isinstance(end.op, OpDef):
        return None
    name, first = end.op.name, end.args[0]
    if name == "cast" or end.op.has(Reshape):
        return _ends(first)
    if name == "concatenate" and isinstance(first, Tuple):
        parts = [_ends(each) for each in first.fields]
        return None if None in parts else [each for part in parts for each in part or ()]
    if name == "shape_of":
        rank = first.type.rank if isinstance(first.type, TensorType) else 0
        return [(first, axis) for axis in range(rank)]
    whole = _ends(first) if name in ("take", "strided_slice") else None
    return None if whole is None else _some(end, whole)


def _some(node: Call, whole: Sequence[_End]) -> list[_End] | None:
    """Return those of some numbers that a lookup or a slice takes."""
    if isinstance(node.op, OpDef) and node.op.name == "take":
        index = node.args[1]
        if not isinstance(index, Constant):
            return None
        return [whole[int(each)] for each in index.data.reshape(-1)]
    begin, end, strides = (node.attrs[name] for name in ("begin", "end", "strides"))
    if node.attrs["slice_mode"] != "end" or len(begin) != 1:
        return None
    return list(whole[begin[0] : end[0] : (strides or (1,))[0]])


def _all(x: Expr, number: int) -> bool:
    return isinstance(x, Constant) and bool(np.all(x.data == number))
