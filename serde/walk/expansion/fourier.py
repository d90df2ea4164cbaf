"""Fourier transforms as products with waves."""

from __future__ import annotations

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.op.linalg.fourier import ShortTimeFourier
from serde.walk.expansion.tensors import tensor_type
from serde.weights import numpy_dtype

__all__ = [
    "expand_dft",
    "expand_stft",
]


def expand_dft(re_data: Expr, im_data: Expr, *, inverse: bool) -> Expr:
    """Products with the waves of all frequencies."""
    type_ = tensor_type(re_data)
    length = type_.shape[-1]
    if not isinstance(length, int):
        raise Unsupported("a transform along a length that is not fixed")
    allocation.allow((2, length, length), numpy_dtype(type_.dtype))
    places = allocation.positions(length)
    angle = 2 * np.pi * allocation.outer(places, places) / length
    scale = 1 / length if inverse else 1.0
    sign = 1.0 if inverse else -1.0
    cos = relay.const(np.cos(angle) * scale, type_.dtype)
    sin = relay.const(sign * np.sin(angle) * scale, type_.dtype)

    def times(x: Expr, waves: Expr) -> Expr:
        return call("serde.matmul", x, waves)

    real = relay.subtract(times(re_data, cos), times(im_data, sin))
    return relay.Tuple([real, relay.add(times(re_data, sin), times(im_data, cos))])


def expand_stft(data: Expr, window: Expr, *, stft: ShortTimeFourier) -> Expr:
    """A convolution whose filters are the waves of all frequencies, shaped by the window."""
    type_, shape = tensor_type(data), tensor_type(window).shape
    length = shape[0]
    if not isinstance(length, int):
        raise Unsupported("a window whose length is not fixed")
    frequencies = allocation.positions(stft.n_fft // 2 + 1 if stft.onesided else stft.n_fft)
    filters = allocation.zeros((2 * len(frequencies), 1, stft.n_fft), numpy_dtype(type_.dtype))
    waves = allocation.outer(frequencies, allocation.positions(stft.win_length))
    waves = np.exp(-2j * np.pi * waves / stft.win_length)
    waves = waves / np.sqrt(stft.n_fft) if stft.normalized else waves
    filters[:, 0, : stft.win_length] = np.concatenate([waves.real, waves.imag])
    shaped = relay.cast(window, type_.dtype)
    if length > stft.n_fft:
        shaped = relay.strided_slice(shaped, [0], [stft.n_fft], axes=[0])
    if length < stft.n_fft:
        shaped = relay.nn.pad(shaped, ((0, stft.n_fft - length),), relay.const(0, type_.dtype))
    weight = relay.multiply(relay.const(filters, type_.dtype), shaped)
    batched = type_.rank == 2
    signals = relay.expand_dims(data, axis=1 if batched else 0, num_newaxis=1 if batched else 2)
    found = relay.nn.conv1d(
        signals,
        weight,
        strides=(stft.hop_length,),
        channels=len(filters),
        kernel_size=(stft.n_fft,),
    )
    count = tensor_type(found).shape
    parts = relay.reshape(found, [count[0], 2, len(frequencies), count[2]])
    turned = relay.transpose(parts, axes=[0, 2, 3, 1])
    return turned if batched else relay.squeeze(turned, axis=[0])
