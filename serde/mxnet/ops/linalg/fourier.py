"""Fourier transforms, as products with a matrix of twiddle factors in float64, and sketches."""

from __future__ import annotations

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.op.linalg.fourier import ShortTimeFourier
from serde.weights import Array


def _product(data: Expr, matrix: Array) -> Expr:
    return relay.nn.matmul(data, relay.Constant(matrix))


def _rows(data: Expr, width: int) -> Expr:
    return relay.cast(relay.reshape(data, (-1, width)), "float64")


@OPS.imports("_contrib_fft", ignored=("compute_size",))
def import_fft(ctx: ImportContext, data: Expr) -> Expr:
    """Real and imaginary parts alternate along the last axis."""
    parts = relay.dft(data, relay.zeros_like(data), inverse=False)
    pairs = relay.stack(list(parts), axis=-1)
    return relay.reshape(pairs, (*[0] * (ctx.type(data).rank - 1), -3))


@OPS.imports("_contrib_ifft", ignored=("compute_size",))
def import_ifft(ctx: ImportContext, data: Expr) -> Expr:
    """The real part, not divided by the length; what comes in is interleaved as `fft` gives it."""
    type_ = ctx.type(data)
    (width,) = ctx.static_lengths(data, [-1])
    pairs = relay.reshape(data, (*[0] * (type_.rank - 1), width // 2, 2))
    re, im = (relay.squeeze(part, (-1,)) for part in relay.split(pairs, 2, axis=-1))
    real = relay.dft(re, im, inverse=True)[0]
    return relay.multiply(real, relay.const(width // 2, type_.dtype))


@OPS.imports("_contrib_count_sketch", ignored=("processing_batch_size",))
def import_count_sketch(ctx: ImportContext, data: Expr, h: Expr, s: Expr, *, out_dim: int) -> Expr:
    """Each element is added, with its sign of `s`, to the place that `h` names."""
    dtype = ctx.type(data).dtype
    indices = relay.reshape(relay.cast(h, "int32"), (-1,))
    on, off = relay.const(1, dtype), relay.const(0, dtype)
    spread = relay.one_hot(indices, on, off, out_dim, -1, dtype)
    signed = relay.multiply(spread, relay.reshape(s, (-1, 1)))
    return relay.nn.matmul(data, signed)


@OPS.exports("dft")
def export_dft(
    ctx: ExportContext, re_data: Value, im_data: Value, *, inverse: bool
) -> Value | tuple[Value, ...]:
    type_ = ctx.type(re_data)
    (length,) = ctx.static_lengths(re_data, [-1])
    allocation.allow((length, length), np.complex128)
    indices = allocation.outer(allocation.arange(length), allocation.arange(length)) % length
    twiddles = np.exp((2j if inverse else -2j) * np.pi * indices / length)
    if inverse:
        twiddles = twiddles / length

    def build(real: Expr, imaginary: Expr) -> Expr:
        x, y = _rows(real, length), _rows(imaginary, length)
        parts = (
            relay.subtract(_product(x, twiddles.real.copy()), _product(y, twiddles.imag.copy())),
            relay.add(_product(x, twiddles.imag.copy()), _product(y, twiddles.real.copy())),
        )
        return relay.Tuple(
            [relay.reshape(relay.cast(part, type_.dtype), type_.shape) for part in parts]
        )

    return ctx.spell_tuple(build, re_data, im_data)


@OPS.exports("stft")
def export_stft(ctx: ExportContext, data: Value, window: Value, *, stft: ShortTimeFourier) -> Value:
    """``sum(x[frame * hop + n] * window[n] * exp(-2j * pi * k * n / win_length))`` over n."""
    (length,) = ctx.static_lengths(data, [-1])
    result = ctx.result_type()
    starts = allocation.arange((length - stft.n_fft) // stft.hop_length + 1) * stft.hop_length
    taps = allocation.arange(stft.win_length)
    frequencies = allocation.arange(stft.n_fft // 2 + 1 if stft.onesided else stft.n_fft)
    allocation.allow((taps.size, frequencies.size), np.complex128)
    twiddles = np.exp(-2j * np.pi * allocation.outer(taps, frequencies) / stft.win_length)
    if stft.normalized:
        twiddles = twiddles / np.sqrt(stft.n_fft)
    axis = result.rank - 3

    def build(x: Expr, weights: Expr) -> Expr:
        frames = relay.take(x, relay.Constant(starts[:, None] + taps), axis=axis, mode="clip")
        used = relay.strided_slice(weights, [0], [stft.win_length], [1])
        frames = relay.multiply(relay.cast(frames, "float64"), relay.cast(used, "float64"))
        rows = relay.reshape(frames, (-1, stft.win_length))
        shape = (*result.shape[:axis], len(starts), len(frequencies))
        parts = [
            relay.reshape(_product(rows, part.copy()), shape)
            for part in (twiddles.real, twiddles.imag)
        ]
        order = [*range(axis), axis + 1, axis, axis + 2]
        return relay.cast(relay.transpose(relay.stack(parts, -1), order), result.dtype)

    return ctx.spell(build, data, window)
