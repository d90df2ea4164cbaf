"""Sequences of which every position is known before the model runs, as tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import numpy as np

from serde.core.records import dataclass
from serde.relay.ir import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem, Var, const
from serde.relay.ir.expr import is_absent
from serde.relay.ir.registry import OpDef, call
from serde.relay.ir.types import SequenceType, TensorType
from serde.relay.ir.visit import post_order, rewrite_function
from serde.relay.transform.base import FunctionPass

__all__ = ["SequencesToTuples"]

_PREFIX: Final = "serde.sequence_"
_MOST_COPIED: Final = 1024
"""Tensors of a sequence that is copied to change it anywhere but at its end."""


class SequencesToTuples(FunctionPass):
    """Replace what is read out of sequences by the tensors that were put there.

    A sequence is known where its length is: one that is empty or constructed, what constant
    positions insert into and erase from a known one, a split of an axis of fixed length, and the
    choice between two whose tensors have the same types. Reading a known one at a constant
    position, its length and its concatenation need no sequence any more. Parameters, results and
    states of loops that are sequences stay such, as do results of lets, and what depends on them.
    Of a sequence of more than 1,024 tensors, changes anywhere but at its end are not followed.
    """

    name: ClassVar[str] = "SequencesToTuples"

    def transform(self, function: Function) -> Function:
        """Follow sequences from where they begin."""
        nodes = post_order(function)
        if not any(isinstance(node.type, SequenceType) for node in nodes):
            return function
        followed = _Followed(nodes)
        return rewrite_function(function, followed.replace)


@dataclass(frozen=True, slots=True)
class _Items:
    """The first tensors of a list that sequences made from each other share."""

    shared: list[Expr]
    count: int

    def items(self) -> list[Expr]:
        return self.shared[: self.count]

    def position(self, place: int, *, end: bool = False) -> int | None:
        """Return a place counted from the start, None where it is outside."""
        index = place + self.count if place < 0 else place
        return index if 0 <= index < self.count + end else None

    def inserted(self, place: int | None, value: Expr) -> _Items | None:
        at = self.count if place is None else self.position(place, end=True)
        if at == self.count == len(self.shared):
            self.shared.append(value)
            return _Items(self.shared, self.count + 1)
        if at is None or self.count > _MOST_COPIED:
            return None
        items = self.items()
        return _wrap_items([*items[:at], value, *items[at:]])

    def erased(self, place: int | None) -> _Items | None:
        at = self.position(-1 if place is None else place)
        if at is not None and at == self.count - 1:
            return _Items(self.shared, at)
        if at is None or self.count > _MOST_COPIED:
            return None
        items = self.items()
        return _wrap_items([*items[:at], *items[at + 1 :]])


def _wrap_items(items: Sequence[Expr]) -> _Items:
    return _Items(list(items), len(items))


class _Followed:
    """What is known of the sequences of one function while it is rewritten."""

    def __init__(self, nodes: Sequence[Expr]) -> None:
        self._known: dict[Expr, _Items] = {}
        self._binders: dict[Expr, list[Var]] = {}
        for node in nodes:
            if isinstance(node, Let) and isinstance(node.value.type, SequenceType):
                self._binders.setdefault(node.value, []).append(node.var)

    def replace(self, old: Expr, new: Expr) -> Expr:
        """Return what stands for a node, and note what is known of it."""
        if isinstance(new, Call) and isinstance(new.op, OpDef) and new.op.name.startswith(_PREFIX):
            new = self._operator(new.op.name.removeprefix(_PREFIX), new)
        elif isinstance(new, If) and isinstance(new.type, SequenceType):
            self._choice(new)
        for variable in self._binders.get(old, ()) if new in self._known else ():
            self._known[variable] = self._known[new]
        return new

    def _operator(self, name: str, node: Call) -> Expr:
        if name in _BEGINNINGS:
            found = _BEGINNINGS[name](node)
        else:
            given = self._known.get(node.args[0])
            if given is None:
                return node
            if name in _READINGS:
                return _READINGS[name](given, node) or node
            found = _CHANGES[name](given, node)
        if found is not None:
            self._known[node] = found
        return node

    def _choice(self, node: If) -> None:
        left, right = self._known.get(node.true_branch), self._known.get(node.false_branch)
        if left is None or right is None or left.count != right.count or not left.count:
            return
        chosen = If(node.cond, Tuple(left.items()), Tuple(right.items()), node.span)
        if chosen.type is None:
            return
        fields = [TupleGetItem(chosen, index, node.span) for index in range(left.count)]
        self._known[node] = _wrap_items(fields)


def _place(node: Expr) -> int | None:
    return int(node.data.reshape(())) if isinstance(node, Constant) else None


def _construct(node: Call) -> _Items | None:
    (data,) = node.args
    if isinstance(data, Tuple):
        return _wrap_items(data.fields)
    count = len(getattr(data.type, "fields", ()))
    return _wrap_items([TupleGetItem(data, index, node.span) for index in range(count)])


def _split_tensor(node: Call) -> _Items | None:
    data, split = node.args
    axis = node.attrs["axis"]
    length = data.type.shape[axis] if isinstance(data.type, TensorType) else None
    if not isinstance(length, int):
        return None
    if isinstance(split, Constant) and split.data.ndim == 1:
        return _parts(node, np.cumsum(split.data)[:-1].tolist(), len(split.data))
    if not length:
        return _wrap_items([]) if is_absent(split) or isinstance(split, Constant) else None
    step = 1 if is_absent(split) else _place(split)
    if step is None or length > _MOST_COPIED * step:
        return None
    found = _parts(node, list(range(step, length, step)), -(-length // step))
    if not is_absent(split) or node.attrs["keepdims"]:
        return found
    return _wrap_items([call("squeeze", part, axis=(axis,)) for part in found.items()])


def _parts(node: Call, cuts: list[int], count: int) -> _Items:
    if not count:
        return _wrap_items([])
    axis = node.attrs["axis"]
    parts = call("split", node.args[0], indices_or_sections=cuts, axis=axis, span=node.span)
    return _wrap_items([TupleGetItem(parts, index, node.span) for index in range(count)])


def _insert(given: _Items, node: Call) -> _Items | None:
    _, value, position = node.args
    place = _place(position)
    return None if place is None and not is_absent(position) else given.inserted(place, value)


def _erase(given: _Items, node: Call) -> _Items | None:
    place = _place(node.args[1])
    return None if place is None and not is_absent(node.args[1]) else given.erased(place)


def _read_item(given: _Items, node: Call) -> Expr | None:
    place = _place(node.args[1])
    index = None if place is None else given.position(place)
    return None if index is None else given.shared[index]


def _length(given: _Items, node: Call) -> Expr:
    return const(given.count, "int64")


def _concatenate(given: _Items, node: Call) -> Expr | None:
    if not given.count:
        return None
    name = "stack" if node.attrs["new_axis"] else "concatenate"
    return call(name, given.items(), axis=node.attrs["axis"], span=node.span)


_BEGINNINGS: Final[dict[str, Callable[[Call], _Items | None]]] = {
    "construct": _construct,
    "empty": lambda node: _wrap_items([]),
    "split": _split_tensor,
}
_CHANGES: Final[dict[str, Callable[[_Items, Call], _Items | None]]] = {
    "erase": _erase,
    "insert": _insert,
}
_READINGS: Final[dict[str, Callable[[_Items, Call], Expr | None]]] = {
    "at": _read_item,
    "concat": _concatenate,
    "length": _length,
}
