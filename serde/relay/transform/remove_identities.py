"""Removal of operators that return their operand, and merging of those that only move it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from serde.core.records import dataclass
from serde.relay.ir import Any, Elementwise, OpDef, Reshape, TensorType, call, has_trait, is_call
from serde.relay.ir.expr import Call, Expr, Function, Tuple, TupleGetItem
from serde.relay.ir.visit import has_kind, rewrite_function
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.unbroadcast import UNIFORM, flag_again, unbroadcast

__all__ = ["RemoveIdentities"]


@dataclass(frozen=True)
class RemoveIdentities(FunctionPass):
    """Apply identities that hold bit for bit.

    An operator whose result is its operand disappears: ``copy``, ``cast`` to the same
    dtype, ``reshape`` and ``broadcast_to`` to the same known shape, ``transpose`` that keeps the
    order, ``strided_slice`` of everything, ``concatenate`` of one, blocks of one pixel,
    ``nn.dropout``'s first field.
    What has no elements is not concatenated.
    Two reshapes or two transposes in a row become one, as does a squeeze behind a transpose that
    keeps the order of the axes that stay; a field of a tuple becomes that field.
    An operand that an operator broadcasts itself is not broadcast before, and a scalar where all
    elements are the same; flags that became numbers and are compared with zero stay flags.

    Args:
        keep_training: Whether dropout, which only matters in training, stays.
    """

    name: ClassVar[str] = "RemoveIdentities"

    keep_training: bool = False

    def concerns(self, function: Function) -> bool:
        """Whether there is an operator with a rule, or what :func:`unbroadcast` looks for."""
        return has_kind(function, Reshape, Tuple, "nn.dropout", *_RULES, *UNIFORM)

    def transform(self, function: Function) -> Function:
        """Simplify bottom-up."""
        return rewrite_function(function, lambda _node, new: _simplify(new, self.keep_training))


def _simplify(node: Expr, keep_training: bool) -> Expr:
    if isinstance(node, TupleGetItem):
        value = node.tuple_value
        if isinstance(value, Tuple):
            return value.fields[node.index]
        if keep_training:
            return node
        if node.index == 0 and is_call(value, "nn.dropout"):
            return value.args[0]
        return node
    if isinstance(node, Call) and isinstance(node.op, OpDef):
        rule = _RULES.get(node.op.name)
        if rule is not None:
            return rule(node)
        if node.op.has(Reshape):
            return _reshape(node)
        return unbroadcast(node) if node.op.has(Elementwise) and len(node.args) > 1 else node
    return node


def _operand(node: Call) -> Expr:
    return node.args[0]


def _same_type(node: Call) -> Expr:
    """Return the operand where its type, all dimensions known by name, is the result's."""
    source = node.args[0]
    if not isinstance(node.type, TensorType) or node.type != source.type:
        return node
    return node if any(isinstance(dim, Any) for dim in node.type.shape) else source


def _reshape(node: Call) -> Expr:
    """Merge with a reshape below; what the result's shape is, the attribute then says."""
    same = _same_type(node)
    if same is not node:
        return same
    below = node.args[0]
    if is_call(below, "transpose"):
        return _before_transpose(node, below)
    if not has_trait(below, Reshape):
        return node
    type_ = node.type
    if not isinstance(below, Call) or not isinstance(type_, TensorType):
        return node
    known = not any(isinstance(dim, Any) for dim in type_.shape)
    if known and below.args[0].type == type_:
        return below.args[0]
    if type_.concrete_shape is None or 0 in type_.concrete_shape:
        return node
    return call("reshape", below.args[0], newshape=type_.concrete_shape, span=node.span)


def _before_transpose(node: Call, below: Call) -> Expr:
    """Leave out a transpose that only moves axes which a squeeze takes away."""
    source = below.args[0]
    if not isinstance(source.type, TensorType) or not is_call(node, "squeeze"):
        return node
    rank = source.type.rank
    order = _axes(below, rank)
    gone = {order[axis % rank] for axis in node.attrs["axis"] or ()}
    rest = [axis for axis in order if axis not in gone]
    if not gone or rest != sorted(rest):
        return node
    return call("squeeze", source, axis=tuple(sorted(gone)), span=node.span)


def _transpose(node: Call) -> Expr:
    if not isinstance(node.type, TensorType):
        return node
    rank = node.type.rank
    axes = _axes(node, rank)
    source = node.args[0]
    if is_call(source, "transpose"):
        inner = _axes(source, rank)
        axes = tuple(inner[axis] for axis in axes)
        source = source.args[0]
    if axes == tuple(range(rank)):
        return source
    if source is node.args[0]:
        return node
    return call("transpose", source, axes=axes, span=node.span)


def _axes(node: Call, rank: int) -> tuple[int, ...]:
    axes = node.attrs["axes"]
    if not axes:
        return tuple(reversed(range(rank)))
    return tuple(axis % rank for axis in axes)


def _strided_slice(node: Call) -> Expr:
    """A slice with positive steps that keeps all lengths keeps all elements."""
    strides = node.attrs["strides"] or (1,)
    forward = node.attrs["slice_mode"] == "size" or all(step == 1 for step in strides)
    known = isinstance(node.type, TensorType) and node.type.concrete_shape is not None
    return _same_type(node) if forward and known else node


def _without_empty(node: Call) -> Call:
    """Return a concatenation without what has no elements, as long as the rest tells the type."""
    fields = node.args[0]
    if not isinstance(fields, Tuple):
        return node
    filled = [each for each in fields.fields if not _is_empty(each)]
    if not filled or len(filled) == len(fields.fields):
        return node
    shorter = call("concatenate", Tuple(filled), axis=node.attrs["axis"], span=node.span)
    return shorter if shorter.type == node.type else node


def _is_empty(x: Expr) -> bool:
    return isinstance(x.type, TensorType) and 0 in x.type.shape


def _concatenate(node: Call) -> Expr:
    """Slices that follow one another and are all of a tensor are that tensor."""
    node = _without_empty(node)
    fields = node.args[0]
    if not isinstance(fields, Tuple):
        return node
    if len(fields.fields) == 1:
        return fields.fields[0]
    first = fields.fields[0]
    source = first.args[0] if isinstance(first, Call) and first.args else first
    if not isinstance(node.type, TensorType) or source.type != node.type:
        return node
    axis = node.attrs["axis"] % node.type.rank
    at = 0
    for field in fields.fields:
        length = _match_slice(field, source, axis, at)
        if length is None:
            return node
        at += length
    return source if at == node.type.shape[axis] else node


def _match_slice(field: Expr, source: Expr, axis: int, begin: int) -> int | None:
    """Return how many elements a slice takes from `begin` of one axis; None if it is none."""
    if not is_call(field, "strided_slice"):
        return None
    attrs, type_ = field.attrs, field.type
    if field.args[0] is not source or not isinstance(type_, TensorType):
        return None
    axes = attrs["axes"]
    steps = attrs["strides"] or (1,)
    if axes is None or tuple(each % type_.rank for each in axes) != (axis,):
        return None
    if attrs["begin"] != (begin,) or attrs["slice_mode"] != "end" or set(steps) != {1}:
        return None
    length = type_.shape[axis]
    return length if isinstance(length, int) else None


_RULES: dict[str, Callable[[Call], Expr]] = {
    "broadcast_to": _same_type,
    "cast": _same_type,
    "concatenate": _concatenate,
    "copy": _operand,
    "equal": flag_again,
    "nn.depth_to_space": _same_type,
    "nn.space_to_depth": _same_type,
    "not_equal": flag_again,
    "strided_slice": _strided_slice,
    "transpose": _transpose,
}
