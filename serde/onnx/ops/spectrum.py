"""The discrete Fourier transform, of a signal and of its frames."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Call, Expr, If
from serde.relay.ir.infer import infer_if
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType


def _is_behind_first(node: Call) -> bool:
    """ONNX never transforms the first axis."""
    data = node.args[0].type
    return isinstance(data, TensorType) and node.attrs["axis"] % data.rank > 0


@OPS.exports("serde.dft", since=17, when=_is_behind_first)
def export_spectrum(
    ctx: ExportContext,
    x: Value,
    *,
    axis: int,
    dft_length: int | None,
    inverse: bool,
    onesided: bool,
) -> Value:
    """From 20 on the axis is an operand."""
    length = None if dft_length is None else ctx.const(dft_length, np.int64)
    flags = {"inverse": int(inverse) or None, "onesided": int(onesided) or None}
    place = axis % ctx.type(x).rank
    if ctx.version >= 20:
        return ctx.emit("DFT", x, length, ctx.const(place, np.int64), **flags)
    return ctx.emit("DFT", x, length, axis=place, **flags)


def _spectrum(
    ctx: ImportContext, x: Expr, axis: int, length: Expr | None, inverse: bool, onesided: bool
) -> Expr:
    """Return a transform; that of one side back to real numbers has the other side added first."""
    wanted = None if length is None or not ctx.is_constant(length) else ctx.ints(length)[0]
    if inverse and onesided:
        return _real_signal(ctx, x, axis, length, wanted)
    if length is not None and wanted is None:
        x = _cut_or_padded(ctx, x, axis, _scalar(length))
    return call("serde.dft", x, axis=axis, dft_length=wanted, inverse=inverse, onesided=onesided)


def _real_signal(
    ctx: ImportContext, x: Expr, axis: int, length: Expr | None, wanted: int | None
) -> Expr:
    """Return the real signal of the frequencies that are not told by others."""
    rank = ctx.type(x).rank
    given = ctx.type(x).shape[axis]
    if wanted is None and length is None and isinstance(given, int):
        wanted = 2 * (given - 1)
    if wanted is not None and isinstance(given, int) and wanted // 2 + 1 > given:
        raise Unsupported(f"{given} frequencies of a signal of {wanted}")
    if wanted is not None:
        order, signs = _mirrored(wanted)
    else:
        full = _even_length(ctx, x, axis) if length is None else _scalar(length)
        order, signs = _mirrored_at_run_time(full)
    both = relay.take(x, order, axis=axis % rank, mode="fast")
    shape = [-1 if each == axis % rank else 1 for each in range(rank - 1)]
    factors = ctx.fold(relay.cast(relay.reshape(signs, [*shape, 2]), ctx.type(x).dtype))
    found = call("serde.dft", relay.multiply(both, factors), axis=axis, inverse=True)
    return relay.take(found, relay.Constant(np.array([0])), axis=rank - 1, mode="fast")


def _mirrored(full: int) -> tuple[Expr, Expr]:
    """Return where each frequency is found on one side, and the signs of its two parts."""
    order, signs = np.arange(full), np.ones((full, 2))
    mirrored = order[full // 2 + 1 :].copy()
    order[mirrored] = full - mirrored
    signs[mirrored, 1] = -1
    return relay.Constant(order), relay.Constant(signs)


def _mirrored_at_run_time(full: Expr) -> tuple[Expr, Expr]:
    place = call("arange", _int(0), full, _int(1), dtype="int64")
    side = relay.add(relay.divide(full, _int(2)), _int(1))
    mirrored = relay.greater_equal(place, side)
    ones = relay.ones_like(place)
    signs = relay.stack([ones, relay.where(mirrored, relay.negative(ones), ones)], axis=1)
    return relay.where(mirrored, relay.subtract(full, place), place), signs


def _int(value: int) -> Expr:
    return relay.Constant(np.array(value, np.int64))


def _scalar(x: Expr) -> Expr:
    return relay.reshape(relay.cast(x, "int64"), newshape=())


def _length(ctx: ImportContext, x: Expr, axis: int) -> Expr:
    """Return the length of an axis as a scalar of int64: a constant where it is known."""
    place = _int(axis % ctx.type(x).rank)
    return ctx.fold(relay.take(relay.shape_of(x, "int64"), place, axis=0, mode="fast"))


def _even_length(ctx: ImportContext, x: Expr, axis: int) -> Expr:
    return relay.multiply(relay.subtract(_length(ctx, x, axis), _int(1)), _int(2))


def _cut_or_padded(ctx: ImportContext, x: Expr, axis: int, length: Expr) -> Expr:
    """Return `x` with the first elements of an axis, as many as asked for, zeros after the last."""
    rank = ctx.type(x).rank
    place = call("arange", _int(0), length, _int(1), dtype="int64")
    shape = [-1 if each == axis % rank else 1 for each in range(rank)]
    inside = relay.reshape(relay.less(place, _length(ctx, x, axis)), shape)
    found = relay.take(x, place, axis=axis % rank, mode="clip")
    return relay.where(inside, found, relay.const(0, ctx.type(x).dtype))


@OPS.imports("DFT", since=20)
def import_dft(
    ctx: ImportContext,
    x: Expr,
    dft_length: Expr | None = None,
    axis: Expr | None = None,
    *,
    inverse: bool = False,
    onesided: bool = False,
) -> Expr:
    """Where the axis is computed, it decides between the transforms along all of them."""
    if axis is None or ctx.is_constant(axis):
        place = -2 if axis is None else ctx.ints(axis)[0]
        return _spectrum(ctx, x, place, dft_length, inverse, onesided)
    rank = ctx.type(x).rank
    wanted = relay.floor_mod(_scalar(axis), _int(rank))
    chosen = _spectrum(ctx, x, rank - 2, dft_length, inverse, onesided)
    for each in range(rank - 2):
        found = _spectrum(ctx, x, each, dft_length, inverse, onesided)
        chosen = If(relay.equal(wanted, _int(each)), found, chosen)
        chosen.type = infer_if(chosen)
    return chosen


@OPS.imports("DFT", since=17)
def import_dft_v17(
    ctx: ImportContext,
    x: Expr,
    dft_length: Expr | None = None,
    *,
    axis: int = 1,
    inverse: bool = False,
    onesided: bool = False,
) -> Expr:
    return _spectrum(ctx, x, axis, dft_length, inverse, onesided)


@OPS.imports("STFT", since=17)
def import_stft(
    ctx: ImportContext,
    signal: Expr,
    frame_step: Expr,
    window: Expr | None = None,
    frame_length: Expr | None = None,
    *,
    onesided: bool = True,
) -> Expr:
    """The transform of each frame; frames are looked up, by constant places where these are."""
    length = _length(ctx, signal, 1)
    size, step = length, ctx.fold(_scalar(frame_step))
    if frame_length is not None:
        size = ctx.fold(_scalar(frame_length))
    elif window is not None:
        size = _length(ctx, window, 0)
    places = _frames(ctx, length, size, step)
    frames = relay.take(signal, places, axis=1, mode="fast")
    if window is not None:
        frames = relay.multiply(frames, relay.expand_dims(window, axis=1))
    return call("serde.dft", frames, axis=2, onesided=onesided)


def _frames(ctx: ImportContext, length: Expr, size: Expr, step: Expr) -> Expr:
    """Return the place of each element of each frame, one row a frame."""
    known = [ctx.known(each) for each in (length, size, step)]
    if not any(each is None for each in known):
        whole, wide, apart = (int(each.item()) for each in known if each is not None)
        starts = np.arange(1 + (whole - wide) // apart) * apart
        return relay.Constant((starts[:, None] + np.arange(wide)).astype(np.int64))
    count = relay.add(relay.divide(relay.subtract(length, size), step), _int(1))
    frame = call("arange", _int(0), count, _int(1), dtype="int64")
    within = call("arange", _int(0), size, _int(1), dtype="int64")
    starts_of = relay.expand_dims(relay.multiply(frame, step), axis=1)
    return relay.add(starts_of, relay.expand_dims(within, axis=0))
