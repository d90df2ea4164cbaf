"""Which operators yield rows (entries of axis 0) of their result from rows of their operands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any as AnyValue

import numpy as np

from serde.core import Array, dataclass
from serde.relay.ir import Call, Expr, OpDef, TensorType, Tuple, TupleGetItem, TupleType, Type
from serde.relay.ir.traits import Elementwise, Reduction, Reshape, SameAxes
from serde.relay.run.interpreter import apply_kernel

__all__ = ["RowRule", "row_rule"]

Rows = tuple[int, int]
Shape = tuple[int, ...]


class RowRule(ABC):
    """How rows of one operator's result come from its operands.

    Attributes:
        aligned: For each operand, whether rows of it are wanted, not all of it.
    """

    aligned: tuple[bool, ...]

    @abstractmethod
    def wanted(self, start: int, stop: int) -> list[Rows | None]:
        """Return the rows wanted of each operand; None for all of it, as it is."""

    @abstractmethod
    def compute(self, operands: Sequence[Array], start: int, stop: int) -> Array:
        """Return rows `start` to `stop`, given what :meth:`wanted` asks for."""


def row_rule(node: Expr, operands: Sequence[Type | None]) -> RowRule | None:
    """Return the rule for `node`, or None where it must be evaluated as one.

    Args:
        node: A call of an operator, or a field of a ``split``.
        operands: Types of what it reads, the fields of a tuple operand one by one.
    """
    if isinstance(node, TupleGetItem):
        return _split_rule(node)
    out = _shape(node.type)
    shapes = [_shape(type_) for type_ in operands]
    if not isinstance(node, Call) or not isinstance(node.op, OpDef) or not out or None in shapes:
        return None
    known = [shape for shape in shapes if shape is not None]
    name, attrs = node.op.name, node.attrs
    if node.op.has(Reshape):
        aligned = (True, *[False] * (len(known) - 1))
        return _Reshape(aligned, known[0], out) if known[0] else None
    if node.op.has(Elementwise):
        return _SameRows(node, _are_aligned(known, out))
    same = node.op.trait(SameAxes)
    if same is not None and known[0]:
        fits = enumerate(_are_aligned(known, out))
        leading = tuple(each and place < same.operands for place, each in fits)
        return None if _is_along_rows(same, attrs, len(out)) else _SameRows(node, leading)
    if name == "broadcast_to":
        return _Shaped(node, _are_aligned(known, out), out)
    if name == "transpose" and known[0]:
        axes = attrs["axes"] or tuple(reversed(range(len(out))))
        return _SameRows(node, (True,)) if axes[0] % len(out) == 0 else None
    if node.op.has(Reduction) and attrs["axis"] is not None and not attrs["exclude"]:
        axes = attrs["axis"] if isinstance(attrs["axis"], tuple) else (attrs["axis"],)
        kept = all(shape and all(axis % len(shape) for axis in axes) for shape in known) and axes
        return _SameRows(node, (True,) * len(known)) if kept else None
    if name in ("concatenate", "stack") and isinstance(node.args[0], Tuple):
        if attrs["axis"] % len(out):
            return _SameRows(node, (True,) * len(known))
        if name == "stack":
            return None
        return _Concatenate((True,) * len(known), tuple(shape[0] for shape in known))
    if name == "strided_slice" and attrs["axes"] is None:
        return _slice_rule(node, known[0], out)
    return None


def _is_along_rows(same: SameAxes, attrs: Mapping[str, AnyValue], rank: int) -> bool:
    """Whether more is done along axis 0 than keeping elements in their place.

    No axis, None or (), stands for all of them.
    """
    found = [attrs[key] for key in same.axes]
    if same.per_axis or None in found or () in found:
        return True
    several = (axes if isinstance(axes, tuple) else (axes,) for axes in found)
    return any(axis % rank == 0 for axes in several for axis in axes)


def _shape(type_: Type | None) -> Shape | None:
    return type_.concrete_shape if isinstance(type_, TensorType) else None


def _are_aligned(shapes: Sequence[Shape], out: Shape) -> tuple[bool, ...]:
    return tuple(len(shape) == len(out) and shape[0] == out[0] for shape in shapes)


def _kernel(node: Call, operands: Sequence[Array], attrs: Mapping[str, AnyValue]) -> AnyValue:
    if not isinstance(node.op, OpDef):
        raise TypeError(f"{node!r} is no call of an operator")
    tupled = isinstance(node.args[0], Tuple)
    args: Sequence[AnyValue] = [tuple(operands)] if tupled else operands
    return apply_kernel(node.op, args, attrs)


@dataclass(frozen=True)
class _SameRows(RowRule):
    """A row depends on the same row of the operands that are aligned, and on all of the others."""

    node: Call
    aligned: tuple[bool, ...]

    def wanted(self, start: int, stop: int) -> list[Rows | None]:
        return [(start, stop) if aligned else None for aligned in self.aligned]

    def compute(self, operands: Sequence[Array], start: int, stop: int) -> Array:
        value: Array = _kernel(self.node, operands, self.node.attrs)
        return value


@dataclass(frozen=True)
class _Shaped(_SameRows):
    """An operator that has the shape of its result as the attribute ``shape``."""

    out: Shape

    def compute(self, operands: Sequence[Array], start: int, stop: int) -> Array:
        attrs = {**self.node.attrs, "shape": (stop - start, *self.out[1:])}
        value: Array = _kernel(self.node, operands, attrs)
        return value


@dataclass(frozen=True)
class _Reshape(RowRule):
    """The elements in another shape; rows of both sides may have different lengths."""

    aligned: tuple[bool, ...]
    before: Shape
    after: Shape

    def wanted(self, start: int, stop: int) -> list[Rows | None]:
        row, new_row = prod(self.before[1:]), prod(self.after[1:])
        others: list[Rows | None] = [None] * (len(self.aligned) - 1)
        if not row or not new_row:
            return [(0, self.before[0]), *others]
        return [(start * new_row // row, -(-stop * new_row // row)), *others]

    def compute(self, operands: Sequence[Array], start: int, stop: int) -> Array:
        row, new_row = prod(self.before[1:]), prod(self.after[1:])
        skipped = start * new_row % row if row else 0
        flat = operands[0].reshape(-1)[skipped : skipped + (stop - start) * new_row]
        return flat.reshape(stop - start, *self.after[1:])


@dataclass(frozen=True)
class _Concatenate(RowRule):
    """Operands one after another along axis 0."""

    aligned: tuple[bool, ...]
    lengths: tuple[int, ...]

    def wanted(self, start: int, stop: int) -> list[Rows | None]:
        result: list[Rows | None] = []
        offset = 0
        for length in self.lengths:
            low = min(max(start - offset, 0), length)
            result.append((low, max(low, min(stop - offset, length))))
            offset += length
        return result

    def compute(self, operands: Sequence[Array], start: int, stop: int) -> Array:
        return np.concatenate(operands)


@dataclass(frozen=True)
class _Offset(RowRule):
    """Rows from `offset` on, cut or not along other axes by the kernel."""

    node: Call
    offset: int
    field: int | None
    attrs: Mapping[str, AnyValue] | None
    aligned: tuple[bool, ...] = (True,)

    def wanted(self, start: int, stop: int) -> list[Rows | None]:
        return [(start + self.offset, stop + self.offset)]

    def compute(self, operands: Sequence[Array], start: int, stop: int) -> Array:
        if self.attrs is None:
            return operands[0]
        value = _kernel(self.node, operands, self.attrs)
        result: Array = value if self.field is None else value[self.field]
        return result


def _split_rule(node: TupleGetItem) -> RowRule | None:
    call = node.tuple_value
    if not isinstance(call, Call) or not isinstance(call.type, TupleType):
        return None
    if not isinstance(call.op, OpDef) or call.op.name != "split":
        return None
    fields = [_shape(field) for field in call.type.fields]
    source = _shape(call.args[0].type)
    if not source or None in fields:
        return None
    if call.attrs["axis"] % len(source):
        return _Offset(call, 0, node.index, call.attrs)
    return _Offset(call, sum(shape[0] for shape in fields[: node.index] if shape), None, None)


def _slice_rule(node: Call, before: Shape, out: Shape) -> RowRule | None:
    """A slice with a step of 1 along axis 0, which moves to the rows wanted."""
    attrs = node.attrs
    begin, strides = attrs["begin"], attrs["strides"] or (1,)
    if attrs["slice_mode"] != "end" or not begin or not before or strides[0] != 1:
        return None
    first = begin[0]
    offset = min(max(first + before[0] if first < 0 else first, 0), before[0])
    ends = tuple(attrs["end"] or before)
    moved = {**attrs, "begin": (0, *begin[1:]), "end": (max(out[0], 1), *ends[1:])}
    return _Offset(node, offset, None, moved)
