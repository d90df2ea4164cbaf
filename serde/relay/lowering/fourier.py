"""Fourier transforms as products with waves."""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
from serde.core.weights import numpy_dtype
from serde.relay.ir import Any, Expr, Tuple, as_dtype, call, const, tensor_type
from serde.relay.lowering.lengths import length_of, positions, sliced

__all__ = ["decompose_dft", "decompose_stft"]


def _angles(data: Expr) -> Expr:
    """Return the angles of all frequencies at all positions of the last axis, in float64."""
    length = tensor_type(data).shape[-1]
    if isinstance(length, int):
        allocation.allow((2, length, length), np.float64)
        places = allocation.positions(length)
        return const(allocation.outer(places, places) % length * (2 * np.pi / length), "float64")
    line, count = positions(data, -1), length_of(data, -1)
    column = call("expand_dims", line, axis=1)
    turns = call("floor_mod", call("multiply", column, line), count)
    step = call("divide", const(2 * np.pi, "float64"), as_dtype(count, "float64"))
    return call("multiply", as_dtype(turns, "float64"), step)


def decompose_dft(re_data: Expr, im_data: Expr, *, inverse: bool) -> Expr:
    dtype, angles = tensor_type(re_data).dtype, _angles(re_data)
    waves = [call(name, angles) for name in ("cos", "sin")]
    if inverse:
        count = length_of(re_data, -1, "int64")
        waves = [call("divide", wave, as_dtype(count, "float64")) for wave in waves]
    else:
        waves[1] = call("negative", waves[1])
    cos, sin = (as_dtype(wave, dtype) for wave in waves)

    def times(x: Expr, wave: Expr) -> Expr:
        return call("serde.matmul", x, wave)

    real = call("subtract", times(re_data, cos), times(im_data, sin))
    return Tuple([real, call("add", times(re_data, sin), times(im_data, cos))])


def decompose_stft(
    data: Expr,
    window: Expr,
    *,
    n_fft: int,
    hop_length: int,
    win_length: int,
    normalized: bool,
    onesided: bool,
) -> Expr:
    """A convolution whose filters are the waves of all frequencies, shaped by the window."""
    type_ = tensor_type(data)
    frequencies = allocation.positions(n_fft // 2 + 1 if onesided else n_fft)
    count = len(frequencies)
    filters = allocation.zeros((2 * count, 1, n_fft), numpy_dtype(type_.dtype))
    waves = allocation.outer(frequencies, allocation.positions(win_length))
    waves = np.exp(-2j * np.pi * waves / win_length)
    waves = waves / np.sqrt(n_fft) if normalized else waves
    filters[:, 0, :win_length] = np.concatenate([waves.real, waves.imag])
    shaped = as_dtype(window, type_.dtype)
    if tensor_type(window).shape != (win_length,):
        shaped = sliced(shaped, 0, 0, win_length)
    if win_length < n_fft:
        zero = const(0, type_.dtype)
        shaped = call("nn.pad", shaped, zero, pad_width=((0, n_fft - win_length),))
    weight = call("multiply", const(filters, type_.dtype), shaped)
    batched = type_.rank == 2
    before, more = (1, 1) if batched else (0, 2)
    signals = call("expand_dims", data, axis=before, num_newaxis=more)
    found = call(
        "nn.conv1d",
        signals,
        weight,
        strides=(hop_length,),
        channels=2 * count,
        kernel_size=(n_fft,),
    )
    batch, _, frames = tensor_type(found).shape
    lengths = (batch, 2, count, frames)
    open_ = Any() in lengths
    parts = call("reshape", found, newshape=(0, 2, count, -1) if open_ else lengths)
    moved = call("transpose", parts, axes=(0, 2, 3, 1))
    return moved if batched else call("squeeze", moved, axis=(0,))
