"""Reshaping, transposition, and axes of length 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import serde.relay as relay
from serde.core import arange
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import cast, const_int64, fill, to_int64
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.onnx.undecided import INPUT_SHAPES_HINT, MAX_SUPPOSED
from serde.relay.ir import Any, Dim, Expr, call, normalize_axes, product, same_length
from serde.walk.pairs import reads, writes


def unsqueeze(ctx: Export, x: Value, axes: Sequence[int]) -> Value:
    """Insert axes of length 1."""
    return _emit_axes(ctx, "Unsqueeze", x, axes)


def squeeze(ctx: Export, x: Value, axes: Sequence[int]) -> Value:
    """Drop axes of length 1."""
    return _emit_axes(ctx, "Squeeze", x, axes)


def _emit_axes(ctx: Export, op: str, x: Value, axes: Sequence[int]) -> Value:
    """Write an operator whose axes are an attribute before 13."""
    if not axes:
        return x
    return (
        ctx.emit(op, x, ctx.ints(axes)) if ctx.version >= 13 else ctx.emit(op, x, axes=list(axes))
    )


def emit_lengths(ctx: Export, x: Value, axes: Sequence[int]) -> Value:
    """Return the lengths of some axes of a value as a vector of int64, at run time if need be."""
    fixed = [ctx.type(x).shape[axis] for axis in axes]
    if all(isinstance(each, int) for each in fixed):
        return ctx.ints(each for each in fixed if isinstance(each, int))
    rank = ctx.type(x).rank
    indices = ctx.ints(axis % rank for axis in axes)
    return ctx.emit("Gather", ctx.emit("Shape", x), indices, axis=0)


def emit_range(ctx: Export, count: Value) -> Value:
    """Return the numbers from 0 to before `count`, a vector of one int64."""
    if count.data is not None:
        return ctx.const(arange(count.data.item()), np.int64)
    end = ctx.emit("Reshape", count, ctx.ints([]))
    return ctx.emit("Range", ctx.const(0, np.int64), end, ctx.const(1, np.int64))


def reshape_along(ctx: Export, x: Value, axis: int, rank: int) -> Value:
    """Return a vector as a tensor of `rank` whose only long axis is `axis`."""
    return ctx.emit("Reshape", x, ctx.ints([-1 if each == axis else 1 for each in range(rank)]))


def emit_reshape(ctx: Export, x: Value, dims: Sequence[Dim]) -> Value:
    """Return `x` with the shape `dims`, spelled with as little shape arithmetic as possible.

    Before 14 a Reshape has no way to say a length of 0; the result has no elements then.
    """
    if any(type(dim) is int and dim == 0 for dim in dims):
        if ctx.version < 14:
            return fill(ctx, ctx.shape(dims), 0, ctx.type(x).dtype)
        return ctx.emit("Reshape", x, ctx.shape(dims), allowzero=1)
    codes = _codes(ctx.type(x).shape, dims)
    if codes is not None:
        return ctx.emit("Reshape", x, ctx.ints(codes))
    return ctx.emit("Reshape", x, ctx.shape(_infer_one(ctx.type(x).shape, dims)))


def _infer_one(source: Sequence[Dim], dims: Sequence[Dim]) -> list[Dim]:
    """Return `dims` with -1 for one that would have to be computed, where ONNX can infer it."""
    found = list(dims)
    whole = product(source)
    for position, dim in enumerate(dims):
        computed = not isinstance(dim, (int, Any)) and dim.name is None
        others = [each for other, each in enumerate(dims) if other != position]
        if computed and not isinstance(whole, Any) and product(others) * dim == whole:
            found[position] = -1
            break
    return found


@OPS.imports("Unsqueeze", since=(1, 11))
def import_unsqueeze_v1(ctx: Import, x: Expr, *, axes: tuple[int, ...]) -> Expr:
    return _build_unsqueeze(ctx, x, axes)


@OPS.imports("Unsqueeze", since=(13, 21, 23, 24, 25))
def import_unsqueeze(ctx: Import, x: Expr, axes: Expr) -> Expr:
    if ctx.is_constant(axes):
        return _build_unsqueeze(ctx, x, ctx.ints(axes))
    if ctx.type(axes).size == 1:
        return call("dyn.expand_dims", x, axes)
    return _unsqueeze_computed_axes(ctx, x, axes)


def _unsqueeze_computed_axes(ctx: Import, x: Expr, axes: Expr) -> Expr:
    """Return `x` with axes of 1 that are computed: they become its new shape."""
    rank = ctx.type(x).rank + ctx.axis_count(axes)
    length = relay.Constant(np.array(rank, np.int64))
    indices = relay.floor_mod(relay.cast(axes, "int64"), length)
    rows = relay.equal(relay.expand_dims(indices, axis=1), relay.Constant(np.arange(rank)))
    is_new = relay.any(rows, axis=(0,))
    old = relay.cast(relay.logical_not(is_new), "int64")
    before = relay.subtract(relay.cumsum(old, axis=0), relay.Constant(np.int64(1)))
    lengths = relay.take(relay.shape_of(x, "int64"), before, axis=0, mode="clip")
    shape = relay.where(is_new, relay.Constant(np.int64(1)), lengths)
    return call("dyn.reshape", x, shape, allowzero=True)


def _build_unsqueeze(ctx: Import, x: Expr, axes: Sequence[int]) -> Expr:
    """Return `x` with axes of 1, which are axes of the result."""
    indices = sorted(normalize_axes(axes, ctx.type(x).rank + len(axes)))
    start = 0
    while start < len(indices):
        stop = start + 1
        while stop < len(indices) and indices[stop] == indices[stop - 1] + 1:
            stop += 1
        x = relay.expand_dims(x, axis=indices[start], num_newaxis=stop - start)
        start = stop
    return x


def _squeeze_ones(ctx: Import, x: Expr) -> Expr:
    """Return `x` without its axes of length 1; an open length may be one, or not."""
    shape = ctx.type(x).shape
    open_ = [axis for axis, dim in enumerate(shape) if not isinstance(dim, int)]
    if not open_:
        return relay.squeeze(x, axis=None)
    if len(open_) > MAX_SUPPOSED:
        raise Unsupported(
            f"any of {len(open_)} open lengths may be 1, and goes then", hint=INPUT_SHAPES_HINT
        )
    lengths = relay.shape_of(x, "int64")
    conditions = {
        axis: ctx.fold(relay.equal(take_entry(lengths, axis), const_int64(1))) for axis in open_
    }
    return _squeeze_where(ctx, x, [axis for axis, dim in enumerate(shape) if dim == 1], conditions)


def take_entry(vector: Expr, index: int) -> Expr:
    """Return one entry of a vector as a scalar."""
    return relay.take(vector, const_int64(index), axis=0, mode="fast")


def as_scalar(ctx: Import, x: Expr) -> Expr:
    """Return a tensor of one element as a scalar."""
    return relay.reshape(x, newshape=()) if ctx.type(x).rank else x


def _squeeze_where(
    ctx: Import, x: Expr, axes: Sequence[int], conditions: Mapping[int, Expr]
) -> Expr:
    """Return `x` without `axes` and without those whose condition holds."""
    if not conditions:
        return relay.squeeze(x, axis=sorted(axes)) if axes else x
    (axis, condition), *others = conditions.items()
    rest = dict(others)
    known = ctx.known(condition)
    if known is not None:
        return _squeeze_where(ctx, x, [*axes, axis] if known.item() else axes, rest)
    yes = _squeeze_where(ctx, x, [*axes, axis], rest)
    return ctx.undecided(condition, yes, _squeeze_where(ctx, x, axes, rest))


def _codes(source: Sequence[Dim], dims: Sequence[Dim]) -> list[int] | None:
    """Return the shape in ONNX's codes, 0 for a length kept, -1 for one inferred, if possible."""
    codes: list[int] = []
    for axis, dim in enumerate(dims):
        if isinstance(dim, int):
            codes.append(dim)
        elif axis < len(source) and same_length(source[axis], dim):
            codes.append(0)
        else:
            codes.append(-1)
    if codes.count(-1) > 1:
        return None
    if -1 in codes:
        others = [dim for dim, code in zip(dims, codes, strict=True) if code != -1]
        known = product(others)
        inferred = dims[codes.index(-1)]
        exact = isinstance(inferred, Any) or product(source) == known * inferred
        return codes if exact else None
    return codes


def _needs_codes(ctx: Export, x: Value, newshape: tuple[int, ...], allowzero: bool) -> bool:
    """Whether a length without a name must be said by the codes, which both formats share."""
    dims = ctx.result_type().shape
    codes = [code for code in newshape if isinstance(code, int) and code >= -1]
    plain = not allowzero and len(codes) == len(newshape) and codes.count(-1) <= 1
    nameless = any(isinstance(dim, Any) for dim in dims)
    return plain and nameless and _codes(ctx.type(x).shape, dims) is None


@OPS.exports("reshape")
def export_reshape(ctx: Export, x: Value, *, newshape: tuple[int, ...], allowzero: bool) -> Value:
    if _needs_codes(ctx, x, newshape, allowzero):
        return ctx.emit("Reshape", x, ctx.ints(newshape))
    dims = ctx.result_type().shape
    if len(newshape) == len(dims) and sum(isinstance(dim, Any) for dim in dims) == 1:
        pairs = zip(newshape, dims, strict=True)
        dims = tuple(-1 if code == -1 and isinstance(dim, Any) else dim for code, dim in pairs)
    return emit_reshape(ctx, x, dims)


@OPS.exports("contrib_reverse_reshape")
def export_reverse_reshape(
    ctx: Export, x: Value, *, newshape: tuple[int, ...], allowzero: bool
) -> Value:
    """A 0 stands for the length as far from the end, which ONNX has no code for."""
    if not _needs_codes(ctx, x, newshape, allowzero):
        return emit_reshape(ctx, x, ctx.result_type().shape)
    lengths = ctx.emit("Shape", x)
    shift = ctx.type(x).rank - len(newshape)
    parts = [
        ctx.ints([code])
        if code
        else ctx.emit("Gather", lengths, ctx.ints([position + shift]), axis=0)
        for position, code in enumerate(newshape)
    ]
    return ctx.emit("Reshape", x, ctx.emit("Concat", *parts, axis=0))


@OPS.imports("Flatten", since=(1, 9, 11, 13, 21, 23, 24, 25))
def import_flatten(ctx: Import, x: Expr, *, axis: int = 1) -> Expr:
    shape = ctx.type(x).shape
    position = axis + len(shape) if axis < 0 else axis
    if position == 1 and len(shape) > 1:
        return relay.nn.batch_flatten(x)
    parts = [product(shape[:position]), product(shape[position:])]
    if all(isinstance(part, Any) for part in parts):
        raise Unsupported(f"both parts of {shape} are without a length or a name")
    return relay.reshape(x, [-1 if isinstance(part, Any) else part for part in parts])


@OPS.exports("transpose")
def export_transpose(ctx: Export, x: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(x).rank
    order = range(rank - 1, -1, -1) if axes is None else (axis % rank for axis in axes)
    return ctx.emit("Transpose", x, perm=list(order) or None)


@OPS.exports("expand_dims")
def export_expand_dims(ctx: Export, x: Value, *, axis: int, num_newaxis: int) -> Value:
    first = axis if axis >= 0 else ctx.type(x).rank + 1 + axis
    return unsqueeze(ctx, x, range(first, first + num_newaxis)) if num_newaxis else x


@OPS.exports("squeeze")
def export_squeeze(ctx: Export, x: Value, *, axis: tuple[int, ...] | None) -> Value:
    shape = ctx.type(x).shape
    if axis is None:
        axes = [i for i, dim in enumerate(shape) if dim == 1]
    else:
        axes = sorted(each % len(shape) for each in axis)
    return squeeze(ctx, x, axes) if axes else x


def _build_reshape(ctx: Import, x: Expr, shape: Expr, allowzero: bool = False) -> Expr:
    """Return `x` in the shape that a tensor holds in ONNX's codes.

    One length that is not known is what remains.
    """
    dims = ctx.partial_dims(shape)
    if dims is not None:
        codes: list[Dim | int] = [-1 if isinstance(dim, Any) else dim for dim in dims]
        if any(isinstance(code, int) and code < -1 for code in codes):
            raise Unsupported(f"a shape of {list(codes)}")
        if sum(type(code) is int and code == -1 for code in codes) <= 1:
            return relay.reshape(x, codes, allowzero=allowzero)
    return call("dyn.reshape", x, shape, allowzero=allowzero)


def to_attribute(dims: Sequence[Dim]) -> list[Dim]:
    """Return dimensions as an attribute."""
    if sum(isinstance(dim, Any) for dim in dims) > 1:
        raise Unsupported(f"several axes without a length or a name: {list(dims)}")
    return [-1 if isinstance(dim, Any) else dim for dim in dims]


@OPS.exports("dyn.reshape")
def export_dyn_reshape(ctx: Export, x: Value, newshape: Value, *, allowzero: bool) -> Value:
    """Of Relay's codes, ONNX has 0 and -1."""
    if newshape.data is not None:
        return emit_reshape(ctx, x, ctx.result_type().shape)
    if allowzero and ctx.version < 14:
        raise Unsupported("a shape with a length of 0 needs version 14")
    return ctx.emit("Reshape", x, to_int64(ctx, newshape), allowzero=int(allowzero) or None)


@OPS.imports("Reshape", since=1, ignored=("consumed_inputs",))
def import_reshape_v1(ctx: Import, x: Expr, *, shape: tuple[int, ...]) -> Expr:
    return relay.reshape(x, shape)


@OPS.imports("Reshape", since=(5, 13, 14, 19, 21, 23, 24, 25))
def import_reshape(ctx: Import, x: Expr, shape: Expr, *, allowzero: bool = False) -> Expr:
    return _build_reshape(ctx, x, shape, allowzero)


@OPS.exports("dyn.expand_dims", since=13)
def export_dyn_expand_dims(ctx: Export, x: Value, axis: Value, *, num_newaxis: int) -> Value:
    """New axes are counted from the front of the result, or all from its end."""
    if not num_newaxis:
        return x
    position = ctx.emit("Reshape", to_int64(ctx, axis), ctx.ints([1]))
    rank = ctx.ints([ctx.type(x).rank + 1])
    front = ctx.emit("Mod", ctx.emit("Add", position, rank), rank)
    return ctx.emit("Unsqueeze", x, ctx.emit("Add", front, ctx.ints(range(num_newaxis))))


@OPS.exports("dyn.expand_dims")
def export_dyn_expand_dims_v1(ctx: Export, x: Value, axis: Value, *, num_newaxis: int) -> Value:
    """Before 13 the axes are an attribute; where they have no value yet, the shape is computed."""
    if axis.data is not None or not num_newaxis:
        known = 0 if axis.data is None else int(axis.data.item())
        return export_expand_dims(ctx, x, axis=known, num_newaxis=num_newaxis)
    position = ctx.emit("Reshape", to_int64(ctx, axis), ctx.ints([1]))
    rank = ctx.ints([ctx.type(x).rank + 1])
    front = ctx.emit("Mod", ctx.emit("Add", position, rank), rank)
    shape, first = ctx.emit("Shape", x), ctx.ints([0])
    before = ctx.emit("Slice", shape, first, front, first)
    after = ctx.emit("Slice", shape, front, rank, first)
    whole = ctx.emit("Concat", before, ctx.ints([1] * num_newaxis), after, axis=0)
    return ctx.emit("Reshape", x, whole)


@OPS.exports("dyn.squeeze")
def export_dyn_squeeze(ctx: Export, x: Value, axes: Value) -> Value:
    """Before 13 the axes are an attribute; where they have no value yet, the shape is computed."""
    if not ctx.static_shape(axes)[0]:
        return x
    if ctx.version >= 13:
        return ctx.emit("Squeeze", x, to_int64(ctx, axes))
    if axes.data is not None:
        return squeeze(ctx, x, [int(axis) for axis in axes.data])
    rank = ctx.type(x).rank
    indices = ctx.emit("Mod", to_int64(ctx, axes), ctx.const(rank, np.int64))
    dropped = ctx.emit("Equal", unsqueeze(ctx, indices, [1]), ctx.ints(range(rank)))
    marks = ctx.emit("ReduceMax", cast(ctx, dropped, np.int32), axes=[0], keepdims=0)
    kept = ctx.emit("Compress", ctx.emit("Shape", x), ctx.emit("Not", cast(ctx, marks, np.bool_)))
    return ctx.emit("Reshape", x, kept)


@OPS.imports("Squeeze", since=(1, 11))
def import_squeeze_v1(ctx: Import, x: Expr, *, axes: tuple[int, ...] | None = None) -> Expr:
    return _squeeze_ones(ctx, x) if axes is None else relay.squeeze(x, axis=axes)


@OPS.imports("Squeeze", since=(13, 21, 23, 24, 25))
def import_squeeze(ctx: Import, x: Expr, axes: Expr | None = None) -> Expr:
    if axes is None:
        return _squeeze_ones(ctx, x)
    if ctx.is_constant(axes):
        return relay.squeeze(x, axis=ctx.ints(axes))
    return call("dyn.squeeze", x, axes)


OPS.pairs(
    writes("Flatten", "nn.batch_flatten", constants={"axis": 1}),
    reads(
        "Transpose", "transpose", since=(1, 13, 21, 23, 24, 25), perm=None, renamed={"perm": "axes"}
    ),
)
