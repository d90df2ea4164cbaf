"""Other shapes for the same elements, and shapes as values."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Dim, Expr, normalize_axes
from serde.walk.pairs import reads, writes


@OPS.imports("Flatten")
def import_flatten(ctx: Import, data: Expr) -> Expr:
    if ctx.type(data).rank == 1:
        return relay.expand_dims(data, 1)
    return relay.nn.batch_flatten(data)


@OPS.exports("nn.batch_flatten")
def export_batch_flatten(ctx: Export, data: Value) -> Value:
    return ctx.emit_bytes("Flatten", data)


@OPS.imports("Reshape", ignored=("target_shape", "keep_highest"))
def import_reshape(
    ctx: Import, data: Expr, *, shape: tuple[int, ...] = (), reverse: bool = False
) -> Expr:
    """``reverse`` reads the special codes from the last axis on."""
    if not shape:
        raise Unsupported("a reshape without shape (the target_shape of MXNet before 0.9)")
    build = relay.contrib_reverse_reshape if reverse else relay.reshape
    return build(data, newshape=shape)


@OPS.exports("reshape", "contrib_reverse_reshape")
def export_reshape(
    ctx: Export, data: Value, *, newshape: tuple[Dim, ...], allowzero: bool = False
) -> Value:
    """Only the shape that comes out matters, and which lengths are said to stay."""
    stays = (type(dim) is int and dim == 0 and not allowzero for dim in newshape)
    kept = sum(1 for _ in itertools.takewhile(bool, stays))
    return ctx.reshape(data, ctx.result_type().shape, kept)


def reshape_to(data: Expr, shape: Sequence[Dim]) -> Expr:
    """Return `data` in another shape, of which one length may be -1; a 0 is a length."""
    has_zero = any(type(dim) is int and dim == 0 for dim in shape)
    return relay.reshape(data, list(shape), allowzero=has_zero)


@OPS.imports("_np_reshape", ignored=("order",))
def import_np_reshape(ctx: Import, a: Expr, *, newshape: tuple[int, ...] | int) -> Expr:
    """Knows -1 alone, and 0 is a length. MXNet does not look at ``order``: it is always C."""
    shape = (newshape,) if isinstance(newshape, int) else newshape
    return reshape_to(a, shape)


class _Codes:
    """Reads the codes of ``npx.reshape`` from the left, one dimension of the input after another.

    -1 is what remains, -2 copies a dimension, -3 drops one of length 1, -4 copies all that follow,
    -5 joins two and -6 splits one into the two that follow.
    """

    def __init__(self, shape: Sequence[Dim], codes: Sequence[int]) -> None:
        self._shape = list(shape)
        self._codes = list(codes)
        self._result: list[Dim] = []

    def _take(self) -> Dim:
        if not self._shape:
            raise Unsupported(f"the codes {self._codes} need more axes than there are")
        return self._shape.pop(0)

    def read(self) -> list[Dim]:
        """Return the lengths of the result, of which one may be -1."""
        codes = iter(self._codes)
        for code in codes:
            if code >= -1:
                self._result.append(code)
                del self._shape[:1]
            elif code == -2:
                self._result.append(self._take())
            elif code == -3:
                self._drop()
            elif code == -4:
                self._result += self._shape
                self._shape = []
            elif code == -5:
                self._result.append(self._take() * self._take())
            elif code == -6:
                self._split_length(next(codes, 0), next(codes, 0))
            else:
                raise Unsupported(f"{code} is no code of a reshape")
        return self._result

    def _drop(self) -> None:
        length = self._take()
        if length != 1:
            raise Unsupported(f"-3 drops an axis of length 1, found {length}")

    def _split_length(self, first: int, second: int) -> None:
        whole = self._take()
        if min(first, second) < -1 or 0 in (first, second) or first == second == -1:
            raise Unsupported("two lengths must follow -6, one of them at most -1")
        left = whole // second if first == -1 else first
        self._result += [left, whole // first if second == -1 else second]


@OPS.imports("_npx_reshape", ignored=("order",))
def import_npx_reshape(
    ctx: Import, a: Expr, *, newshape: tuple[int, ...] | int, reverse: bool = False
) -> Expr:
    """MXNet does not look at ``order``. ``reverse`` turns axes and codes round, and the result."""
    codes = (newshape,) if isinstance(newshape, int) else newshape
    shape = ctx.type(a).shape
    if reverse:
        return reshape_to(a, _Codes(shape[::-1], codes[::-1]).read()[::-1])
    return reshape_to(a, _Codes(shape, codes).read())


@OPS.imports("reshape_like")
def import_reshape_like(
    ctx: Import, lhs: Expr, rhs: Expr,
    *, lhs_begin: int | None = None, lhs_end: int | None = None, rhs_begin: int | None = None,
    rhs_end: int | None = None,
) -> Expr:  # fmt: skip
    return relay.reshape_like(
        lhs,
        rhs,
        lhs_begin=lhs_begin or 0,
        lhs_end=lhs_end,
        rhs_begin=rhs_begin or 0,
        rhs_end=rhs_end,
    )


@OPS.exports("expand_dims")
def export_expand_dims(ctx: Export, data: Value, *, axis: int, num_newaxis: int) -> Value:
    rank = ctx.type(data).rank
    if num_newaxis == 1 and rank:
        return ctx.emit("expand_dims", data, axis=axis % (rank + 1))
    return ctx.reshape(data, ctx.result_type().shape)


@OPS.imports("squeeze")
def import_squeeze(ctx: Import, data: Expr, *, axis: int | tuple[int, ...] | None = None) -> Expr:
    """A tensor whose every axis goes keeps one of length 1."""
    shape = ctx.static_shape(data) if axis is None else ctx.type(data).shape
    if axis is None:
        axes = tuple(i for i, length in enumerate(shape) if length == 1)
    else:
        axes = normalize_axes((axis,) if isinstance(axis, int) else axis, len(shape))
    if not axes:
        return data
    return relay.squeeze(data, axes[1:] if len(axes) == len(shape) else axes)


@OPS.imports("_np_squeeze")
def import_np_squeeze(ctx: Import, a: Expr, *, axis: int | tuple[int, ...] | None = None) -> Expr:
    if axis is None:
        axis = tuple(i for i, length in enumerate(ctx.static_shape(a)) if length == 1)
    axes = (axis,) if isinstance(axis, int) else axis
    return relay.squeeze(a, axes) if axes else a


@OPS.exports("squeeze")
def export_squeeze(ctx: Export, data: Value, *, axis: tuple[int, ...] | None) -> Value:
    result = ctx.result_type()
    if not result.shape or axis == () or result.rank == ctx.type(data).rank:
        return ctx.reshape(data, result.shape)
    return ctx.emit("squeeze", data, axis=axis)


def with_rank(ctx: Import, data: Expr, least: int) -> Expr:
    """Return `data` with axes of length 1 in front, up to a rank of `least`."""
    missing = least - ctx.type(data).rank
    return relay.expand_dims(data, 0, missing) if missing > 0 else data


def at_least_3d(ctx: Import, data: Expr) -> Expr:
    """Return `data` with the axis of a vector in the middle and those of a matrix in front."""
    rank = ctx.type(data).rank
    return relay.expand_dims(with_rank(ctx, data, 2), 2) if rank < 3 else data


def _import_at_least(ctx: Import, *arys: Expr, num_args: int, rank: int) -> Sequence[Expr]:
    if rank == 3:
        return [at_least_3d(ctx, each) for each in arys]
    return [with_rank(ctx, each, rank) for each in arys]


for _rank in (1, 2, 3):
    OPS.imports(f"_np_atleast_{_rank}d")(partial(_import_at_least, rank=_rank))


@OPS.exports("shape_of")
def export_shape_of(ctx: Export, data: Value, *, dtype: AnyValue) -> Value:
    return ctx.emit("Cast", ctx.emit("shape_array", data), dtype=dtype)


@OPS.imports("size_array")
def import_size_array(ctx: Import, data: Expr) -> Expr:
    return relay.expand_dims(relay.ndarray_size(data, dtype="int64"), 0)


@OPS.exports("ndarray_size")
def export_ndarray_size(ctx: Export, data: Value, *, dtype: AnyValue) -> Value:
    shape = ctx.type(data).concrete_shape
    result = ctx.result_type()
    if shape is not None:
        return ctx.const(np.prod(shape, dtype=np.int64), result.dtype)
    whole = ctx.emit("Cast", ctx.emit("size_array", data), dtype=result.dtype)
    return ctx.emit("_npx_reshape", whole, newshape=()) if ctx.np_shape else whole


OPS.pairs(
    writes("reshape_like", "reshape_like", "lhs_begin", "lhs_end", "rhs_begin", "rhs_end"),
    reads("expand_dims", "expand_dims", "axis"),
    reads("shape_array", "shape_of", fixed={"dtype": "int64"}),
)
