"""Reshaping, and axes of length 1."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Any, Dim, Expr, SymDim, TensorType, get, product, same_length, symbol
from serde.torch.ops.shape.lengths import multiply_lengths, reshape, sizes_of
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value
from serde.torch.ops.written import DType, dims_of, integers, unsqueeze

__all__ = ["at_least", "insert_axes", "join_axes"]


@OPS.imports(
    "aten::view", "aten::view_copy", "aten::_unsafe_view", "aten::_reshape_alias",
    ignored=("stride",),
)  # fmt: skip
@OPS.imports("aten::reshape", renamed={"shape": "size"})
def import_view(ctx: Import, self: Expr, *, size: tuple[SymInt, ...]) -> Expr:
    return reshape(ctx, self, size)


@OPS.imports("prims::reshape", "prims::view_of")
def import_prims_reshape(ctx: Import, a: Expr, *, shape: tuple[SymInt, ...] | None = None) -> Expr:
    return a if shape is None else reshape(ctx, a, shape)


@OPS.imports("aten::view_as", "aten::reshape_as")
def import_view_as(ctx: Import, self: Expr, other: Expr) -> Expr:
    return reshape(ctx, self, sizes_of(ctx, other))


def join_axes(ctx: Import, x: Expr, first: int, last: int) -> Expr:
    """Return `x` with the axes from `first` to `last` as one."""
    rank = ctx.type(x).rank
    if first == last:
        return x
    if (first, last) == (1, rank - 1):
        return relay.nn.batch_flatten(x)
    if last == rank - 1 and any(isinstance(dim, Any) for dim in ctx.type(x).shape):
        return relay.reshape(x, newshape=(*[0] * first, -1))
    sizes = sizes_of(ctx, x)
    whole = multiply_lengths(ctx, *sizes[first : last + 1])
    return reshape(ctx, x, [*sizes[:first], whole, *sizes[last + 1 :]])


@OPS.imports("aten::flatten")
def import_flatten(ctx: Import, self: Expr, *, start_dim: int = 0, end_dim: int = -1) -> Expr:
    if not ctx.type(self).rank:
        return relay.reshape(self, newshape=(1,))
    first, last = ctx.axis(self, start_dim), ctx.axis(self, end_dim)
    if first > last:
        raise Unsupported(f"axes from {start_dim} to {end_dim} are none")
    return join_axes(ctx, self, first, last)


@OPS.exports("nn.batch_flatten")
def export_batch_flatten(ctx: Export, data: Value) -> Value:
    if ctx.type(data).rank == 1:
        return ctx.method(data, "unsqueeze", 1)
    return data if ctx.type(data).rank == 2 else ctx.method(data, "flatten", 1)


@OPS.imports("aten::ravel")
def import_ravel(ctx: Import, self: Expr) -> Expr:
    return reshape(ctx, self, [-1])


@OPS.imports("aten::unflatten.int")
def import_unflatten(ctx: Import, self: Expr, *, dim: int, sizes: tuple[SymInt, ...]) -> Expr:
    axis, own = ctx.axis(self, dim), sizes_of(ctx, self)
    parts = list(sizes)
    if -1 in [each for each in parts if not isinstance(each, Expr)] and own[axis] == 0:
        others = [each for each in parts if isinstance(each, Expr) or each != -1]
        parts[parts.index(-1)] = 0 if multiply_lengths(ctx, *others) else -1
    return reshape(ctx, self, [*own[:axis], *parts, *own[axis + 1 :]])


@OPS.imports("aten::squeeze", "aten::squeeze_copy")
@OPS.imports("prims::squeeze", renamed={"a": "self", "dimensions": "dim"})
def import_squeeze(ctx: Import, self: Expr, *, dim: int | tuple[int, ...] | None = None) -> Expr:
    """Axes that are longer than 1 stay."""
    shape = ctx.type(self).shape
    named = () if dim is None else (dim,) if isinstance(dim, int) else dim
    axes = range(len(shape)) if dim is None else [ctx.axis(self, each) for each in named]
    gone = _require_decided(ctx, self, axes) if shape else ()
    return relay.squeeze(self, axis=gone) if gone else self


def _require_decided(ctx: Import, x: Expr, axes: Sequence[int]) -> tuple[int, ...]:
    """Return those axes that have length 1.

    A symbol of which the program knows the range is a length that it found not to be 1.
    """
    shape = ctx.type(x).shape
    for axis in axes:
        if not ctx.at_least(shape[axis], 0):
            raise Unsupported(
                f"axis {axis} may have length 1, and goes then", hint="fix it with input_shapes"
            )
    return tuple(axis for axis in sorted(set(axes)) if shape[axis] == 1)


@OPS.exports("squeeze")
def export_squeeze(ctx: Export, data: Value, *, axis: tuple[int, ...] | None) -> Value:
    if axis is None:
        return ctx.method(data, "squeeze")
    return ctx.method(data, "squeeze", dims_of(axis)) if axis else data


@OPS.exports("dyn.squeeze")
def export_dyn_squeeze(ctx: Export, data: Value, axes: Value) -> Value:
    return ctx.method(data, "squeeze", integers(ctx, axes))


@OPS.imports("aten::unsqueeze", "aten::unsqueeze_copy")
def import_unsqueeze(ctx: Import, self: Expr, *, dim: int) -> Expr:
    rank = ctx.type(self).rank + 1
    if not -rank <= dim < rank:
        raise Unsupported(f"no axis is inserted at {dim} in a tensor of rank {rank - 1}")
    return relay.expand_dims(self, axis=dim % rank)


@OPS.exports("expand_dims")
def export_expand_dims(ctx: Export, data: Value, *, axis: int, num_newaxis: int) -> Value:
    first = axis % (ctx.type(data).rank + 1)
    if num_newaxis == 1:
        return ctx.method(data, "unsqueeze", axis)
    return unsqueeze(ctx, data, range(first, first + num_newaxis))


@OPS.exports("dyn.expand_dims")
def export_dyn_expand_dims(ctx: Export, data: Value, axis: Value, *, num_newaxis: int) -> Value:
    place = ctx.method(axis, "item") if axis.data is None else int(ctx.constant(axis).item())
    if isinstance(place, int) and place >= 0:
        for number in range(num_newaxis):
            data = ctx.method(data, "unsqueeze", place + number)
        return data
    return ctx.call(ctx.helper("insert_axes"), data, axis, num_newaxis)


def insert_axes(x: Expr, before: int, behind: int) -> Expr:
    """Return `x` with axes of length 1 in front of all others, and behind them."""
    if before:
        x = relay.expand_dims(x, axis=0, num_newaxis=before)
    return relay.expand_dims(x, axis=-1, num_newaxis=behind) if behind else x


def at_least(ctx: Import, self: Expr, *, rank: int) -> Expr:
    """Return a tensor with axes of length 1 up to a rank; the third stands behind the others."""
    have = ctx.type(self).rank
    behind = int(rank == 3 and have < 3)
    before = {(2, 0): 1, (2, 1): 1, (3, 0): 1, (3, 1): 1}.get((rank, have), 0)
    if rank > 1 and have == 0:
        return relay.reshape(self, newshape=(1,) * rank)
    return insert_axes(self, before, behind) if have or rank != 1 else insert_axes(self, 1, 0)


def _import_at_least(ctx: Import, *tensors: Expr, rank: int) -> list[Expr]:
    return [at_least(ctx, each, rank=rank) for each in tensors]


for _rank in (1, 2, 3):
    OPS.imports(f"aten::atleast_{_rank}d")(partial(at_least, rank=_rank))
    OPS.imports(f"aten::atleast_{_rank}d.Sequence")(partial(_import_at_least, rank=_rank))


@OPS.imports("aten::_reshape_from_tensor")
def import_reshape_from_tensor(ctx: Import, self: Expr, shape: Expr) -> Expr:
    return relay.reshape(self, shape)


@OPS.exports("dyn.reshape")
def export_dyn_reshape(ctx: Export, data: Value, newshape: Value, *, allowzero: bool) -> Value:
    """A length of 0 is that of the same axis, unless it is allowed."""
    if newshape.data is not None:
        return ctx.method(data, "reshape", ctx.sizes(ctx.result_type().shape))
    if allowzero:
        return ctx.method(data, "reshape", integers(ctx, newshape))
    return ctx.call(ctx.helper("reshape_to"), data, newshape)


_AXIS: Final = "\N{NULL}axis"
"""Begins the name of a length that a model leaves unknown; no name of a model's own has it."""


def _named(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return a shape whose unknown lengths have names, each its own, so that they can be told."""
    return tuple(
        symbol(f"{_AXIS}{place}") if isinstance(dim, Any) else dim
        for place, dim in enumerate(shape)
    )


def write_reshape(ctx: Export, x: Value, dims: Sequence[Dim]) -> Value:
    """Return `x` with the shape `dims`, in the words that say most of it.

    Args:
        ctx: What is written into.
        x: The data.
        dims: Its new shape, in which its own lengths are what :func:`_named` calls them; of
            others that are unknown there may be one.
    """
    own = _named(ctx.type(x).shape)
    if own == tuple(dims):
        return x
    flat = _flattened(own, dims)
    if flat is not None:
        first, last = flat
        ends = (first,) if last == len(own) - 1 else (first, last)
        return ctx.method(x, "flatten", *([] if ends == (0,) else ends))
    parted = _unflattened(own, dims)
    if parted is not None:
        axis, parts = parted
        return ctx.method(x, "unflatten", axis, tuple(ctx.sizes(parts)))
    return ctx.method(x, "reshape", _lengths(ctx, x, dims))


def _flattened(own: Sequence[Dim], dims: Sequence[Dim]) -> tuple[int, int] | None:
    """Return the first and the last axis of those that become one."""
    count = len(own) - len(dims)
    if count < 1 or not dims:
        return None
    for first in range(len(dims)):
        last = first + count
        if list(own[:first]) != list(dims[:first]):
            return None
        if list(own[last + 1 :]) == list(dims[first + 1 :]):
            whole = product(own[first : last + 1])
            if same_length(whole, dims[first]):
                return first, last
            if isinstance(dims[first], Any):
                return first, last
    return None


def _unflattened(own: Sequence[Dim], dims: Sequence[Dim]) -> tuple[int, list[Dim]] | None:
    """Return the axis that becomes several, and their lengths."""
    count = len(dims) - len(own)
    if count < 1 or not own:
        return None
    for axis in range(len(own)):
        if list(own[:axis]) != list(dims[:axis]):
            return None
        stop = axis + count + 1
        parts = list(dims[axis:stop])
        if list(own[axis + 1 :]) == list(dims[stop:]) and product(parts) == own[axis]:
            computed = [i for i, each in enumerate(parts) if not isinstance(each, int)]
            if own[axis] == 0 or len(computed) > 1 or 0 in parts:
                return None
            return axis, [-1 if i in computed else each for i, each in enumerate(parts)]
    return None


def _lengths(ctx: Export, x: Value, dims: Sequence[Dim]) -> object:
    """Return lengths for ``reshape``: one that is not a number is -1 where it can be."""
    axes = {dim: axis for axis, dim in enumerate(_named(ctx.type(x).shape))}
    computed = [i for i, each in enumerate(dims) if not isinstance(each, int)]
    hidden = [i for i in computed if _is_hidden(dims[i]) and dims[i] not in axes]
    if len(hidden) > (0 not in dims):
        raise Unsupported("needs a length that is not known before the model runs")
    sums = [i for i in computed if dims[i] not in axes and getattr(dims[i], "name", None) is None]
    inferred = (hidden or sums or computed)[-1:] if 0 not in dims else []
    found: list[object] = []
    for place, each in enumerate(dims):
        if place in inferred:
            found.append(-1)
        elif _is_hidden(each):
            found.append(ctx.size(x, axes[each]))
        else:
            found += ctx.sizes([each])
    return tuple(found)


def _is_hidden(dim: Dim) -> bool:
    """Whether a length depends on one that only an axis of the data shows."""
    return isinstance(dim, Any) or (isinstance(dim, SymDim) and _AXIS in str(dim))


def _export_reshape(
    ctx: Export, data: Value, *, name: str, newshape: tuple[Dim, ...], allowzero: bool
) -> Value:
    """Write what codes say of the axes of the data, unknown ones included."""
    type_ = ctx.type(data)
    given = TensorType(_named(type_.shape), type_.dtype)
    found = get(name).infer(given, newshape=newshape, allowzero=allowzero)
    return write_reshape(ctx, data, found.shape)


for _name in ("reshape", "contrib_reverse_reshape"):
    OPS.exports(_name)(partial(_export_reshape, name=_name))


@OPS.exports("shape_of")
def export_shape_of(ctx: Export, data: Value, *, dtype: DType | None) -> Value:
    lengths = [ctx.size(data, axis) for axis in range(ctx.type(data).rank)]
    return ctx.call("torch.tensor", lengths, dtype=ctx.dtype(ctx.result_type().dtype))


@OPS.exports("ndarray_size")
def export_ndarray_size(ctx: Export, data: Value, *, dtype: DType | None) -> Value:
    count = ctx.method(data, "numel")
    return ctx.call("torch.tensor", count, dtype=ctx.dtype(ctx.result_type().dtype))


@OPS.imports("aten::_shape_as_tensor")
def import_shape_as_tensor(ctx: Import, self: Expr) -> Expr:
    return relay.shape_of(self, "int64")
