"""Fourier transforms, as sums over waves that stand in tables of one period."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import Framework
from serde.relax.ops.table import OPS
from serde.relax.precision import NARROW, widen
from serde.relay.op.linalg.fourier import ShortTimeFourier

__all__: list[str] = []


def _period(framework: Framework, length: AnyValue, dtype: str, sign: float) -> Sequence[AnyValue]:
    """Return cosines and sines of one period as tensors, of float64 before they are rounded."""
    tir, te = framework.tir, framework.te
    step = tir.const(2 * np.pi, "float64") / tir.Cast("float64", length)

    def wave(function: Callable[..., AnyValue], factor: float, name: str) -> AnyValue:
        def at(place: AnyValue) -> AnyValue:
            angle = tir.Cast("float64", place) * step
            return tir.Cast(dtype, function(angle) * tir.const(factor, "float64"))

        return te.compute((length,), at, name=name)

    return wave(tir.cos, 1.0, "cosines"), wave(tir.sin, sign, "sines")


def _make_transform(framework: Framework, *, inverse: bool) -> Callable[..., Sequence[AnyValue]]:
    """Return the transform along the last axis of real and imaginary parts."""
    tir, te = framework.tir, framework.te

    def dft(real: AnyValue, imaginary: AnyValue) -> Sequence[AnyValue]:
        length, dtype = real.shape[-1], str(real.dtype)
        cosines, sines = _period(framework, length, dtype, 1.0 if inverse else -1.0)
        scale = tir.Cast(dtype, tir.const(1.0, "float64") / tir.Cast("float64", length))

        def part(first: AnyValue, second: AnyValue, sign: int, name: str) -> AnyValue:
            along = te.reduce_axis((0, length), name="along")

            def term(*at: AnyValue) -> AnyValue:
                place = tir.floormod(at[-1].astype("int64") * along, length)
                here = (*at[:-1], along)
                one, other = first[here] * cosines[place], second[here] * sines[place]
                return te.sum(one + other if sign > 0 else one - other, axis=along)

            total = te.compute(real.shape, term, name=name)
            if not inverse:
                return total
            return te.compute(real.shape, lambda *at: total[at] * scale, name=f"{name}_scaled")

        return [part(real, imaginary, -1, "real"), part(imaginary, real, 1, "imaginary")]

    return dft


@OPS.exports("dft")
def export_dft(
    ctx: ExportContext, re_data: Value, im_data: Value, *, inverse: bool
) -> Sequence[Value]:
    dtype = ctx.type(re_data).dtype
    parts = [widen(ctx, each) for each in (re_data, im_data)]
    function = _make_transform(ctx.framework, inverse=inverse)
    found = ctx.emit_te_tuple(function, *parts, outputs=2)
    return [ctx.emit("astype", each, dtype) for each in found] if dtype in NARROW else found


def _make_windows(
    framework: Framework, *, hop: int, width: int, count: int
) -> Callable[..., AnyValue]:
    """Return the transform of windows: (batch, frequency, window, 2)."""
    tir, te = framework.tir, framework.te

    def stft(data: AnyValue, window: AnyValue, frames: AnyValue) -> AnyValue:
        dtype = str(data.dtype)
        waves = _period(framework, tir.const(width, "int64"), dtype, -1.0)

        def part(wave: AnyValue, name: str) -> AnyValue:
            tap = te.reduce_axis((0, width), name="tap")

            def term(batch: AnyValue, frequency: AnyValue, frame: AnyValue) -> AnyValue:
                place = tir.floormod(frequency.astype("int64") * tap, width)
                return te.sum(data[batch, frame * hop + tap] * window[tap] * wave[place], axis=tap)

            return te.compute((data.shape[0], count, frames), term, name=name)

        real, imaginary = part(waves[0], "real"), part(waves[1], "imaginary")
        return te.compute(
            (*real.shape, 2),
            lambda *at: tir.if_then_else(at[3] == 0, real[at[:3]], imaginary[at[:3]]),
            name="stft",
        )

    return stft


@OPS.exports("stft")
def export_stft(ctx: ExportContext, data: Value, window: Value, *, stft: ShortTimeFourier) -> Value:
    type_ = ctx.type(data)
    wide = "float32" if type_.dtype in NARROW else type_.dtype
    signal, factors = widen(ctx, data), window
    if ctx.type(window).dtype != wide:
        factors = ctx.emit("astype", window, wide)
    if type_.rank == 1:
        signal = ctx.emit("expand_dims", signal, 0)
    count = stft.n_fft // 2 + 1 if stft.onesided else stft.n_fft
    frames = ctx.dim(ctx.result_type().shape[-2])
    function = _make_windows(ctx.framework, hop=stft.hop_length, width=stft.win_length, count=count)
    made = ctx.emit_te(function, signal, factors, frames)
    if stft.normalized:
        made = ctx.emit("multiply", made, ctx.const(1 / np.sqrt(stft.n_fft), wide))
    if type_.rank == 1:
        made = ctx.emit("squeeze", made, 0)
    return ctx.emit("astype", made, type_.dtype) if type_.dtype in NARROW else made
