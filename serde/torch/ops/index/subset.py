"""Places of what is true, elements that are marked or distinct, and classes as vectors."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Call, Constant, Dim, Expr, call, normalize_axis, tensor_type
from serde.torch.ops.index.gather import at_least_vector
from serde.torch.ops.index.slicing import cut
from serde.torch.ops.shape.arrange import move_axes
from serde.torch.ops.shape.lengths import broadcast, multiply_lengths, reshape, sizes_of, spread
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value
from serde.torch.ops.written import in_signed


@OPS.imports("aten::nonzero", "aten::argwhere")
def import_nonzero(ctx: Import, self: Expr) -> Expr:
    """One row for each; a scalar has rows of no numbers."""
    rows = relay.cast(relay.argwhere(at_least_vector(ctx, self)), "int64")
    return rows if ctx.type(self).rank else cut(ctx, rows, 1, 0, 0)


@OPS.imports("aten::nonzero_numpy")
@OPS.imports("aten::where", renamed={"condition": "self"})
def import_nonzero_numpy(ctx: Import, self: Expr) -> list[Expr]:
    """``where`` with a condition alone tells where that holds."""
    x = at_least_vector(ctx, self)
    rank = ctx.type(x).rank
    rows = relay.cast(relay.argwhere(x), "int64")
    columns = list(relay.split(rows, rank, axis=1)) if rank > 1 else [rows]
    return [relay.squeeze(column, axis=(1,)) for column in columns]


@OPS.imports("aten::nonzero_static")
def import_nonzero_static(ctx: Import, self: Expr, *, size: SymInt, fill_value: int = -1) -> Expr:
    """As many rows as are asked for, the last ones filled where there are less."""
    rows = import_nonzero(ctx, self)
    filler = Constant(np.full((1, 1), fill_value, np.int64))
    more = broadcast(ctx, filler, [size, ctx.type(self).rank])
    return cut(ctx, relay.concatenate((rows, more), axis=0), 0, 0, size)


@OPS.exports("argwhere")
@in_signed
def export_argwhere(ctx: Export, condition: Value) -> Value:
    return ctx.method(ctx.call("torch.argwhere", condition), "to", ctx.dtype("int32"))


@OPS.exports("serde.nonzero")
@in_signed
def export_nonzero(ctx: Export, data: Value) -> Value:
    return ctx.method(ctx.call("torch.nonzero", data), "t")


@OPS.imports("aten::masked_select")
def import_masked_select(ctx: Import, self: Expr, mask: Expr) -> Expr:
    x, marks = spread(ctx, self, ctx.cast(mask, "bool"))
    return call("serde.compress", reshape(ctx, x, [-1]), reshape(ctx, marks, [-1]))


def _marks_all(call: Call) -> bool:
    """Whether there is a mark for each entry."""
    data, condition = (tensor_type(each) for each in call.args)
    axis = call.attrs["axis"]
    length: Dim = data.size if axis is None else data.shape[axis]
    return condition.shape[0] == length


@OPS.exports("serde.compress", when=_marks_all)
def export_compress(ctx: Export, data: Value, condition: Value, *, axis: int | None) -> Value:
    if axis is None:
        return ctx.index(ctx.method(data, "flatten"), condition)
    axis = normalize_axis(axis, ctx.type(data).rank)
    return ctx.index(data, (*[slice(None)] * axis, condition) if axis else condition)


def _nothing() -> Expr:
    """Return what stands for a result that is not asked for."""
    return Constant(np.zeros(0, np.int64))


def _unique(
    ctx: Import, x: Expr, axis: int | None, *, inverse: bool, counts: bool
) -> tuple[Expr, Expr, Expr]:
    """Return distinct entries in order, which one each entry is, and how often each occurs."""
    found = call("serde.unique", x, axis=axis, sorted=True)
    values, often = relay.TupleGetItem(found, 0), relay.TupleGetItem(found, 3)
    where = ctx.fold(relay.TupleGetItem(found, 2))
    if axis is None and inverse:
        where = reshape(ctx, where, sizes_of(ctx, x))
    return values, where if inverse else _nothing(), often if counts else _nothing()


@OPS.imports("aten::_unique2", "aten::unique_dim", ignored=("sorted",))
def import_unique2(
    ctx: Import,
    self: Expr,
    *,
    dim: int | None = None,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Expr, Expr, Expr]:
    """What need not be sorted may be."""
    axis = None if dim is None else ctx.axis(self, dim)
    return _unique(ctx, self, axis, inverse=return_inverse, counts=return_counts)


@OPS.imports("aten::_unique", ignored=("sorted",))
def import_unique(ctx: Import, self: Expr, *, return_inverse: bool = False) -> tuple[Expr, Expr]:
    return _unique(ctx, self, None, inverse=return_inverse, counts=False)[:2]


def _consecutive(
    ctx: Import, x: Expr, axis: int, *, inverse: bool, counts: bool
) -> tuple[Expr, Expr, Expr]:
    """Return the entries that differ from the one before, and so on."""
    length = ctx.size(x, axis)
    if length == 0:
        raise Unsupported("nothing to be told apart")
    rows = move_axes(ctx, x, [axis], [0])
    rest = multiply_lengths(ctx, *sizes_of(ctx, rows)[1:])
    rows = reshape(ctx, rows, [length, rest])
    pair = cut(ctx, rows, 0, 1), cut(ctx, rows, 0, 0, -1)
    changes = relay.any(relay.not_equal(*pair), axis=(1,))
    starts = relay.concatenate((Constant(np.array([True])), changes), axis=0)
    values = call("serde.compress", x, starts, axis=axis)
    which = often = _nothing()
    if inverse:
        total = relay.cumsum(relay.cast(starts, "int64"), axis=0)
        which = relay.subtract(total, relay.const(1, "int64"))
    if counts:
        places = relay.squeeze(relay.cast(relay.argwhere(starts), "int64"), axis=(1,))
        end = ctx.shape_vector([length])
        often = relay.subtract(relay.concatenate((cut(ctx, places, 0, 1), end), 0), places)
    return values, which, often


@OPS.imports("aten::unique_consecutive", "aten::unique_dim_consecutive")
def import_unique_consecutive(
    ctx: Import,
    self: Expr,
    *,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[Expr, Expr, Expr]:
    if dim is not None:
        axis = ctx.axis(self, dim)
        return _consecutive(ctx, self, axis, inverse=return_inverse, counts=return_counts)
    flat = reshape(ctx, self, [-1])
    values, which, often = _consecutive(ctx, flat, 0, inverse=return_inverse, counts=return_counts)
    return values, reshape(ctx, which, sizes_of(ctx, self)) if return_inverse else which, often


@OPS.exports("unique")
def export_unique(
    ctx: Export, data: Value, *, sorted: bool, return_counts: bool
) -> tuple[Value, ...]:
    found = ctx.call_tuple(ctx.helper("unique_padded"), data, sorted, outputs=5)
    return found if return_counts else found[:4]


@OPS.exports("serde.unique")
def export_serde_unique(
    ctx: Export, data: Value, *, axis: int | None, sorted: bool
) -> tuple[Value, ...]:
    if axis is None:
        data, axis = ctx.method(data, "flatten"), 0
    return ctx.call_tuple(ctx.helper("unique_entries"), data, axis, sorted, outputs=4)


@OPS.imports("aten::one_hot")
def import_one_hot(ctx: Import, self: Expr, *, num_classes: SymInt = -1) -> Expr:
    """Without a number of classes, it is that of the greatest one, and known at run time alone."""
    if num_classes == -1:
        if ctx.type(self).size == 0:
            raise Unsupported("classes of which there are none")
        greatest = relay.max(self, axis=list(range(ctx.type(self).rank)))
        num_classes = ctx.fold(relay.add(greatest, ctx.scalar(1, "int64")))
    count = ctx.dim(num_classes)
    one, zero = ctx.scalar(1, "int64"), ctx.scalar(0, "int64")
    if isinstance(count, int):
        return relay.one_hot(self, one, zero, count, -1, "int64")
    bounds = (zero, ctx.scalar(num_classes, "int64"), one)
    classes = call("arange", *bounds, dtype="int64")
    return relay.cast(relay.equal(relay.expand_dims(self, -1), classes), "int64")
