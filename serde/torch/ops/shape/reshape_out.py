"""Reshaping, transposition, and axes of length 1, as they are written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from serde.errors import Unsupported
from serde.relay.ir.dims import Any, Dim, SymDim, product, same_length, symbol
from serde.relay.ir.registry import get
from serde.relay.ir.types import TensorType
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import DType, dims_of, in_signed, permute, unsqueeze

_AXIS: Final = "\N{NULL}axis"
"""Begins the name of a length that a model leaves unknown; no name of a model's own has it."""


def _named(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return a shape whose unknown lengths have names, each its own, so that they can be told."""
    return tuple(
        symbol(f"{_AXIS}{place}") if isinstance(dim, Any) else dim
        for place, dim in enumerate(shape)
    )


def write_reshape(ctx: ExportContext, x: Value, dims: Sequence[Dim]) -> Value:
    """Return `x` with the shape `dims`, in the words that say most of it.

    Args:
        ctx: What is written into.
        x: The data.
        dims: Its new shape, in which its own lengths are what :func:`_named` calls them; of
            others that are unknown there may be one.

    Raises:
        Unsupported: There are several.
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


def _lengths(ctx: ExportContext, x: Value, dims: Sequence[Dim]) -> object:
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
    ctx: ExportContext, data: Value, *, name: str, newshape: tuple[Dim, ...], allowzero: bool
) -> Value:
    """Write what codes say of the axes of the data, unknown ones included."""
    type_ = ctx.type(data)
    given = TensorType(_named(type_.shape), type_.dtype)
    found = get(name).infer(given, newshape=newshape, allowzero=allowzero)
    return write_reshape(ctx, data, found.shape)


for _name in ("reshape", "contrib_reverse_reshape"):
    OPS.exports(_name)(partial(_export_reshape, name=_name))


@OPS.exports("nn.batch_flatten")
def export_batch_flatten(ctx: ExportContext, data: Value) -> Value:
    if ctx.type(data).rank == 1:
        return ctx.method(data, "unsqueeze", 1)
    return data if ctx.type(data).rank == 2 else ctx.method(data, "flatten", 1)


@OPS.exports("transpose")
def export_transpose(ctx: ExportContext, data: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(data).rank
    order = [axis % rank for axis in axes] if axes else list(reversed(range(rank)))
    return permute(ctx, data, order)


@OPS.exports("expand_dims")
def export_expand_dims(ctx: ExportContext, data: Value, *, axis: int, num_newaxis: int) -> Value:
    first = axis % (ctx.type(data).rank + 1)
    if num_newaxis == 1:
        return ctx.method(data, "unsqueeze", axis)
    return unsqueeze(ctx, data, range(first, first + num_newaxis))


@OPS.exports("squeeze")
def export_squeeze(ctx: ExportContext, data: Value, *, axis: tuple[int, ...] | None) -> Value:
    if axis is None:
        return ctx.method(data, "squeeze")
    return ctx.method(data, "squeeze", dims_of(axis)) if axis else data


@OPS.exports("shape_of")
def export_shape_of(ctx: ExportContext, data: Value, *, dtype: DType | None) -> Value:
    lengths = [ctx.size(data, axis) for axis in range(ctx.type(data).rank)]
    return ctx.call("torch.tensor", lengths, dtype=ctx.dtype(ctx.result_type().dtype))


@OPS.exports("ndarray_size")
def export_ndarray_size(ctx: ExportContext, data: Value, *, dtype: DType | None) -> Value:
    count = ctx.method(data, "numel")
    return ctx.call("torch.tensor", count, dtype=ctx.dtype(ctx.result_type().dtype))


@OPS.exports("reverse")
@in_signed
def export_reverse(ctx: ExportContext, data: Value, *, axis: int | None) -> Value:
    return ctx.method(data, "flip", axis)
