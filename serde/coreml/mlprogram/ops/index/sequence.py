"""Lists of tensors of one shape, which become one tensor with an axis in front."""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.coreml.mlprogram.ops.elementwise import DTYPES
from serde.coreml.mlprogram.ops.table import OPS, Import
from serde.coreml.mlprogram.tensor_lists import give_shape, is_shapeless, length_of, operand_of
from serde.errors import Unsupported
from serde.relay.ir import Any, Call, Dim, Expr, call, same_length, tensor_type


@OPS.imports("make_list")
def import_make_list(
    ctx: Import,
    init_length: Expr | None = None,
    *,
    elem_shape: tuple[int | str, ...] | int | str,
    dynamic_length: bool = True,
    dtype: str = "fp32",
) -> Expr:
    """Its elements are zeros until they are written; a length that is text is told by the first."""
    if dtype not in DTYPES:
        raise Unsupported(f"a list of {dtype}")
    zero = relay.const(0, DTYPES[dtype])
    length = relay.const(np.int32(1)) if init_length is None else init_length
    given = elem_shape if isinstance(elem_shape, tuple) else (elem_shape,)
    shape = [Any() if isinstance(each, str) else int(each) for each in given]
    dims = ctx.dims(length)
    if dims is not None:
        made = ctx.fold(call("full", zero, shape=(*dims, *shape)))
    elif any(isinstance(each, Any) for each in shape):
        raise Unsupported("a list of which neither the length nor the shape of elements is known")
    else:
        tail = relay.const(np.array(shape, np.int32))
        made = call("dyn.full", zero, relay.concatenate((relay.reshape(length, [1]), tail), axis=0))
        made = relay.reshape(made, [-1, *shape]) if 0 not in shape else made
    if not dynamic_length:
        ctx.lists.fixed.add(made)
    return made


@OPS.imports("list_length")
def import_list_length(ctx: Import, ls: Expr) -> Expr:
    (length,) = ctx.type(ls).shape[:1]
    return relay.const(np.int32(length)) if isinstance(length, int) else length_of(ls)


@OPS.imports("list_read")
def import_list_read(ctx: Import, ls: Expr, index: Expr) -> Expr:
    return relay.take(_require_shape(ls), index, axis=0, mode="fast")


@OPS.imports("list_gather")
def import_list_gather(ctx: Import, ls: Expr, indices: Expr) -> Expr:
    found = _require_shape(ls)
    return found if _is_whole(ctx, ls, indices) else relay.take(found, indices, axis=0, mode="fast")


@OPS.imports("list_write")
def import_list_write(ctx: Import, ls: Expr, index: Expr, value: Expr) -> Expr:
    """Behind the end of a list that may grow, zeros fill what lies between."""
    known = ctx.known(index)
    least = ctx.lists.bounds.get(index) if known is None else int(known.reshape(())) + 1
    found = give_shape(ls, ctx.type(value).shape)
    if ls not in ctx.lists.fixed and not _is_within(least, ctx.type(ls).shape[0]):
        found = _grown(found, index)
    rows = relay.expand_dims(value, axis=0)
    whole = relay.scatter_nd(found, relay.reshape(index, [1, 1]), rows, "update")
    return ctx.lists.follow(whole, ls)


@OPS.imports("list_scatter")
def import_list_scatter(ctx: Import, ls: Expr, indices: Expr, value: Expr) -> Expr:
    found = give_shape(ls, ctx.type(value).shape[1:])
    if _is_whole(ctx, ls, indices):
        return ctx.lists.follow(value, ls)
    known = ctx.known(indices)
    if known is not None and not known.size:
        return found
    least = None if known is None else int(known.max()) + 1
    if ls not in ctx.lists.fixed and not _is_within(least, ctx.type(ls).shape[0]):
        found = _grown(found, relay.max(indices))
    whole = relay.scatter_nd(found, relay.expand_dims(indices, axis=0), value, "update")
    return ctx.lists.follow(whole, ls)


def _require_shape(ls: Expr) -> Expr:
    if is_shapeless(ls):
        raise Unsupported("a list that is read before the shape of its elements is known")
    return ls


def _is_within(least: Dim | None, length: Dim) -> bool:
    """Whether a list is known to be as long as a write needs it to be."""
    if isinstance(least, int) and isinstance(length, int):
        return least <= length
    return least is not None and same_length(least, length)


def _is_whole(ctx: Import, ls: Expr, indices: Expr) -> bool:
    """Whether indices are all that a list has, in their order."""
    length = ctx.type(ls).shape[0]
    known = ctx.known(indices)
    if known is not None:
        return isinstance(length, int) and np.array_equal(known, allocation.arange(length))
    if operand_of(indices, "arange") is None or not isinstance(indices, Call):
        return False
    start, end, step = indices.args
    if ctx.dims(start) != (0,) or ctx.dims(step) != (1,):
        return False
    return ctx.dims(end) == (length,) or _is_length(end, ls)


def _is_length(x: Expr, ls: Expr) -> bool:
    """Whether a number is what :func:`length_of` gives for a list."""
    shape = operand_of(x, "take")
    return shape is not None and operand_of(shape, "shape_of") is ls


def _grown(ls: Expr, index: Expr) -> Expr:
    """Return a list with zeros behind it, so that it has a place of some index."""
    dtype = tensor_type(ls).dtype
    zero, one = (relay.const(np.array([each], np.int32)) for each in (0, 1))
    length = relay.shape_of(ls, dtype="int32")
    head = relay.strided_slice(length, [0], [1], [1])
    after = relay.add(relay.reshape(relay.cast(index, "int32"), [1]), one)
    missing = relay.maximum(relay.subtract(after, head), zero)
    tail = relay.strided_slice(length, [1], [2**31 - 1], [1])
    widths = relay.concatenate((missing, tail), axis=0)
    more = call("dyn.full", relay.const(0, dtype), widths)
    return relay.concatenate((ls, more), axis=0)
