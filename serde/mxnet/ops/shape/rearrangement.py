"""The same elements in another shape or order, by NumPy's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.elementwise.arithmetic import scalar_like
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import normalize_axes, normalize_axis


@OPS.imports("_np_reshape", ignored=("order",))
def import_np_reshape(ctx: ImportContext, a: Expr, *, newshape: tuple[int, ...] | int) -> Expr:
    """Knows -1 alone, and 0 is a length. MXNet does not look at ``order``: it is always C."""
    shape = (newshape,) if isinstance(newshape, int) else newshape
    return reshaped(a, shape)


def reshaped(data: Expr, shape: Sequence[Dim]) -> Expr:
    """Return `data` in another shape, of which one length may be -1; a 0 is a length."""
    has_zero = any(type(dim) is int and dim == 0 for dim in shape)
    return relay.reshape(data, list(shape), allowzero=has_zero)


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
                self._split(next(codes, 0), next(codes, 0))
            else:
                raise Unsupported(f"{code} is no code of a reshape")
        return self._result

    def _drop(self) -> None:
        length = self._take()
        if length != 1:
            raise Unsupported(f"-3 drops an axis of length 1, found {length}")

    def _split(self, first: int, second: int) -> None:
        whole = self._take()
        if min(first, second) < -1 or 0 in (first, second) or first == second == -1:
            raise Unsupported("two lengths must follow -6, one of them at most -1")
        left = whole // second if first == -1 else first
        self._result += [left, whole // first if second == -1 else second]


@OPS.imports("_npx_reshape", ignored=("order",))
def import_npx_reshape(
    ctx: ImportContext, a: Expr, *, newshape: tuple[int, ...] | int, reverse: bool = False
) -> Expr:
    """MXNet does not look at ``order``. ``reverse`` turns axes and codes round, and the result."""
    codes = (newshape,) if isinstance(newshape, int) else newshape
    shape = ctx.type(a).shape
    if reverse:
        return reshaped(a, _Codes(shape[::-1], codes[::-1]).read()[::-1])
    return reshaped(a, _Codes(shape, codes).read())


@OPS.imports("_np_squeeze")
def import_np_squeeze(
    ctx: ImportContext, a: Expr, *, axis: int | tuple[int, ...] | None = None
) -> Expr:
    if axis is None:
        axis = tuple(i for i, length in enumerate(ctx.static_shape(a)) if length == 1)
    axes = (axis,) if isinstance(axis, int) else axis
    return relay.squeeze(a, axes) if axes else a


@OPS.imports("_np_transpose")
def import_np_transpose(
    ctx: ImportContext, a: Expr, *, axes: tuple[int, ...] | None = None
) -> Expr:
    return relay.transpose(a, axes)


@OPS.imports("_np_moveaxis")
def import_moveaxis(
    ctx: ImportContext,
    a: Expr,
    *,
    source: tuple[int, ...] | int,
    destination: tuple[int, ...] | int,
) -> Expr:
    rank = ctx.type(a).rank
    moved, places = (
        normalize_axes((axes,) if isinstance(axes, int) else axes, rank)
        for axes in (source, destination)
    )
    if len(moved) != len(places):
        raise Unsupported(f"source names {len(moved)} axes, destination {len(places)}")
    order = [axis for axis in range(rank) if axis not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    return relay.transpose(a, order)


@OPS.imports("_np_roll")
def import_roll(
    ctx: ImportContext,
    data: Expr,
    *,
    shift: tuple[int, ...] | int | None = None,
    axis: tuple[int, ...] | int | None = None,
) -> Expr:
    """Without axes the flat tensor is moved; one shift may serve several axes."""
    if shift is None:
        raise Unsupported("a roll without shift")
    steps = (shift,) if isinstance(shift, int) else shift
    if axis is None:
        if len(steps) != 1:
            raise Unsupported(f"{len(steps)} shifts, but no axes")
        if not ctx.type(data).rank:
            return data
        flat = call("serde.roll", relay.reshape(data, (-1,)), shift=steps, axes=(0,))
        return flat if ctx.type(data).rank == 1 else relay.reshape_like(flat, data)
    axes = (axis,) if isinstance(axis, int) else axis
    return call(
        "serde.roll", data, shift=steps * len(axes) if len(steps) == 1 else steps, axes=axes
    )


@OPS.imports("_npi_flip")
def import_flip(ctx: ImportContext, data: Expr, *, axis: tuple[int, ...] | int) -> Expr:
    for each in (axis,) if isinstance(axis, int) else axis:
        data = relay.reverse(data, each)
    return data


@OPS.imports("_npi_rot90")
def import_rot90(
    ctx: ImportContext, data: Expr, *, k: int = 1, axes: tuple[int, ...] | None = None
) -> Expr:
    if axes is None or len(axes) != 2:
        raise Unsupported(f"expected two axes to turn, found {axes}")
    rank = ctx.type(data).rank
    first, second = normalize_axes(axes, rank)
    turns = k % 4
    if turns == 2:
        return relay.reverse(relay.reverse(data, first), second)
    if turns == 0:
        return data
    order = list(range(rank))
    order[first], order[second] = second, first
    if turns == 1:
        return relay.transpose(relay.reverse(data, second), order)
    return relay.reverse(relay.transpose(data, order), second)


@OPS.imports("_npi_broadcast_to")
def import_np_broadcast_to(
    ctx: ImportContext, array: Expr, *, shape: tuple[int, ...] | int = ()
) -> Expr:
    """-2 keeps the length there is, counted from the last axis."""
    wanted = (shape,) if isinstance(shape, int) else shape
    own = ctx.type(array).shape
    missing = len(wanted) - len(own)
    if -2 in wanted[: max(missing, 0)]:
        raise Unsupported(f"-2 in shape={wanted} stands for an axis that {own} has not")
    target = [
        own[place - missing] if length == -2 else length for place, length in enumerate(wanted)
    ]
    return relay.broadcast_to(array, target)


Mode = Literal["constant", "edge", "maximum", "minimum", "reflect", "symmetric"]


@OPS.imports("_npi_pad", ignored=("reflect_type",))
def import_np_pad(
    ctx: ImportContext,
    data: Expr,
    *,
    pad_width: tuple[tuple[int, ...] | int, ...],
    mode: Mode = "constant",
    constant_value: float = 0.0,
) -> Expr:
    """Of a vector the widths come in a row. MXNet does not look at ``reflect_type``: it is even."""
    rank = ctx.type(data).rank
    widths = _widths(pad_width, rank)
    if mode in ("constant", "edge"):
        return relay.nn.pad(data, widths, scalar_like(ctx, data, constant_value), pad_mode=mode)
    for axis, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        if mode in ("maximum", "minimum"):
            reduction = relay.max if mode == "maximum" else relay.min
            most = reduction(data, axis=(axis,), keepdims=True)
            sides = [relay.repeat(most, n, axis) if n > 1 else most for n in (before, after)]
            parts = [*sides[: before > 0], data, *([sides[1]] if after else [])]
            data = relay.concatenate(parts, axis)
        else:
            data = _mirrored(ctx, data, axis, (before, after), mode == "symmetric")
    return data


def _widths(pad_width: Sequence[Sequence[int] | int], rank: int) -> list[tuple[int, int]]:
    """Return the widths before and after each axis; MXNet wants those of a vector as (b, a)."""
    rows = [(each,) if isinstance(each, int) else tuple(each) for each in pad_width]
    if rank == 1 and len(rows) == 2:
        return [(rows[0][0], rows[1][0])]
    if not rank or len(rows) != rank or any(len(row) != 2 for row in rows):
        raise Unsupported(f"pad_width: expected {rank} pairs, found {pad_width}")
    return [(row[0], row[1]) for row in rows]


def _mirrored(
    ctx: ImportContext, data: Expr, axis: int, widths: tuple[int, int], edge: bool
) -> Expr:
    """Continue an axis by its mirror image, again and again where the widths are longer."""
    length = ctx.type(data).shape[axis]
    if not isinstance(length, int) or max(widths) <= length - (not edge):
        pairs = [widths if i == axis else (0, 0) for i in range(ctx.type(data).rank)]
        return relay.nn.mirror_pad(data, pairs, "SYMMETRIC" if edge else "REFLECT")
    places = np.pad(np.arange(length), widths, mode="symmetric" if edge else "reflect")
    return relay.take(data, relay.Constant(places), axis=axis, mode="fast")


def axes_last(ctx: ImportContext, data: Expr, *axes: int) -> Expr:
    """Return `data` with some axes moved behind the others, in the order given."""
    rank = ctx.type(data).rank
    named = [normalize_axis(axis, rank) for axis in axes]
    order = [*(axis for axis in range(rank) if axis not in named), *named]
    return data if order == list(range(rank)) else relay.transpose(data, order)
