"""Padding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, call, is_float
from serde.torch.ops.index.slicing import cut
from serde.torch.ops.shape.lengths import add_lengths, restore, subtract_lengths
from serde.torch.ops.table import OPS, Export, Import, Scalar, SymInt, Value
from serde.torch.ops.written import cast, integers

_MODES: Final = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
"""Relay's modes by PyTorch's names."""
_WRITTEN: Final = {"edge": "replicate", "reflect": "reflect"}
"""PyTorch's modes by Relay's names."""

Pairs = list[tuple[SymInt, SymInt]]
Widths = tuple[tuple[int, int], ...]


def _pairs(ctx: Import, x: Expr, widths: Sequence[SymInt]) -> Pairs:
    """Return the widths before and behind each axis; they come from the last axis on."""
    count = len(widths) // 2
    rank = ctx.type(x).rank
    if len(widths) % 2 or count > rank:
        raise Unsupported(f"{len(widths)} widths to pad a tensor of rank {rank} with")
    found: Pairs = [(0, 0)] * (rank - count)
    return found + [(widths[2 * at], widths[2 * at + 1]) for at in reversed(range(count))]


def _cut_negative(ctx: Import, x: Expr, pairs: Pairs) -> Expr:
    """Return `x` without what negative widths take away."""
    for axis, (before, behind) in enumerate(pairs):
        start = -before if type(before) is int and before < 0 else 0
        end = behind if type(behind) is int and behind < 0 else None
        if start or end is not None:
            x = cut(ctx, x, axis, start, end)
    return x


def _pad(ctx: Import, x: Expr, pairs: Pairs, mode: str, value: Scalar = 0) -> Expr:
    """What is taken away at one side may be repeated at the other first."""
    more = [(_positive(before), _positive(behind)) for before, behind in pairs]
    if mode == "circular":
        return _wrap(ctx, _cut_negative(ctx, x, pairs), more)
    return _cut_negative(ctx, _extend(ctx, x, more, mode, value), pairs)


def _positive(width: SymInt) -> SymInt:
    return width if isinstance(width, Expr) else max(width, 0)


def _extend(ctx: Import, x: Expr, pairs: Pairs, mode: str, value: Scalar) -> Expr:
    """Return `x` with elements before and behind each axis."""
    if all(type(each) is int and each == 0 for pair in pairs for each in pair):
        return x
    filler = ctx.scalar(value, ctx.dtype(x))
    known = [[ctx.dim(each) for each in pair] for pair in pairs]
    fixed = [tuple(each for each in pair if isinstance(each, int)) for pair in known]
    if all(len(pair) == 2 for pair in fixed):
        return relay.nn.pad(x, fixed, filler, _MODES[mode])
    flat = ctx.shape_vector([each for pair in pairs for each in pair])
    widths = ctx.fold(relay.reshape(flat, newshape=(len(pairs), 2)))
    found = call("dyn.nn.pad", x, widths, filler, pad_mode=_MODES[mode])
    shape = zip(ctx.type(x).shape, known, strict=True)
    return restore(ctx, found, [dim + before + behind for dim, (before, behind) in shape])


def _wrap(ctx: Import, x: Expr, pairs: Pairs) -> Expr:
    """Return `x` continued by itself, axis by axis."""
    for axis, (before, behind) in enumerate(pairs):
        parts = []
        if type(before) is not int or before:
            start = subtract_lengths(ctx, ctx.size(x, axis), before)
            parts.append(cut(ctx, x, axis, start))
        parts.append(x)
        if type(behind) is not int or behind:
            parts.append(cut(ctx, x, axis, 0, behind))
        if len(parts) > 1:
            dims = list(ctx.type(x).shape)
            whole = add_lengths(ctx, add_lengths(ctx, before, ctx.size(x, axis)), behind)
            dims[axis] = ctx.dim(whole)
            x = restore(ctx, relay.concatenate(parts, axis=axis), dims)
    return x


@OPS.imports("aten::pad")
def import_pad(
    ctx: Import,
    self: Expr,
    *,
    pad: tuple[SymInt, ...],
    mode: str = "constant",
    value: Scalar | None = None,
) -> Expr:
    if mode != "circular" and mode not in _MODES:
        raise Unsupported(f"mode {mode!r}")
    return _pad(ctx, self, _pairs(ctx, self, pad), mode, 0 if value is None else value)


@OPS.imports("aten::constant_pad_nd")
def import_constant_pad_nd(
    ctx: Import, self: Expr, *, pad: tuple[SymInt, ...], value: Scalar = 0
) -> Expr:
    return import_pad(ctx, self, pad=pad, value=value)


OPS.imports("aten::_pad_circular")(partial(import_pad, mode="circular"))
for _name, _mode in {"reflection": "reflect", "replication": "replicate"}.items():
    OPS.imports(*(f"aten::{_name}_pad{rank}d" for rank in (1, 2, 3)), renamed={"padding": "pad"})(
        partial(import_pad, mode=_mode)
    )


def flat_widths(widths: Sequence[tuple[int, int]]) -> list[int]:
    """Return widths as ``F.pad`` takes them: from the last axis on, as far as there are any."""
    found = [width for sides in reversed(widths) for width in sides]
    while len(found) > 2 and found[-2:] == [0, 0]:
        del found[-2:]
    return found


@OPS.exports("nn.pad")
def export_pad(
    ctx: Export, data: Value, pad_val: Value, *, pad_width: Widths, pad_mode: str
) -> Value:
    if not any(width for sides in pad_width for width in sides):
        return data
    if pad_mode != "constant":
        return _continue(ctx, data, pad_width, pad_mode)
    value, dtype = ctx.scalar(pad_val), ctx.type(data).dtype
    if value is None:
        filler = cast(ctx, pad_val, dtype)
        return ctx.call(ctx.helper("pad_with"), data, flat_widths(pad_width), filler)
    if not is_float(dtype):
        value = int(value)
    if not value:
        return ctx.call("F.pad", data, flat_widths(pad_width))
    if float(value) != value and value == value:
        raise Unsupported(f"padding by {value}, which is no float64")
    return ctx.call("F.pad", data, flat_widths(pad_width), value=float(value))


def _continue(ctx: Export, data: Value, widths: Widths, mode: str) -> Value:
    """PyTorch continues the last axes of floats behind those of samples and channels."""
    type_ = ctx.type(data)
    flat = flat_widths(widths)
    spatial = type_.rank - 2
    behind = 1 <= spatial <= 3 and len(flat) <= 2 * spatial
    if mode in _WRITTEN and is_float(type_.dtype) and behind:
        flat += [0] * (2 * spatial - len(flat))
        return ctx.call("F.pad", data, flat, mode=_WRITTEN[mode])
    for axis, (before, after) in enumerate(widths):
        if before or after:
            data = ctx.call(ctx.helper("continue_axis"), data, axis, before, after, mode)
    return data


@OPS.exports("nn.mirror_pad")
def export_mirror_pad(ctx: Export, data: Value, *, mode: str, pad_width: Widths) -> Value:
    if not any(width for sides in pad_width for width in sides):
        return data
    return _continue(ctx, data, pad_width, mode.lower())


@OPS.exports("dyn.nn.pad")
def export_dyn_pad(
    ctx: Export, data: Value, pad_width: Value, pad_val: Value, *, pad_mode: str
) -> Value:
    if pad_mode == "constant":
        widths = integers(ctx, ctx.method(ctx.method(pad_width, "flip", 0), "flatten"))
        filler = cast(ctx, pad_val, ctx.type(data).dtype)
        return ctx.call(ctx.helper("pad_with"), data, widths, filler)
    return ctx.call(ctx.helper("continue_axes"), data, pad_width, pad_mode)
