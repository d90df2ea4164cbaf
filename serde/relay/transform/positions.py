"""What integer tensors say of positions: in masks of attention, and in lookups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import numpy as np

from serde.core.records import dataclass
from serde.relay.ir import Any, Dim, TensorType, call, called_name, normalize_axis, tensor_type
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple
from serde.relay.ir.visit import post_order, rewrite_function
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.fold_shape import shape_value

__all__ = ["FoldLookups", "MaskRule", "Positions", "read_mask", "read_positions"]


@dataclass(frozen=True)
class Positions:
    """An integer tensor, each element of which is a sum over its own indices.

    Attributes:
        factors: Of the index along each axis that counts, axes from the last one, which is -1.
        offset: What is added.
    """

    factors: Mapping[int, int]
    offset: Dim

    def plus(self, other: Positions, sign: int = 1) -> Positions:
        """Return the sum or, with a `sign` of -1, the difference."""
        axes = {*self.factors, *other.factors}
        found = {a: self.factors.get(a, 0) + sign * other.factors.get(a, 0) for a in axes}
        offset = self.offset + other.offset if sign > 0 else self.offset - other.offset
        return Positions({axis: factor for axis, factor in found.items() if factor}, offset)


def _positions(node: Expr, known: Mapping[Expr, Positions]) -> Positions | None:
    """Return what an integer tensor holds, given those below it."""
    type_, name = node.type, called_name(node)
    if not isinstance(type_, TensorType) or type_.dtype not in ("int32", "int64"):
        return None
    if isinstance(node, Constant):
        first = int(node.data.reshape(-1)[0]) if node.data.size else 0
        if node.data.size == 1:
            return Positions({}, first)
        counted = np.array_equal(node.data, np.arange(first, first + node.data.size))
        return Positions({-1: 1}, first) if counted else None
    given = [known.get(each) for each in node.args] if isinstance(node, Call) else [None]
    below = given[0]
    if not isinstance(node, Call) or (name != "take" and below is None):
        return None
    if name in ("add", "subtract") and below is not None and given[1] is not None:
        return below.plus(given[1], 1 if name == "add" else -1)
    if name == "arange" and below is not None and given[2] == Positions({}, 1):
        return None if below.factors else Positions({-1: 1}, below.offset)
    if name == "take" and called_name(node.args[0]) == "shape_of":
        shape, index = shape_value(node.args[0]), node.args[1]
        if shape is None or not isinstance(index, Constant) or index.data.ndim:
            return None
        return Positions({}, shape[int(index.data)])
    if name == "expand_dims" and below is not None:
        count = node.attrs["num_newaxis"]
        behind = type_.rank - normalize_axis(node.attrs["axis"], type_.rank) - count
        moved = {a - count if -a > behind else a: f for a, f in below.factors.items()}
        return Positions(moved, below.offset)
    if name == "reshape" and below is not None:
        vector = type_.rank == tensor_type(node.args[0]).rank == 1
        return below if vector or not below.factors else None
    return below if name in ("broadcast_to", "cast") else None


def read_positions(root: Expr) -> dict[Expr, Positions]:
    """Return what the integer tensors of a graph hold, as far as they tell of positions."""
    known: dict[Expr, Positions] = {}
    for node in post_order(root):
        value = _positions(node, known)
        if value is not None:
            known[node] = value
    return known


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


_BOUNDS: Final = {
    "less_equal": (1, 0), "less": (1, -1), "greater_equal": (-1, 0), "greater": (-1, 1),
}  # fmt: skip
"""Of comparisons of a difference with zero: an upper or lower bound, and what is added to it."""


def read_mask(mask: Expr) -> MaskRule:
    """Return the rule of a mask of bool, of which conjunctions are taken apart."""
    known = read_positions(mask)
    bounds: dict[int, Dim] = {}
    rest: list[Expr] = []
    waiting = [mask]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call) and called_name(node) in ("broadcast_to", "logical_and"):
            waiting.extend(node.args)
        elif not isinstance(node, Constant) or not node.data.all():
            found = _bound(node, known)
            if found is None or found[0] in bounds:
                rest.append(node)
            else:
                bounds[found[0]] = found[1]
    return MaskRule(bounds.get(1), bounds.get(-1), tuple(rest))


def _bound(node: Expr, known: Mapping[Expr, Positions]) -> tuple[int, Dim] | None:
    """Return whether ``j - i`` is bounded from above (1) or below (-1), and by what."""
    if not isinstance(node, Call) or called_name(node) not in _BOUNDS:
        return None
    left, right = (known.get(each) for each in node.args)
    if left is None or right is None:
        return None
    found = left.plus(right, -1)
    sign, more = _BOUNDS[called_name(node)]
    limit = 0 - found.offset + more
    if isinstance(limit, Any) or found.factors not in ({-1: 1, -2: -1}, {-1: -1, -2: 1}):
        return None
    return (sign, limit) if found.factors[-1] == 1 else (-sign, 0 - limit)


class FoldLookups(FunctionPass):
    """Write a lookup of every element at its own position as the tensor itself, with new axes."""

    name: ClassVar[str] = "FoldLookups"
    changes: ClassVar[Sequence[str | type]] = ("serde.gather_nd",)

    def transform(self, function: Function) -> Function:
        """Replace such lookups."""
        known = read_positions(function.body)
        return rewrite_function(function, lambda old, new: _fold_lookup(old, new, known))


def _fold_lookup(old: Expr, node: Expr, known: Mapping[Expr, Positions]) -> Expr:
    if not isinstance(old, Call) or called_name(old) != "serde.gather_nd":
        return node
    indices = old.args[1]
    if not isinstance(node, Call) or not isinstance(indices, Call) or node.attrs["batch_dims"]:
        return node
    data, shape, fields = node.args[0], tensor_type(node).shape, indices.args[0]
    if called_name(indices) != "stack" or not isinstance(fields, Tuple):
        return node
    if indices.attrs["axis"] not in (-1, len(shape)):
        return node
    found = [known.get(each) for each in fields.fields]
    axes = [len(shape) + axis for each in found if each is not None for axis in each.factors]
    if any(each is None or each != Positions(dict.fromkeys(each.factors, 1), 0) for each in found):
        return node
    wanted: list[Dim] = [1] * len(shape)
    for axis, length in zip(axes, tensor_type(data).shape, strict=False):
        wanted[axis] = length
    if not len(axes) == len({*axes}) == len(found) == tensor_type(data).rank:
        return node
    if axes != sorted(axes) or tuple(wanted) != shape:
        return node
    for axis in sorted({*range(len(shape))} - {*axes}):
        data = call("expand_dims", data, axis=axis, span=node.span)
    return data
