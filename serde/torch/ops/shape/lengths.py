"""Lengths that are fixed, symbolic or computed, and shapes made of them."""

from __future__ import annotations

from collections.abc import Sequence

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Any, Dim, Expr, call, same_length, same_shape
from serde.torch.import_context import ImportContext, Scalar, SymInt

__all__ = [
    "add_lengths", "broadcast", "count_steps", "divide_length", "is_at_most",
    "multiply_lengths", "reshape", "restore", "sizes_of", "spread", "subtract_lengths",
]  # fmt: skip


def sizes_of(ctx: ImportContext, x: Expr) -> list[SymInt]:
    """Return the lengths of all axes."""
    return [ctx.size(x, axis) for axis in range(ctx.type(x).rank)]


def multiply_lengths(ctx: ImportContext, *lengths: SymInt) -> SymInt:
    """Return the product of lengths; of none, 1."""
    fixed, total = 1, None
    for each in lengths:
        if isinstance(each, Expr):
            total = each if total is None else ctx.fold(relay.multiply(total, each))
        else:
            fixed *= each
    if total is None:
        return fixed
    return total if fixed == 1 else _compute(ctx, "multiply", total, fixed)


def add_lengths(ctx: ImportContext, one: SymInt, other: SymInt) -> SymInt:
    """Return the sum of two lengths."""
    if not isinstance(one, Expr) and not isinstance(other, Expr):
        return one + other
    return _compute(ctx, "add", one, other)


def subtract_lengths(ctx: ImportContext, one: SymInt, other: SymInt) -> SymInt:
    """Return the difference of two lengths."""
    if not isinstance(one, Expr) and not isinstance(other, Expr):
        return one - other
    return _compute(ctx, "subtract", one, other)


def _compute(ctx: ImportContext, name: str, one: SymInt, other: SymInt) -> SymInt:
    operands = [ctx.scalar(each, "int64") for each in (one, other)]
    found = ctx.as_number(ctx.fold(call(name, *operands)))
    return found if isinstance(found, Expr) else int(found.real)


def divide_length(ctx: ImportContext, length: SymInt, factor: int) -> SymInt:
    """Return a length divided by a number, rounded down."""
    if factor < 1:
        raise Unsupported(f"a length divided by {factor}")
    if not isinstance(length, Expr):
        return length // factor
    return length if factor == 1 else _compute(ctx, "floor_divide", length, factor)


def is_at_most(ctx: ImportContext, one: SymInt, other: SymInt) -> bool | None:
    """Whether a length is at most another, whatever symbols stand for; None where they decide."""
    first, last = ctx.dim(one), ctx.dim(other)
    if ctx.at_least(last - first, 0):
        return True
    operands = [ctx.scalar(each, "int64") for each in (one, other)]
    known = ctx.known(ctx.fold(relay.less_equal(*operands)))
    return None if known is None else bool(known)


def count_steps(ctx: ImportContext, start: Scalar, end: Scalar, step: Scalar) -> Dim:
    """Return how many integers there are from one to before another."""
    bounds = [ctx.dim(each) for each in (start, end) if isinstance(each, (int, Expr))]
    if len(bounds) < 2 or not isinstance(step, int) or step < 1:
        return Any()
    span = bounds[1] - bounds[0]
    return (span + (step - 1)) // step if ctx.at_least(span, 0) else Any()


def reshape(ctx: ImportContext, x: Expr, sizes: Sequence[SymInt]) -> Expr:
    """Return `x` in another shape, one length of which may be -1: what remains."""
    dims = [ctx.dim(each) for each in sizes]
    if same_shape(dims, ctx.type(x).shape):
        return x
    if dims.count(-1) > 1:
        raise Unsupported(f"only one length of {list(sizes)} may be -1")
    found = _reshape_known(x, dims)
    return (
        call("dyn.reshape", x, ctx.shape_vector(sizes), allowzero=True) if found is None else found
    )


def _reshape_known(x: Expr, dims: Sequence[Dim]) -> Expr | None:
    """Return `x` in a shape of which at most one length is not known, None where more are."""
    codes: list[Dim] = [-1 if isinstance(dim, Any) else dim for dim in dims]
    open_ = codes.count(-1)
    if open_ > 1 or (open_ and 0 in codes):
        return None
    return relay.reshape(x, newshape=codes, allowzero=0 in codes)


def restore(ctx: ImportContext, x: Expr, dims: Sequence[Dim]) -> Expr:
    """Return `x`, whose shape is known to be `dims`, with a type that says so."""
    have = ctx.type(x).shape
    lost = [isinstance(a, Any) and not isinstance(b, Any) for a, b in zip(have, dims, strict=True)]
    if not any(lost) or (len(dims) == 1 and isinstance(dims[0], Any)):
        return x
    return _reshape_known(x, dims) or x


def broadcast(ctx: ImportContext, x: Expr, sizes: Sequence[SymInt]) -> Expr:
    """Return `x` spread over a shape, lengths of -1 being its own."""
    own = ctx.type(x).shape
    offset = len(sizes) - len(own)
    if offset < 0:
        raise Unsupported(f"a tensor of rank {len(own)} is not spread over {len(sizes)} axes")
    wanted: list[SymInt] = []
    for place, size in enumerate(sizes):
        if type(size) is int and size == -1:
            if place < offset:
                raise Unsupported("a new axis has no length of its own")
            size = ctx.size(x, place - offset)
        wanted.append(size)
    dims = [ctx.dim(each) for each in wanted]
    for place, length in enumerate(own, offset):
        if type(length) is int and length != 1:
            dims[place] = length
    if same_shape(dims, own):
        return x
    if not any(isinstance(dim, Any) for dim in dims):
        return relay.broadcast_to(x, dims)
    return restore(ctx, call("dyn.broadcast_to", x, ctx.shape_vector(wanted)), dims)


def spread(ctx: ImportContext, *tensors: Expr) -> list[Expr]:
    """Return tensors broadcast against each other."""
    rank = max((ctx.type(x).rank for x in tensors), default=0)
    sizes: list[SymInt] = [1] * rank
    for x in tensors:
        first = rank - ctx.type(x).rank
        for axis, dim in enumerate(ctx.type(x).shape):
            have = ctx.dim(sizes[first + axis])
            if dim == 1 or same_length(have, dim):
                continue
            if type(have) is int and have != 1:
                continue
            size = ctx.size(x, axis)
            both = isinstance(size, Expr) and have != 1
            sizes[first + axis] = _longer(ctx, sizes[first + axis], size) if both else size
    return [broadcast(ctx, x, sizes) for x in tensors]


def _longer(ctx: ImportContext, one: SymInt, other: SymInt) -> SymInt:
    """Return what two lengths broadcast to: the one that is not 1."""
    first, second = (ctx.scalar(each, "int64") for each in (one, other))
    alone = relay.equal(first, relay.const(1, "int64"))
    return ctx.fold(relay.where(alone, second, first))
