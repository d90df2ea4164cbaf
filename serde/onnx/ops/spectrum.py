"""The discrete Fourier transform, of a signal and of its frames."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.context import ImportContext as ImportCtx
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.expr import Call, Expr
from serde.relay.registry import call
from serde.relay.types import TensorType


def _is_behind_first(node: Call) -> bool:
    """ONNX never transforms the first axis."""
    data = node.args[0].type
    return isinstance(data, TensorType) and node.attrs["axis"] % data.rank > 0


@OPS.exports("serde.dft", since=17, when=_is_behind_first)
def export_spectrum(
    ctx: Ctx, x: Value, *, axis: int, dft_length: int | None, inverse: bool, onesided: bool
) -> Value:
    """From 20 on the axis is an operand."""
    length = None if dft_length is None else ctx.const(dft_length, np.int64)
    flags = {"inverse": int(inverse) or None, "onesided": int(onesided) or None}
    place = axis % ctx.type(x).rank
    if ctx.version >= 20:
        return ctx.emit("DFT", x, length, ctx.const(place, np.int64), **flags)
    return ctx.emit("DFT", x, length, axis=place, **flags)


def _spectrum(
    ctx: ImportCtx, x: Expr, axis: int, length: Expr | None, inverse: bool, onesided: bool
) -> Expr:
    """Return a transform; that of one side back to real numbers has the other side added first."""
    wanted = None if length is None else int(ctx.constant(length).item())
    if not (inverse and onesided):
        return call(
            "serde.dft", x, axis=axis, dft_length=wanted, inverse=inverse, onesided=onesided
        )
    rank = ctx.type(x).rank
    (given,) = ctx.static_lengths(x, [axis])
    full = 2 * (given - 1) if wanted is None else wanted
    side = full // 2 + 1
    if side > given:
        raise Unsupported(f"{given} frequencies of a signal of {full}")
    mirrored = np.arange(side, full)
    order = np.concatenate([np.arange(side), full - mirrored])
    signs = np.ones((full, 2))
    signs[mirrored, 1] = -1
    shape = [full if each == axis % rank else 1 for each in range(rank - 1)]
    both = relay.take(x, relay.Constant(order), axis=axis % rank, mode="fast")
    factors = relay.const(signs.reshape(*shape, 2), ctx.type(x).dtype)
    found = call("serde.dft", relay.multiply(both, factors), axis=axis, inverse=True)
    return relay.take(found, relay.Constant(np.array([0])), axis=rank - 1, mode="fast")


@OPS.imports("DFT", since=20)
def import_dft(
    ctx: ImportCtx,
    x: Expr,
    dft_length: Expr | None = None,
    axis: Expr | None = None,
    *,
    inverse: bool = False,
    onesided: bool = False,
) -> Expr:
    """Where the axis is computed, all of them are transformed and one is chosen."""
    if axis is None or ctx.is_constant(axis) or onesided or dft_length is not None:
        place = -2 if axis is None else int(ctx.constant(axis).item())
        return _spectrum(ctx, x, place, dft_length, inverse, onesided)
    rank = ctx.type(x).rank
    number = relay.reshape(relay.cast(axis, "int64"), newshape=())
    wanted = relay.floor_mod(number, relay.Constant(np.int64(rank)))
    chosen = _spectrum(ctx, x, 0, None, inverse, False)
    for each in range(1, rank - 1):
        found = _spectrum(ctx, x, each, None, inverse, False)
        chosen = relay.where(relay.equal(wanted, relay.Constant(np.int64(each))), found, chosen)
    return chosen


@OPS.imports("DFT", since=17)
def import_dft_v17(
    ctx: ImportCtx,
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
    ctx: ImportCtx,
    signal: Expr,
    frame_step: Expr,
    window: Expr | None = None,
    frame_length: Expr | None = None,
    *,
    onesided: bool = True,
) -> Expr:
    """The transform of each frame, looked up by constant places."""
    (length,) = ctx.static_lengths(signal, [1])
    if frame_length is not None:
        size = int(ctx.constant(frame_length).item())
    else:
        size = length if window is None else ctx.static_shape(window)[0]
    step = int(ctx.constant(frame_step).item())
    starts = np.arange(1 + (length - size) // step) * step
    places = relay.Constant((starts[:, None] + np.arange(size)).astype(np.int64))
    frames = relay.take(signal, places, axis=1, mode="fast")
    if window is not None:
        frames = relay.multiply(frames, relay.expand_dims(window, axis=1))
    return call("serde.dft", frames, axis=2, onesided=onesided)
