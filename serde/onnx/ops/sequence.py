"""Sequences and optional tensors.

While positions are known, an imported sequence is the call that lists its tensors, and reading it
gives one of these. A sequence of which the rank of the elements is not known yet is empty with
elements without axes; the first tensor that it takes says more. An optional tensor is a sequence
of at most one, an optional sequence that is there is the sequence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.interface import declared_shape
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, Function, Tuple, TupleGetItem, Var, call, is_call
from serde.relay.ir.types import SequenceType, TensorType
from serde.relay.op.control.body import results
from serde.walk.pairs import pair, writes

MOST_COPIED = 1024
"""Tensors of a sequence that is copied to change it."""


@OPS.exports("serde.sequence_empty", ignored=("shape",))
def export_sequence_empty(ctx: Export, *, dtype: np.dtype[np.generic]) -> Value:
    """What shape the elements will have is nothing that ONNX says here."""
    return ctx.emit("SequenceEmpty", dtype=helper.np_dtype_to_tensor_dtype(dtype))


@OPS.imports("SequenceEmpty", since=11)
def import_sequence_empty(ctx: Import, *, dtype: int = onnx.TensorProto.FLOAT) -> Expr:
    return call("serde.sequence_empty", shape=(), dtype=ctx.dtype(dtype))


@OPS.imports("SequenceInsert", since=11)
def import_sequence_insert(
    ctx: Import, input_sequence: Expr, tensor: Expr, position: Expr | None = None
) -> Expr:
    items = _list_items(input_sequence)
    if items is not None:
        index = _find_position(ctx, position, len(items), len(items))
        if index is not None or not items:
            return _build_sequence([*items[:index], tensor, *items[index or 0 :]], ctx.type(tensor))
    return call("serde.sequence_insert", input_sequence, tensor, _as_scalar(ctx, position))


@OPS.imports("SequenceErase", since=11)
def import_sequence_erase(ctx: Import, input_sequence: Expr, position: Expr | None = None) -> Expr:
    items = _list_items(input_sequence)
    index = None if items is None else _find_position(ctx, position, -1, len(items))
    if items is not None and index is not None:
        return _build_sequence([*items[:index], *items[index + 1 :]], _element_type(input_sequence))
    return call("serde.sequence_erase", input_sequence, _as_scalar(ctx, position))


@OPS.imports("SequenceAt", since=11)
def import_sequence_at(ctx: Import, input_sequence: Expr, position: Expr) -> Expr:
    items = _list_items(input_sequence)
    index = None if items is None else _find_position(ctx, position, -1, len(items))
    if items is not None and index is not None:
        return items[index]
    return call("serde.sequence_at", input_sequence, _as_scalar(ctx, position))


@OPS.imports("SequenceLength", since=11)
def import_sequence_length(ctx: Import, input_sequence: Expr) -> Expr:
    items = _list_items(input_sequence)
    if items is not None:
        return relay.const(len(items), "int64")
    return call("serde.sequence_length", input_sequence)


@OPS.exports("serde.sequence_concat")
def export_sequence_concat(ctx: Export, data: Value, *, axis: int, new_axis: bool) -> Value:
    return ctx.emit("ConcatFromSequence", data, axis=axis, new_axis=int(new_axis))


@OPS.imports("ConcatFromSequence", since=11)
def import_concat_from_sequence(
    ctx: Import, input_sequence: Expr, *, axis: int, new_axis: bool = False
) -> Expr:
    items = _list_items(input_sequence)
    if items:
        return (relay.stack if new_axis else relay.concatenate)(items, axis=axis)
    return call("serde.sequence_concat", input_sequence, axis=axis, new_axis=new_axis)


@OPS.exports("serde.sequence_split")
def export_sequence_split(
    ctx: Export, data: Value, split: Value | None, *, axis: int, keepdims: bool
) -> Value:
    """Where `split` is given ONNX ignores `keepdims`, which ONNX Runtime does not."""
    kept = int(keepdims) if split is None else None
    return ctx.emit("SplitToSequence", data, split, axis=axis, keepdims=kept)


@OPS.imports("SplitToSequence", since=(11, 24))
def import_split_to_sequence(
    ctx: Import, x: Expr, split: Expr | None = None, *, axis: int = 0, keepdims: bool = True
) -> Expr:
    """Where `split` is given `keepdims` has no meaning."""
    keeps = keepdims or split is not None
    parts = _split_lengths(ctx, x, split, axis)
    if not parts or len(parts) > MOST_COPIED:
        return call("serde.sequence_split", x, split, axis=axis, keepdims=keeps)
    ends = [int(each) for each in np.cumsum(parts)]
    found = [
        relay.strided_slice(x, [end - part], [end], axes=[axis])
        for part, end in zip(parts, ends, strict=True)
    ]
    if not keeps:
        found = [relay.squeeze(each, axis=[axis]) for each in found]
    return call("serde.sequence_construct", found)


def is_empty(x: Expr) -> bool:
    """Whether a sequence is one without tensors, so that its type may say too little."""
    return is_call(x, "serde.sequence_empty")


def _list_items(x: Expr) -> list[Expr] | None:
    """Return the tensors of a sequence, where they are known and not too many to copy."""
    if is_empty(x):
        return []
    if not is_call(x, "serde.sequence_construct"):
        return None
    given = x.args[0]
    known = isinstance(given, Tuple) and len(given.fields) <= MOST_COPIED
    return list(given.fields) if isinstance(given, Tuple) and known else None


def _element_type(x: Expr) -> TensorType:
    if isinstance(x.type, SequenceType):
        return x.type.element
    raise Unsupported(f"expected a sequence, found {x.type!r}")


def _build_sequence(items: Sequence[Expr], element: TensorType) -> Expr:
    if items:
        return call("serde.sequence_construct", list(items))
    return call("serde.sequence_empty", shape=element.shape, dtype=element.dtype)


def _find_position(ctx: Import, position: Expr | None, default: int, count: int) -> int | None:
    """Return a position from the start, `default` if it is absent, None if it is not known."""
    if position is None:
        given = default
    elif ctx.is_constant(position):
        given = ctx.item(position)
    else:
        return None
    index = given + count if given < 0 else given
    if not 0 <= index < count + (default == count):
        raise Unsupported(f"position {given} is outside a sequence of {count}")
    return index


def _as_scalar(ctx: Import, position: Expr | None) -> Expr | None:
    if position is None or not ctx.type(position).rank:
        return position
    return relay.reshape(position, newshape=())


def _split_lengths(ctx: Import, x: Expr, split: Expr | None, axis: int) -> list[int]:
    """Return the lengths of the parts, none if they are not known."""
    length = ctx.dim_at(x, axis)
    if not isinstance(length, int) or (split is not None and not ctx.is_constant(split)):
        return []
    if split is None:
        return [1] * min(length, MOST_COPIED + 1)
    given = ctx.ints(split)
    if ctx.type(split).rank:
        if min(given, default=0) < 0 or sum(given) != length:
            raise Unsupported(f"parts of {list(given)} do not make a length of {length}")
        return list(given)
    if given[0] < 1:
        raise Unsupported(f"a part cannot have the length {given[0]}")
    count = length // given[0]
    if count > MOST_COPIED:
        return []
    return [given[0]] * count + [length % given[0]] * bool(length % given[0])


@OPS.imports("SequenceMap", since=17)
def import_sequence_map(
    ctx: Import, input_sequence: Expr, *additional_inputs: Expr, body: onnx.GraphProto
) -> list[Expr]:
    """Sequences of known tensors are mapped one by one, others in a loop."""
    given = [input_sequence, *additional_inputs]
    _element_type(input_sequence)
    known = [_list_items(x) for x in given if isinstance(x.type, SequenceType)]
    rows = [each for each in known if each]
    if len(rows) < len(known) or len({len(each) for each in rows}) > 1:
        return _map_in_loop(ctx, given, body)
    columns = [
        _list_items(x) if isinstance(x.type, SequenceType) else [x] * len(rows[0]) for x in given
    ]
    found = [
        ctx.subgraph(body, *(column[i] for column in columns if column), label="body")
        for i in range(len(rows[0]))
    ]
    return [call("serde.sequence_construct", list(each)) for each in zip(*found, strict=True)]


def _map_in_loop(ctx: Import, given: Sequence[Expr], body: onnx.GraphProto) -> list[Expr]:
    """Grow a sequence an output while counting through the first sequence."""
    types = [x.type.element if isinstance(x.type, SequenceType) else ctx.type(x) for x in given]
    once, _ = ctx.closure(body, [Var(f"x{i}", each) for i, each in enumerate(types)], label="body")
    elements = [each for each in results(once) if isinstance(each, TensorType)]
    states = [
        Var(f"y{i}", SequenceType(TensorType(_forget_names(each), each.dtype)))
        for i, each in enumerate(elements)
    ]
    number = Var("i", TensorType((), "int64"))
    inputs = [Var(f"x{i}", each.type) for i, each in enumerate(given)]
    arguments = [
        call("serde.sequence_at", x, number) if isinstance(x.type, SequenceType) else x
        for x in inputs
    ]
    function, captures = ctx.closure(body, [number, *states, *inputs], arguments, label="body")
    fields = function.body.fields if isinstance(function.body, Tuple) else ()
    grown = [
        call("serde.sequence_insert", state, value, None)
        for state, value in zip(states, fields, strict=True)
    ]
    step = Function(function.params, Tuple([relay.const(True, "bool"), *grown]))
    empty = [
        call("serde.sequence_empty", shape=_forget_names(each), dtype=each.dtype)
        for each in elements
    ]
    count = call("serde.sequence_length", given[0])
    found = call("serde.loop", count, None, empty, (*given, *captures), body=step)
    return [TupleGetItem(found, index) for index in range(len(elements))]


def _forget_names(type_: TensorType) -> tuple[Dim, ...]:
    """Return a shape in which a length that is not fixed may be another in each tensor."""
    return tuple(dim if isinstance(dim, int) else relay.Any() for dim in type_.shape)


@OPS.imports("Optional", since=(15, 28))
def import_optional(
    ctx: Import, x: Expr | None = None, *, type: onnx.TypeProto | None = None
) -> Expr:
    if x is not None:
        if isinstance(x.type, SequenceType):
            return x
        return ctx.as_optional(call("serde.sequence_construct", [x]))
    if type is None or not type.HasField("tensor_type"):
        raise Unsupported("an optional that is absent needs a tensor's type")
    shape = tuple(declared_shape(type) or ())
    dtype = ctx.dtype(type.tensor_type.elem_type)
    return ctx.as_optional(call("serde.sequence_empty", shape=shape, dtype=dtype))


@OPS.imports("OptionalHasElement", since=(15, 18, 28))
def import_optional_has_element(ctx: Import, x: Expr | None = None) -> Expr:
    if x is None or (ctx.is_optional(x) and is_empty(x)):
        return relay.const(False, "bool")
    if not ctx.is_optional(x) or _list_items(x):
        return relay.const(True, "bool")
    return relay.greater(call("serde.sequence_length", x), relay.const(0, "int64"))


@OPS.imports("OptionalGetElement", since=(15, 18, 28))
def import_optional_get_element(ctx: Import, x: Expr) -> Expr:
    """What is no optional is its own element."""
    if not ctx.is_optional(x):
        return x
    items = _list_items(x)
    return items[0] if items else call("serde.sequence_at", x, relay.const(0, "int64"))


OPS.pairs(
    pair("SequenceConstruct", "serde.sequence_construct", since=11, target=1),
    writes("SequenceInsert", "serde.sequence_insert"),
    writes("SequenceErase", "serde.sequence_erase"),
    writes("SequenceAt", "serde.sequence_at"),
    writes("SequenceLength", "serde.sequence_length"),
)
