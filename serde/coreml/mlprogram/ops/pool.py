"""Pooling over sliding windows, over parts of an image and over all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Literal

import numpy as np

import serde.relay as relay
from serde.core import dataclass, numpy_dtype
from serde.coreml.mlprogram.ops.conv import (
    USUAL,
    Padding,
    to_mil_pads,
    to_relay_padding,
    window_lengths,
)
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Call, Dim, Expr, TensorType, call, is_float, pool_dim, split_padding
from serde.walk.expansion.pool import pool_expansion

Kind = Literal["max", "avg"]


@dataclass(frozen=True, kw_only=True)
class PoolAttributes:
    """Attributes that all of MIL's pools have."""

    kernel_sizes: tuple[int, ...]
    strides: tuple[int, ...] = ()
    pad_type: Padding
    pad: tuple[int, ...] = ()
    ceil_mode: bool = False


@dataclass(frozen=True, kw_only=True)
class RelayPool:
    """Attributes that all of Relay's pools have."""

    pool_size: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    ceil_mode: bool


@dataclass(frozen=True)
class _Window:
    """A window of MIL as Relay has it.

    Attributes:
        attrs: Its attributes, but for padding that rounding up needs.
        past: By how much the last windows end beyond the padding, where lengths are fixed.
        ends: Padding at the ends with which Relay rounds up along open lengths; None of fixed.
    """

    attrs: dict[str, AnyValue]
    past: tuple[int, ...]
    ends: tuple[int, ...] | None = None

    @property
    def rank(self) -> int:
        """How many axes the window has."""
        return len(self.past)

    @property
    def sides(self) -> tuple[list[int], list[int]]:
        """Padding before and after each axis."""
        before, after = split_padding(self.attrs["padding"], self.rank)
        return list(before), list(after)

    def whole(self) -> dict[str, AnyValue]:
        """Return attributes of windows that rounding up makes, where padding adds nothing."""
        if self.ends is None:
            return _extend_padding(self.attrs, self.past)
        return self.attrs | {"padding": (*self.sides[0], *self.ends), "ceil_mode": True}


def _convert_window(ctx: Import, x: Expr, pool: PoolAttributes) -> _Window:
    """Return a window, rounded up as MIL does where lengths or padding tell how."""
    sizes = pool.kernel_sizes
    rank = len(sizes)
    if rank not in USUAL or ctx.type(x).rank != rank + 2:
        raise Unsupported(f"a window of {rank} axes over {ctx.type(x)!r}")
    ones, strides, pad = (1,) * rank, pool.strides or (1,) * rank, pool.pad or (0,) * 2 * rank
    lengths = window_lengths(ctx, x, rank, strides, pool.pad_type)
    sides = to_relay_padding(lengths, sizes, strides, ones, pool.pad_type, pad)
    attrs = {"pool_size": sizes, "strides": strides, "layout": USUAL[rank][0]}
    attrs |= {"padding": sides, "dilation": ones}
    if not pool.ceil_mode or all(stride == 1 for stride in strides):
        return _Window(attrs, (0,) * rank)
    dims = ctx.type(x).shape[2:]
    fixed = [length for length in dims if isinstance(length, int)]
    both = split_padding(sides, rank)
    if len(fixed) == rank:
        return _Window(attrs, _compute_overhang(fixed, sizes, strides, *both))
    return _Window(attrs, (0,) * rank, _compute_end_padding(sizes, strides, *both))


def _compute_end_padding(
    sizes: Sequence[int], strides: Sequence[int], before: Sequence[int], after: Sequence[int]
) -> tuple[int, ...]:
    """Return padding with which the last windows begin within the data or the padding before it.

    A window of `size` begins less than ``stride + after - size`` beyond these if its number is
    rounded up, so less padding leaves out exactly those that do.
    """
    found = []
    for size, stride, first, last in zip(sizes, strides, before, after, strict=True):
        if size >= stride + last:
            found.append(last)
        elif first + last and size >= stride:
            found.append(size - stride)
        else:
            raise Unsupported(
                f"windows of {size} at every {stride} that are rounded up along an open length"
            )
    return tuple(found)


def _compute_overhang(
    lengths: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
) -> tuple[int, ...]:
    """Return by how much the last windows end beyond the padding, where lengths are rounded up.

    None begins beyond the data and the padding before it, as in PyTorch.
    """
    found = []
    for length, size, stride, first, last in zip(
        lengths, sizes, strides, before, after, strict=True
    ):
        count = -(-(length + first + last - size) // stride) + 1
        if (count - 1) * stride >= length + first:
            if not first + last:
                raise Unsupported(f"a window of {size} that begins beyond a length of {length}")
            count -= 1
        found.append(max(0, (count - 1) * stride + size - length - first - last))
    return tuple(found)


def _extend_padding(attrs: dict[str, AnyValue], past: Sequence[int]) -> dict[str, AnyValue]:
    """Return the attributes of a window with more padding at the ends."""
    before, after = split_padding(attrs["padding"], len(past))
    ends = [last + more for last, more in zip(after, past, strict=True)]
    return attrs | {"padding": (*before, *ends)}


@OPS.imports("max_pool")
def import_max_pool(ctx: Import, x: Expr, *, pool: PoolAttributes) -> Expr:
    window = _convert_window(ctx, x, pool)
    return call(f"nn.max_pool{window.rank}d", x, **window.whole())


@OPS.imports("avg_pool")
def import_avg_pool(
    ctx: Import, x: Expr, *, pool: PoolAttributes, exclude_padding_from_average: bool = False
) -> Expr:
    """Padding counts, but what windows reach beyond it does not, as in PyTorch."""
    window = _convert_window(ctx, x, pool)
    rank, attrs, include = window.rank, window.whole(), not exclude_padding_from_average
    if include and (window.ends is not None or any(window.past)):
        before, after = window.sides
        if window.ends is not None and list(window.ends) != after:
            raise Unsupported("an average that counts padding and is rounded up along open lengths")
        zero = relay.Constant(np.zeros((), numpy_dtype(ctx.type(x).dtype)))
        if any((*before, *after)):
            x = relay.nn.pad(x, [(0, 0), (0, 0), *zip(before, after, strict=True)], zero)
        attrs, include = attrs | {"padding": (*(0,) * rank, *window.past)}, False
    return call(f"nn.avg_pool{rank}d", x, count_include_pad=include, **attrs)


@OPS.imports("l2_pool")
def import_l2_pool(ctx: Import, x: Expr, *, pool: PoolAttributes) -> Expr:
    window = _convert_window(ctx, x, pool)
    return call("serde.lp_pool", x, p=2, **window.whole())


def _fits(node: Call) -> bool:
    """Whether MIL has a window: of floats, without gaps, rounding up as MIL does if at all."""
    type_, attrs = node.args[0].type, node.attrs
    if not isinstance(type_, TensorType) or not _is_window(type_, attrs):
        return False
    # The mean of a window of padding alone is 0 in Relay and no number in MIL.
    return attrs.get("count_include_pad", True) or _meets_data(type_.shape[2:], attrs)


def _is_window(type_: TensorType, attrs: Mapping[str, AnyValue]) -> bool:
    return is_float(type_.dtype) and all(each == 1 for each in attrs["dilation"])


def _meets_data(lengths: Sequence[Dim], attrs: Mapping[str, AnyValue]) -> bool:
    """Whether no window can lie in the padding alone, or beyond it by rounding up."""
    before, after = split_padding(attrs["padding"], len(lengths))
    for index, length in enumerate(lengths):
        size, stride = attrs["pool_size"][index], attrs["strides"][index]
        first, last, up = before[index], after[index], attrs["ceil_mode"]
        count = pool_dim(length, size, stride, first + last, 1, ceil_mode=up)
        if isinstance(length, int) and isinstance(count, int):
            ends_outside = (count - 1) * stride >= length + first
        else:
            ends_outside = last + (stride - 1 if up else 0) >= size
        if first >= size or ends_outside:
            return False
    return True


def _compute_missing_padding(
    lengths: Sequence[Dim], attrs: Mapping[str, AnyValue]
) -> tuple[int, ...] | None:
    """Return how far windows that round up end beyond the padding; None where it is not known."""
    before, after = split_padding(attrs["padding"], len(lengths))
    found = []
    for index, length in enumerate(lengths):
        if not isinstance(length, int):
            return None
        size, stride = attrs["pool_size"][index], attrs["strides"][index]
        sides = before[index] + after[index]
        count = pool_dim(length, size, stride, sides, 1, ceil_mode=True)
        if not isinstance(count, int):
            return None
        found.append(max(0, (count - 1) * stride + size - length - sides))
    return tuple(found)


def _convert_rounding(
    ctx: Export, data: Value, attrs: dict[str, AnyValue], *, counts_padding: bool = False
) -> dict[str, AnyValue]:
    """Return the padding of a window and whether lengths are rounded up.

    Where they are, and are known, the windows get as much more padding at the end as they reach
    beyond it. Of open lengths MIL rounds up itself where it means the same: with equal padding
    at both ends that no mean counts, and no window that it drops. Otherwise a stride less one
    more at the end makes the quotient, rounded down, the one that was rounded up.
    """
    rank = len(attrs["pool_size"])
    if not (attrs["ceil_mode"] and any(each != 1 for each in attrs["strides"])):
        return {"pad": to_mil_pads(attrs["padding"], rank), "ceil_mode": False}
    spare = _compute_missing_padding(ctx.type(data).shape[2:], attrs)
    before, after = split_padding(attrs["padding"], rank)
    own = rank <= 2 and tuple(before) == tuple(after) and not counts_padding
    if spare is None and own and _meets_data(ctx.type(data).shape[2:], attrs):
        return {"pad": to_mil_pads(attrs["padding"], rank), "ceil_mode": True}
    spare = spare or tuple(stride - 1 for stride in attrs["strides"])
    return {"pad": to_mil_pads(_extend_padding(attrs, spare)["padding"], rank), "ceil_mode": False}


def export_max_pool(ctx: Export, data: Value, *, pool: RelayPool) -> Value:
    return _emit_pool(ctx, "max_pool", data, vars(pool))


def export_avg_pool(ctx: Export, data: Value, *, pool: RelayPool, count_include_pad: bool) -> Value:
    return _emit_pool(
        ctx,
        "avg_pool",
        data,
        vars(pool),
        counts_padding=count_include_pad,
        exclude_padding_from_average=not count_include_pad,
    )


def _emit_pool(
    ctx: Export,
    op: str,
    data: Value,
    attrs: dict[str, AnyValue],
    *,
    counts_padding: bool = False,
    **options: bool,
) -> Value:
    return ctx.emit(
        op, x=data, kernel_sizes=attrs["pool_size"], strides=attrs["strides"], pad_type="custom",
        **_convert_rounding(ctx, data, attrs, counts_padding=counts_padding), **options,
    )  # fmt: skip


def _compute_dtype(dtype: str, kind: str) -> str:
    """Return the dtype in which windows are combined, which MIL has arithmetic of."""
    if is_float(dtype):
        return dtype if kind == "max" or dtype == "float64" else "float32"
    if dtype in ("bool", "int8", "uint8", "int16", "uint16"):
        return "int32"
    return dtype


for _ndim in (1, 2, 3):
    OPS.exports(f"nn.max_pool{_ndim}d", when=_fits)(export_max_pool)
    OPS.exports(f"nn.avg_pool{_ndim}d", when=_fits)(export_avg_pool)
    OPS.expands(f"nn.max_pool{_ndim}d")(pool_expansion("max", _compute_dtype))
    OPS.expands(f"nn.avg_pool{_ndim}d")(pool_expansion("avg", _compute_dtype))


def _fits_euclidean(node: Call) -> bool:
    """Whether MIL has a window of a norm: the Euclidean one, along at most two axes."""
    type_, rank = node.args[0].type, len(node.attrs["pool_size"])
    whole = {
        name: value * rank if isinstance(value, tuple) and len(value) == 1 else value
        for name, value in node.attrs.items()
    }
    return (
        isinstance(type_, TensorType)
        and node.attrs["p"] == 2
        and rank <= 2
        and _is_window(type_, whole)
    )


@OPS.exports("serde.lp_pool", when=_fits_euclidean, ignored=("layout",))
def export_lp_pool(ctx: Export, data: Value, *, p: int, pool: RelayPool) -> Value:
    """One stride serves all axes."""
    strides = pool.strides * len(pool.pool_size) if len(pool.strides) == 1 else pool.strides
    return _emit_pool(ctx, "l2_pool", data, vars(pool) | {"strides": strides})
