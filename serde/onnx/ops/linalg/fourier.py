"""Discrete Fourier transforms, the windows that shape a signal, and mel weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import onnx

import serde.relay as relay
from serde.core.allocation import arange, ones, repeat
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import const_int64
from serde.onnx.ops.shape.create import build_arange
from serde.onnx.ops.shape.reshape import as_scalar, squeeze, unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, If, TensorType, call, infer_if
from serde.relay.lowering.lengths import length_of


@OPS.exports("dft", since=17)
def export_dft(ctx: Export, re: Value, im: Value, *, inverse: bool) -> tuple[Value, Value]:
    """ONNX has both parts on a last axis, and never transforms the first one."""
    rank = ctx.type(re).rank
    leading = [0] if rank == 1 else []
    parts = [unsqueeze(ctx, part, [*leading, rank + len(leading)]) for part in (re, im)]
    axis = rank - 1 + len(leading)
    signal = ctx.emit("Concat", *parts, axis=axis + 1)
    if ctx.version >= 20:
        result = ctx.emit("DFT", signal, None, ctx.const(axis, np.int64), inverse=int(inverse))
    else:
        result = ctx.emit("DFT", signal, axis=axis, inverse=int(inverse))
    found = [ctx.emit("Gather", result, ctx.const(i, np.int64), axis=axis + 1) for i in (0, 1)]
    real, imaginary = (squeeze(ctx, part, [0]) if leading else part for part in found)
    return real, imaginary


@OPS.imports("STFT", since=17)
def import_stft(
    ctx: Import,
    signal: Expr,
    frame_step: Expr,
    window: Expr | None = None,
    frame_length: Expr | None = None,
    *,
    onesided: bool = True,
) -> Expr:
    """The transform of each frame: ``DFT(signal[i * step + n] * window[n])``."""
    length = length_of(signal, 1)
    size, step = length, ctx.fold(_to_scalar(frame_step))
    if frame_length is not None:
        size = ctx.fold(_to_scalar(frame_length))
    elif window is not None:
        size = length_of(window, 0)
    indices = _frame_indices(ctx, length, size, step)
    frames = relay.take(signal, indices, axis=1, mode="fast")
    if window is not None:
        frames = relay.multiply(frames, relay.expand_dims(window, axis=1))
    return call("serde.dft", frames, axis=2, onesided=onesided)


def _is_behind_first(node: Call) -> bool:
    """ONNX never transforms the first axis."""
    data = node.args[0].type
    return isinstance(data, TensorType) and node.attrs["axis"] % data.rank > 0


@OPS.exports("serde.dft", since=17, when=_is_behind_first)
def export_serde_dft(
    ctx: Export, x: Value, *, axis: int, dft_length: int | None, inverse: bool, onesided: bool
) -> Value:
    """From 20 on the axis is an operand."""
    length = None if dft_length is None else ctx.const(dft_length, np.int64)
    flags = {"inverse": int(inverse) or None, "onesided": int(onesided) or None}
    position = axis % ctx.type(x).rank
    if ctx.version >= 20:
        return ctx.emit("DFT", x, length, ctx.const(position, np.int64), **flags)
    return ctx.emit("DFT", x, length, axis=position, **flags)


@OPS.imports("DFT", since=20)
def import_dft(
    ctx: Import,
    x: Expr,
    dft_length: Expr | None = None,
    axis: Expr | None = None,
    *,
    inverse: bool = False,
    onesided: bool = False,
) -> Expr:
    """Where the axis is computed, it decides between the transforms along all of them."""
    if axis is None or ctx.is_constant(axis):
        position = -2 if axis is None else ctx.item(axis)
        return _build_dft(ctx, x, position, dft_length, inverse, onesided)
    rank = ctx.type(x).rank
    wanted = relay.floor_mod(_to_scalar(axis), const_int64(rank))
    chosen = _build_dft(ctx, x, rank - 2, dft_length, inverse, onesided)
    for each in range(rank - 2):
        found = _build_dft(ctx, x, each, dft_length, inverse, onesided)
        chosen = If(relay.equal(wanted, const_int64(each)), found, chosen)
        chosen.type = infer_if(chosen)
    return chosen


@OPS.imports("DFT", since=17)
def import_dft_v17(
    ctx: Import,
    x: Expr,
    dft_length: Expr | None = None,
    *,
    axis: int = 1,
    inverse: bool = False,
    onesided: bool = False,
) -> Expr:
    return _build_dft(ctx, x, axis, dft_length, inverse, onesided)


def _build_dft(
    ctx: Import, x: Expr, axis: int, length: Expr | None, inverse: bool, onesided: bool
) -> Expr:
    """Return a transform; that of one side back to real numbers has the other side added first."""
    wanted = None if length is None or not ctx.is_constant(length) else ctx.item(length)
    if inverse and onesided:
        return _invert_onesided(ctx, x, axis, length, wanted)
    if length is not None and wanted is None:
        x = _cut_or_pad(ctx, x, axis, _to_scalar(length))
    return call("serde.dft", x, axis=axis, dft_length=wanted, inverse=inverse, onesided=onesided)


def _invert_onesided(
    ctx: Import, x: Expr, axis: int, length: Expr | None, wanted: int | None
) -> Expr:
    """Return the real signal of a one-sided spectrum: ``X[N - k] = conj(X[k])``."""
    rank = ctx.type(x).rank
    given = ctx.dim_at(x, axis)
    if wanted is None and length is None and isinstance(given, int):
        wanted = 2 * (given - 1)
    if wanted is not None and isinstance(given, int) and wanted // 2 + 1 > given:
        raise Unsupported(f"{given} frequencies of a signal of {wanted}")
    if wanted is not None:
        order, signs = _mirror(wanted)
    else:
        full = _even_length(ctx, x, axis) if length is None else _to_scalar(length)
        order, signs = _mirror_at_run_time(full)
    both = relay.take(x, order, axis=axis % rank, mode="fast")
    shape = [-1 if each == axis % rank else 1 for each in range(rank - 1)]
    factors = ctx.fold(relay.cast(relay.reshape(signs, [*shape, 2]), ctx.type(x).dtype))
    found = call("serde.dft", relay.multiply(both, factors), axis=axis, inverse=True)
    return relay.take(found, relay.Constant(np.array([0])), axis=rank - 1, mode="fast")


def _mirror(full: int) -> tuple[Expr, Expr]:
    """Return where each frequency is found on one side, and the signs of its two parts."""
    order, signs = arange(full), ones((full, 2))
    mirrored = order[full // 2 + 1 :].copy()
    order[mirrored] = full - mirrored
    signs[mirrored, 1] = -1
    return relay.Constant(order), relay.Constant(signs)


def _mirror_at_run_time(full: Expr) -> tuple[Expr, Expr]:
    position = build_arange(full)
    side = relay.add(relay.divide(full, const_int64(2)), const_int64(1))
    mirrored = relay.greater_equal(position, side)
    ones = relay.ones_like(position)
    signs = relay.stack([ones, relay.where(mirrored, relay.negative(ones), ones)], axis=1)
    return relay.where(mirrored, relay.subtract(full, position), position), signs


def _to_scalar(x: Expr) -> Expr:
    return relay.reshape(relay.cast(x, "int64"), newshape=())


def _even_length(ctx: Import, x: Expr, axis: int) -> Expr:
    return relay.multiply(relay.subtract(length_of(x, axis), const_int64(1)), const_int64(2))


def _cut_or_pad(ctx: Import, x: Expr, axis: int, length: Expr) -> Expr:
    """Return `x` with the first elements of an axis, as many as asked for, zeros after the last."""
    rank = ctx.type(x).rank
    position = build_arange(length)
    shape = [-1 if each == axis % rank else 1 for each in range(rank)]
    inside = relay.reshape(relay.less(position, length_of(x, axis)), shape)
    found = relay.take(x, position, axis=axis % rank, mode="clip")
    return relay.where(inside, found, relay.const(0, ctx.type(x).dtype))


def _frame_indices(ctx: Import, length: Expr, size: Expr, step: Expr) -> Expr:
    """Return the index of each element of each frame, one row a frame."""
    known = [ctx.known(each) for each in (length, size, step)]
    if not any(each is None for each in known):
        total, width, hop = (int(each.item()) for each in known if each is not None)
        if not 0 < width <= total or hop < 1:
            raise Unsupported(f"frames of {width} every {hop} of {total} elements")
        starts = arange(1 + (total - width) // hop) * hop
        indices = repeat(starts[:, None], width, axis=1)
        return relay.Constant(indices + arange(width))
    count = relay.add(relay.divide(relay.subtract(length, size), step), const_int64(1))
    frame = build_arange(count)
    within = build_arange(size)
    starts_of = relay.expand_dims(relay.multiply(frame, step), axis=1)
    return relay.add(starts_of, relay.expand_dims(within, axis=0))


def _float64(value: float) -> Expr:
    return relay.Constant(np.float64(value))


def _cast_scalar(ctx: Import, x: Expr, dtype: str) -> Expr:
    """Return a number as a scalar of `dtype`."""
    return relay.cast(as_scalar(ctx, x), dtype)


def _arange_float64(ctx: Import, count: Expr) -> Expr:
    """Return 0, 1, ... below a number of int64, as float64."""
    steps = (relay.Constant(np.int64(0)), ctx.fold(count), relay.Constant(np.int64(1)))
    return relay.cast(call("arange", *steps, dtype="int64"), "float64")


def _import_window(
    ctx: Import,
    size: Expr,
    *,
    terms: Sequence[float],
    output_datatype: int = onnx.TensorProto.FLOAT,
    periodic: bool = True,
) -> Expr:
    """Read ``sum(terms[k] * cos(2 * pi * k * n / N))``."""
    count = _cast_scalar(ctx, size, "int64")
    period = relay.cast(count, "float64")
    if not periodic:
        period = relay.subtract(period, _float64(1))
    part = relay.divide(_arange_float64(ctx, count), period)
    total = relay.full_like(part, _float64(terms[0]))
    for number, factor in enumerate(terms[1:], 1):
        wave = relay.cos(relay.multiply(part, _float64(2 * math.pi * number)))
        total = relay.add(total, relay.multiply(wave, _float64(factor)))
    return relay.cast(total, ctx.dtype(output_datatype))


OPS.imports("HannWindow", since=17)(partial(_import_window, terms=(0.5, -0.5)))


OPS.imports("HammingWindow", since=17)(partial(_import_window, terms=(25 / 46, -21 / 46)))


OPS.imports("BlackmanWindow", since=17)(partial(_import_window, terms=(0.42, -0.5, 0.08)))


MEL, BREAK = 2595.0, 700.0
"""The mel scale: so many mels a power of ten of 1 + frequency / 700 Hz."""


def _to_mels(hertz: Expr) -> Expr:
    return relay.multiply(
        relay.log10(relay.add(relay.divide(hertz, _float64(BREAK)), _float64(1))), _float64(MEL)
    )


@OPS.imports("MelWeightMatrix", since=17)
def import_mel_weight_matrix(
    ctx: Import, num_mel_bins: Expr, dft_length: Expr, sample_rate: Expr, lower_edge_hertz: Expr,
    upper_edge_hertz: Expr,
    *, output_datatype: int = onnx.TensorProto.FLOAT,
) -> Expr:  # fmt: skip
    """Triangles over the bins of a spectrum, each from the middle of one to that of the next."""
    bins, length = (_cast_scalar(ctx, each, "int64") for each in (num_mel_bins, dft_length))
    rate, low, high = (
        _cast_scalar(ctx, each, "float64")
        for each in (sample_rate, lower_edge_hertz, upper_edge_hertz)
    )
    one, two = relay.Constant(np.int64(1)), relay.Constant(np.int64(2))
    number = relay.add(bins, two)
    start = _to_mels(low)
    step = relay.divide(relay.subtract(_to_mels(high), start), relay.cast(number, "float64"))
    mels = relay.add(relay.multiply(_arange_float64(ctx, number), step), start)
    raised = relay.power(_float64(10), relay.divide(mels, _float64(MEL)))
    hertz = relay.multiply(relay.subtract(raised, _float64(1)), _float64(BREAK))
    whole = relay.cast(relay.add(length, one), "float64")
    edges = relay.floor(relay.divide(relay.multiply(hertz, whole), rate))
    steps = relay.cast(_arange_float64(ctx, bins), "int64")
    lower, centre, higher = (
        relay.take(edges, relay.add(steps, relay.Constant(np.int64(each))), axis=0, mode="fast")
        for each in range(3)
    )
    rows = relay.expand_dims(
        _arange_float64(ctx, relay.add(relay.floor_divide(length, two), one)), axis=1
    )
    rising, falling = relay.subtract(centre, lower), relay.subtract(higher, centre)
    zero, unit = _float64(0), _float64(1)
    flat = relay.equal(rising, zero)
    up = relay.divide(relay.subtract(rows, lower), relay.where(flat, unit, rising))
    inside = relay.logical_and(relay.greater_equal(rows, lower), relay.less_equal(rows, centre))
    found = relay.where(inside, relay.where(flat, unit, up), zero)
    down = relay.divide(
        relay.subtract(higher, rows), relay.where(relay.equal(falling, zero), unit, falling)
    )
    behind = relay.logical_and(relay.greater_equal(rows, centre), relay.less(rows, higher))
    return relay.cast(relay.where(behind, down, found), ctx.dtype(output_datatype))
