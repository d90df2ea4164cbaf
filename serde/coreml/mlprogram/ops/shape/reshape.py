"""Reshaping, transposition, and axes of length 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.coreml.mlprogram.operators import MOVE_DTYPES, cast_to, compute_dtype
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.coreml.value import MAX_RANK
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, TensorType, call, is_call, normalize_axes
from serde.relay.ir.dims import Any, Dim, product, same_shape
from serde.relay.op.shape.reshape import new_shape


def emit_moved(ctx: Export, op: str, x: Value, dims: Sequence[Dim], /, **inputs: AnyValue) -> Value:
    """Append an operation that only moves the elements of `x`."""
    dtype = ctx.type(x).dtype
    work = compute_dtype(ctx, dtype, MOVE_DTYPES)
    found = ctx.emit(op, TensorType(dims, work), x=cast_to(ctx, x, work), **inputs)
    return cast_to(ctx, found, dtype)


def reshape(ctx: Export, x: Value, dims: Sequence[Dim]) -> Value:
    """Return `x` with the shape `dims`, spelled with as little shape arithmetic as possible."""
    shape = ctx.type(x).shape
    if same_shape(dims, shape):
        return x
    lengths = tuple(dim for dim in dims if isinstance(dim, int))
    if x.data is not None and len(lengths) == len(dims):
        return ctx.const(x.data.reshape(lengths))
    if x.weight is not None and len(lengths) == len(dims):
        weight = x.weight.reshaped(lengths)
        return Value(x.name, TensorType(lengths, ctx.type(x).dtype), None, weight)
    if 0 in lengths or 0 in shape:
        raise Unsupported("a reshape of a tensor without elements")
    if not dims:
        return squeeze(ctx, x, range(len(shape)))
    return emit_moved(ctx, "reshape", x, dims, shape=shape_codes(ctx, dims))


def shape_codes(ctx: Export, dims: Sequence[Dim]) -> Value:
    """Return a shape, in which -1 stands for one length that is not fixed."""
    open_ = [place for place, dim in enumerate(dims) if not isinstance(dim, int)]
    anonymous = [place for place in open_ if isinstance(dims[place], Any)]
    inferred = anonymous or (open_ if len(open_) == 1 else [])
    if len(inferred) == 1:
        return ctx.shape([-1 if i == inferred[0] else dim for i, dim in enumerate(dims)])
    return ctx.shape(dims)


def squeeze(ctx: Export, x: Value, axes: Sequence[int]) -> Value:
    """Return `x` without axes of length 1; one that is so only when the model runs is reshaped."""
    shape = ctx.type(x).shape
    rest = [dim for axis, dim in enumerate(shape) if axis not in axes]
    if not axes:
        return x
    if x.data is not None:
        return ctx.const(x.data.squeeze(tuple(axes)))
    if any(shape[axis] != 1 for axis in axes):
        if not rest:
            raise Unsupported("a scalar of what is not known to have one element")
        return emit_moved(ctx, "reshape", x, rest, shape=shape_codes(ctx, rest))
    return emit_moved(ctx, "squeeze", x, rest, axes=list(axes))


def expand_dims(ctx: Export, x: Value, axes: Sequence[int]) -> Value:
    """Return `x` with axes of length 1 at these positions of the result."""
    if not axes:
        return x
    if x.data is not None:
        return ctx.const(np.expand_dims(x.data, tuple(axes)))
    rest = iter(ctx.type(x).shape)
    rank = ctx.type(x).rank + len(axes)
    shape = [1 if axis in axes else next(rest) for axis in range(rank)]
    return emit_moved(ctx, "expand_dims", x, shape, axes=list(axes))


def transpose(ctx: Export, x: Value, order: Sequence[int]) -> Value:
    """Return `x` with its axes in another order."""
    if list(order) == sorted(order):
        return x
    if x.data is not None:
        return ctx.const(x.data.transpose(order))
    shape = [ctx.type(x).shape[axis] for axis in order]
    return emit_moved(ctx, "transpose", x, shape, perm=list(order))


@OPS.imports("reshape", since=(1, 17))
def import_reshape(ctx: Import, x: Expr, shape: Expr) -> Expr:
    """A length of 0 is that of `x`, from iOS17 on counted from the last axis."""
    dims = ctx.partial_dims(shape)
    own = ctx.type(x).shape
    if dims is None:
        count = ctx.static_shape(shape)[0]
        if count != len(own):
            return call("dyn.reshape", x, shape, allowzero=True)
        return call("dyn.reshape", x, shape)
    offset = len(dims) - len(own)
    codes: list[Dim] = []
    for index, dim in enumerate(dims):
        if not isinstance(dim, int) or dim != 0:
            codes.append(-1 if isinstance(dim, Any) else dim)
        elif ctx.version < 17 and offset:
            raise Unsupported(f"a length of 0 among {len(dims)} for {len(own)} before iOS17")
        else:
            codes.append(own[index - offset] if index >= offset else 1)
    if sum(isinstance(code, int) and code == -1 for code in codes) > 1:
        return call("dyn.reshape", x, shape, allowzero=True)
    return relay.reshape(x, codes)


def _is_direct(node: Call) -> bool:
    """Whether what is reshaped is no transpose of more axes than Core ML has."""
    source = node.args[0]
    return not (is_call(source, "transpose") and _rank(source) > MAX_RANK)


def _rank(node: Expr) -> int:
    return node.type.rank if isinstance(node.type, TensorType) else 0


@OPS.expands("reshape")
def expand_reshape(data: Expr, *, newshape: AnyValue, allowzero: bool) -> Expr:
    """A transpose of many axes goes one axis at a time, those before and behind it as one."""
    if not isinstance(data, Call) or not isinstance(data.type, TensorType):
        raise Unsupported("a reshape of what has no type")
    order = normalize_axes(data.attrs["axes"] or range(data.type.rank)[::-1], data.type.rank)
    inner = data.args[0]
    given = inner.type.shape if isinstance(inner.type, TensorType) else ()
    if any(isinstance(dim, Any) for dim in given):
        raise Unsupported(f"a transpose of {len(given)} axes; Core ML has {MAX_RANK} at most")
    found = inner.args[0] if is_call(inner, "reshape") else inner
    left = list(range(len(given)))
    done: list[int] = []
    for axis in order:
        index = left.index(axis)
        if index:
            parts = [done, left[:index], [axis], left[index + 1 :]]
            lengths = [product(given[each] for each in part) for part in parts]
            found = relay.transpose(relay.reshape(found, lengths), axes=[0, 2, 1, 3])
        left.remove(axis)
        done.append(axis)
    return relay.reshape(found, new_shape(data.type.shape, newshape, allowzero))


@OPS.exports("reshape", when=_is_direct, ignored=("newshape", "allowzero"))
@OPS.exports("contrib_reverse_reshape", ignored=("newshape", "allowzero"))
def export_reshape(ctx: Export, data: Value) -> Value:
    return reshape(ctx, data, ctx.result_type().shape)


@OPS.imports("reshape_like", since=(16, 17))
def import_reshape_like(
    ctx: Import, x: Expr, *ref_tensors: Expr, begins: AnyValue, ends: AnyValue, end_masks: AnyValue
) -> Expr:
    """Parts of the shapes of several tensors, one after the other."""
    spans = zip(ref_tensors, _each(begins), _each(ends), _each(end_masks), strict=True)
    dims: list[Dim] = []
    for tensor, begin, end, mask in spans:
        shape = ctx.type(tensor).shape
        dims += shape[int(begin) :] if mask else shape[int(begin) : int(end)]
    if sum(isinstance(dim, Any) for dim in dims) > 1:
        raise Unsupported("several lengths that have no name")
    return relay.reshape(x, [-1 if isinstance(dim, Any) else dim for dim in dims])


def _each(given: AnyValue) -> tuple[AnyValue, ...]:
    return given if isinstance(given, tuple) else (given,)


@OPS.exports("nn.batch_flatten")
def export_batch_flatten(ctx: Export, data: Value) -> Value:
    return reshape(ctx, data, ctx.result_type().shape)


@OPS.imports("flatten2d")
def import_flatten2d(ctx: Import, x: Expr, *, axis: int = 1) -> Expr:
    """A negative axis counts from the end."""
    shape = ctx.type(x).shape
    parts = [product(shape[:axis]), product(shape[axis:])]
    if all(isinstance(part, Any) for part in parts):
        raise Unsupported(f"both parts of {shape} are without a length or a name")
    return relay.reshape(x, [-1 if isinstance(part, Any) else part for part in parts])


@OPS.imports("transpose", since=(1, 17))
def import_transpose(ctx: Import, x: Expr, *, perm: tuple[int, ...]) -> Expr:
    return relay.transpose(x, axes=perm) if ctx.type(x).rank else x


@OPS.exports("transpose")
def export_transpose(ctx: Export, data: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(data).rank
    return transpose(ctx, data, normalize_axes(axes or range(rank)[::-1], rank))


@OPS.imports("expand_dims", since=(1, 17))
def import_expand_dims(ctx: Import, x: Expr, *, axes: tuple[int, ...] | int) -> Expr:
    """Places are those of the result."""
    wanted = axes if isinstance(axes, tuple) else (axes,)
    rank = ctx.type(x).rank + len(wanted)
    for axis in sorted(normalize_axes(wanted, rank)):
        x = relay.expand_dims(x, axis=axis)
    return x


@OPS.exports("expand_dims")
def export_expand_dims(ctx: Export, data: Value, *, axis: int, num_newaxis: int) -> Value:
    first = axis % (ctx.type(data).rank + 1)
    return expand_dims(ctx, data, range(first, first + num_newaxis))


@OPS.imports("squeeze", since=(1, 17))
def import_squeeze(ctx: Import, x: Expr, *, axes: tuple[int, ...] | int | None = None) -> Expr:
    """An axis that is not of length 1 stays; one of unknown length goes where it is named."""
    shape = ctx.type(x).shape
    wanted = range(len(shape)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    gone = [
        axis
        for axis in normalize_axes(wanted, len(shape))
        if shape[axis] == 1 or (axes is not None and isinstance(shape[axis], Any))
    ]
    return relay.squeeze(x, axis=gone) if gone else x


@OPS.exports("squeeze")
def export_squeeze(ctx: Export, data: Value, *, axis: tuple[int, ...] | None) -> Value:
    shape = ctx.type(data).shape
    if axis is None:
        return squeeze(ctx, data, [i for i, dim in enumerate(shape) if dim == 1])
    return squeeze(ctx, data, sorted(each % len(shape) for each in axis))


@OPS.imports("shape")
def import_shape(ctx: Import, x: Expr) -> Expr:
    return relay.shape_of(x, dtype="int32")


@OPS.exports("shape_of", ignored=("dtype",))
def export_shape_of(ctx: Export, data: Value) -> Value:
    type_ = ctx.type(data)
    if all(isinstance(dim, int) for dim in type_.shape):
        return ctx.const(np.array(type_.shape), ctx.result_type().dtype)
    found = ctx.emit("shape", TensorType((type_.rank,), "int32"), x=data)
    return cast_to(ctx, found, ctx.result_type().dtype)


@OPS.exports("ndarray_size", ignored=("dtype",))
def export_ndarray_size(ctx: Export, data: Value) -> Value:
    size = ctx.type(data).size
    if isinstance(size, int):
        return ctx.const(size, ctx.result_type().dtype)
    return cast_to(ctx, squeeze(ctx, ctx.length(size), [0]), ctx.result_type().dtype)


@OPS.exports("dyn.reshape")
def export_dyn_reshape(ctx: Export, data: Value, newshape: Value, *, allowzero: bool) -> Value:
    """A length of 0 is that of the same place; MIL says so only among as many axes."""
    rank, count = ctx.type(data).rank, ctx.static_lengths(newshape, [0])[0]
    if not allowzero and count != rank and newshape.data is None:
        positions = ctx.const(np.minimum(allocation.arange(count), rank - 1))
        newshape = ctx.spell(
            lambda x, shape, index: relay.where(
                relay.equal(shape, relay.Constant(np.zeros((), ctx.type(newshape).dtype))),
                relay.cast(relay.take(relay.shape_of(x), index, axis=0), ctx.type(newshape).dtype),
                shape,
            ),
            data,
            newshape,
            positions,
        )
    return emit_moved(ctx, "reshape", data, ctx.result_type().shape, shape=newshape)


def _known_rank(x: Expr) -> int:
    if not isinstance(x.checked_type, TensorType):
        raise Unsupported(f"expected a tensor, found {x.checked_type!r}")
    return x.checked_type.rank


@OPS.expands("dyn.expand_dims")
def expand_dyn_expand_dims(data: Expr, axis: Expr, *, num_newaxis: int) -> Expr:
    """Each place of the result looks up which length it has."""
    rank = _known_rank(data) + num_newaxis
    start = relay.reshape(relay.cast(axis, "int32"), [1])
    start = relay.floor_mod(start, relay.const(_known_rank(data) + 1, "int32"))
    positions = relay.const(allocation.arange(rank), "int32")
    before = relay.less(positions, start)
    old = relay.where(
        before, positions, relay.subtract(positions, relay.const(num_newaxis, "int32"))
    )
    lengths = relay.take(relay.shape_of(data), old, axis=0, mode="clip")
    end = relay.add(start, relay.const(num_newaxis, "int32"))
    is_new = relay.logical_and(relay.greater_equal(positions, start), relay.less(positions, end))
    shape = relay.where(is_new, relay.const(allocation.ones(rank), "int32"), lengths)
    return call("dyn.reshape", data, shape, allowzero=True)


@OPS.expands("dyn.squeeze")
def expand_dyn_squeeze(data: Expr, axes: Expr) -> Expr:
    """The axes that stay come first in a stable order of those that go."""
    rank, type_ = _known_rank(data), axes.checked_type
    count = type_.shape[0] if isinstance(type_, TensorType) and type_.rank else 1
    if not isinstance(count, int):
        raise Unsupported("a number of axes that is not fixed")
    named = relay.reshape(relay.cast(axes, "int32"), [count, 1])
    named = relay.floor_mod(named, relay.const(rank, "int32"))
    positions = relay.const(allocation.arange(rank), "int32")
    gone = relay.max(relay.cast(relay.equal(named, positions), "int32"), axis=[0])
    keys = relay.add(relay.multiply(gone, relay.const(rank, "int32")), positions)
    order = relay.strided_slice(relay.argsort(keys, axis=0, dtype="int32"), [0], [rank - count])
    shape = relay.take(relay.shape_of(data), order, axis=0, mode="fast")
    return call("dyn.reshape", data, shape, allowzero=True)
