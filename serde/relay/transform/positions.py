"""What integer tensors say of places: masks of attention, and lookups of each element in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any as AnyValue, ClassVar

import numpy as np

from serde.relay.ir import Any, Dim, OpDef, SymDim, TensorType, call, normalize_axis
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple
from serde.relay.ir.visit import post_order, rewrite_function
from serde.relay.transform.base import FunctionPass

__all__ = ["FoldLookups", "MaskRule", "Positions", "group_heads", "read_mask"]


@dataclass(frozen=True)
class Positions:
    """An integer tensor, each element of which is a sum over its own indices.

    Attributes:
        factors: Of the index along each axis that counts, axes from the last one, which is -1.
        offset: What is added.
    """

    factors: Mapping[int, int]
    offset: Dim

    def plus(self, other: Positions, sign: int = 1) -> Positions | None:
        """Return the sum or, with a `sign` of -1, the difference; None if its offset is unknown."""
        axes = {*self.factors, *other.factors}
        found = {a: self.factors.get(a, 0) + sign * other.factors.get(a, 0) for a in axes}
        offset = self.offset + other.offset if sign > 0 else self.offset - other.offset
        if isinstance(offset, Any):
            return None
        return Positions({axis: factor for axis, factor in found.items() if factor}, offset)


def read_positions(*roots: Expr) -> dict[Expr, Positions]:
    """Return what is known of the integer tensors below expressions."""
    found: dict[Expr, Positions] = {}
    for node in post_order(*roots):
        value = _positions(node, found)
        if value is not None:
            found[node] = value
    return found


def _positions(node: Expr, known: Mapping[Expr, Positions]) -> Positions | None:
    type_ = node.type
    if not isinstance(type_, TensorType) or type_.dtype not in ("int32", "int64"):
        return None
    if isinstance(node, Constant):
        return _of_constant(node.data)
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return None
    given = [known.get(each) for each in node.args]
    match node.op.name:
        case "add" | "subtract" if given[0] is not None and given[1] is not None:
            return given[0].plus(given[1], 1 if node.op.name == "add" else -1)
        case "arange":
            start, step = given[0], given[2]
            if start is None or start.factors or step != Positions({}, 1):
                return None
            return Positions({-1: 1}, start.offset)
        case "take":
            return _length(node)
        case "broadcast_to":
            return given[0]
        case "cast" | "reshape":
            source = node.args[0].type
            same = isinstance(source, TensorType) and source.rank == type_.rank < 2
            return given[0] if same or node.op.name == "cast" else None
        case "expand_dims" if given[0] is not None:
            count = node.attrs["num_newaxis"]
            behind = type_.rank - normalize_axis(node.attrs["axis"], type_.rank) - count
            moved = {a - count if -a > behind else a: f for a, f in given[0].factors.items()}
            return Positions(moved, given[0].offset)
    return None


def _of_constant(data: np.ndarray[AnyValue, AnyValue]) -> Positions | None:
    if not data.size or data.ndim > 1:
        return None
    first = int(data.reshape(-1)[0])
    if data.size == 1:
        return Positions({}, first)
    counts = np.array_equal(data, np.arange(first, first + data.size))
    return Positions({-1: 1}, first) if counts else None


def _length(node: Call) -> Positions | None:
    """Return a single length that is taken from a shape."""
    shape, index = node.args
    if not isinstance(shape, Call) or getattr(shape.op, "name", "") != "shape_of":
        return None
    source = shape.args[0].type
    if not isinstance(source, TensorType) or not isinstance(index, Constant) or index.data.ndim:
        return None
    length = source.shape[int(index.data)]
    return None if isinstance(length, Any) else Positions({}, length)


@dataclass(frozen=True)
class MaskRule:
    """Which keys a query sees; query ``i`` of the last axis but one, key ``j`` of the last.

    Attributes:
        upper: ``j - i`` is at most that; None if nobody says so.
        lower: It is at least that, likewise.
        rest: What must be true besides, as tensors of bool that broadcast.
    """

    upper: Dim | None
    lower: Dim | None
    rest: tuple[Expr, ...]


_BOUNDS: dict[str, tuple[int, int]] = {
    "less_equal": (1, 0), "less": (1, -1), "greater_equal": (-1, 0), "greater": (-1, 1),
}  # fmt: skip
"""Of comparisons of a difference with zero: an upper or lower bound, and what is added to it."""


def read_mask(mask: Expr) -> MaskRule:
    """Return the rule of a mask of bool, of which conjunctions are taken apart."""
    known = read_positions(mask)
    upper: Dim | None = None
    lower: Dim | None = None
    rest: list[Expr] = []
    waiting = [mask]
    while waiting:
        node = waiting.pop()
        name = node.op.name if isinstance(node, Call) and isinstance(node.op, OpDef) else ""
        if isinstance(node, Call) and name == "logical_and":
            waiting.extend(node.args)
            continue
        if isinstance(node, Constant) and node.data.all():
            continue
        found = _bound(node, name, known)
        if found is not None and found[0] > 0 and upper is None:
            upper = found[1]
        elif found is not None and found[0] < 0 and lower is None:
            lower = found[1]
        else:
            rest.append(node)
    return MaskRule(upper, lower, tuple(rest))


def _bound(node: Expr, name: str, known: Mapping[Expr, Positions]) -> tuple[int, Dim] | None:
    """Return whether ``j - i`` is bounded from above (1) or below (-1), and by what."""
    if not isinstance(node, Call) or name not in _BOUNDS:
        return None
    left, right = (known.get(each) for each in node.args)
    found = None if left is None or right is None else left.plus(right, -1)
    if found is None or {*found.factors} != {-1, -2} or sum(found.factors.values()):
        return None
    if abs(found.factors[-1]) != 1:
        return None
    sign, more = _BOUNDS[name]
    limit = 0 - found.offset + more
    return (sign, limit) if found.factors[-1] == 1 else (-sign, 0 - limit)


class FoldLookups(FunctionPass):
    """Write a lookup of every element at its own place as the tensor itself, with new axes."""

    name: ClassVar[str] = "FoldLookups"
    changes: ClassVar[Sequence[str | type]] = ("serde.gather_nd",)

    def transform(self, function: Function) -> Function:
        """Replace such lookups."""
        known = read_positions(function.body)
        return rewrite_function(function, lambda old, new: _fold_lookup(old, new, known))


def _fold_lookup(old: Expr, node: Expr, known: Mapping[Expr, Positions]) -> Expr:
    if not isinstance(node, Call) or getattr(node.op, "name", "") != "serde.gather_nd":
        return node
    if not isinstance(old, Call) or node.attrs["batch_dims"]:
        return node
    data, places = node.args[0], old.args[1]
    source, result = data.type, node.type
    fields = places.args[0] if isinstance(places, Call) else None
    stacks = isinstance(places, Call) and getattr(places.op, "name", "") == "stack"
    if not stacks or not isinstance(fields, Tuple) or not isinstance(source, TensorType):
        return node
    if not isinstance(result, TensorType) or len(fields.fields) != source.rank:
        return node
    if isinstance(places, Call) and places.attrs["axis"] not in (-1, result.rank):
        return node
    axes = []
    for each in fields.fields:
        value = known.get(each)
        if value is None or value.offset != 0 or [*value.factors.values()] != [1]:
            return node
        axes.append(result.rank + next(iter(value.factors)))
    wanted: list[Dim] = [1] * result.rank
    for axis, length in zip(axes, source.shape, strict=True):
        wanted[axis] = length
    if axes != sorted(set(axes)) or tuple(wanted) != result.shape:
        return node
    for axis in range(result.rank):
        if axis not in axes:
            data = call("expand_dims", data, axis=axis, span=node.span)
    return data


def group_heads(_old: Expr, node: Expr) -> Expr:
    """Return attention over heads that are repeated for those that share them as they were."""
    if not isinstance(node, Call) or getattr(node.op, "name", "") != "serde.attention":
        return node
    query, key, value, mask = node.args
    single = [_without_repeats(each) for each in (key, value)]
    types = [getattr(each, "type", None) for each in single]
    if not all(isinstance(each, TensorType) for each in types):
        return node
    if len({each.shape[1] for each in types if isinstance(each, TensorType)}) != 1:
        return node
    return call("serde.attention", query, *single, mask, span=node.span, **node.attrs)


def _without_repeats(x: Expr) -> Expr | None:
    """Return the heads of which each stands several times in a row."""
    if not isinstance(x, Call) or getattr(x.op, "name", "") != "reshape":
        return None
    wide = x.args[0]
    if not isinstance(wide, Call) or getattr(wide.op, "name", "") != "broadcast_to":
        return None
    parted = wide.args[0]
    if not isinstance(parted, Call) or getattr(parted.op, "name", "") != "expand_dims":
        return None
    narrow, types = parted.args[0], (x.type, wide.type, parted.args[0].type)
    result, repeated, source = (each if isinstance(each, TensorType) else None for each in types)
    if result is None or repeated is None or source is None or source.rank != 4:
        return None
    batch, groups, length, width = source.shape
    count = repeated.shape[2] if repeated.rank == 5 else 0
    if repeated.shape != (batch, groups, count, length, width) or isinstance(count, (Any, SymDim)):
        return None
    return narrow if result.shape == (batch, groups * count, length, width) else None
