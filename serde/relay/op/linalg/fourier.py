"""Fourier transforms, on real and imaginary parts as tensors of their own, along any axis."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import is_float, join_dim, normalize_axis, require_float, require_same_dtype
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call, Expr, TupleGetItem, const, tensor_type
from serde.relay.ir.registry import Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.traits import Work
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import elements
from serde.relay.lowering.fourier import decompose_dft, decompose_stft

__all__ = ["ShortTimeFourier"]


@dataclass(frozen=True, kw_only=True)
class ShortTimeFourier:
    """Attributes of ``stft``."""

    n_fft: int = -1
    hop_length: int = -1
    win_length: int = -1
    normalized: bool = False
    onesided: bool = True


def _dft_type(re_data: TensorType, im_data: TensorType, *, inverse: bool) -> list[TensorType]:
    require_float(re_data, im_data)
    dtype = require_same_dtype(re_data, im_data)
    if not re_data.rank or re_data.rank != im_data.rank:
        raise TypeInferenceError(f"{re_data!r} and {im_data!r} are no parts of one signal")
    shape = [join_dim(a, b) for a, b in zip(re_data.shape, im_data.shape, strict=True)]
    return [TensorType(shape, dtype)] * 2


@relay_op(
    "dft",
    infer=_dft_type,
    decompose=decompose_dft,
    meta_class="relay.attrs.DFTAttrs",
    samples=[
        sample((2, 3, 8), (2, 3, 8)),
        sample((2, 5), (2, 5), inverse=True),
        sample(tensor((6,), "float64"), tensor((6,), "float64")),
    ],
)
def dft(re_data: Array, im_data: Array, *, inverse: bool = False) -> tuple[Array, Array]:
    """The discrete Fourier transform along the last axis, in its real and imaginary part.

    The inverse divides by the length.
    """
    signal = re_data.astype(np.float64) + 1j * im_data.astype(np.float64)
    result = np.fft.ifft(signal) if inverse else np.fft.fft(signal)
    return result.real.astype(re_data.dtype), result.imag.astype(re_data.dtype)


def _stft_type(data: TensorType, window: TensorType, *, stft: ShortTimeFourier) -> TensorType:
    """There are ``(length - n_fft) // hop_length + 1`` windows."""
    require_float(data)
    if data.rank not in (1, 2) or window.rank != 1:
        raise TypeInferenceError(f"expected signals and a window, found {data!r} and {window!r}")
    if not 1 <= stft.win_length <= stft.n_fft or stft.hop_length < 1:
        raise TypeInferenceError(
            f"n_fft {stft.n_fft}, win_length {stft.win_length} and "
            f"hop_length {stft.hop_length} do not fit"
        )
    length, given = data.shape[-1], window.shape[0]
    if isinstance(given, int) and given < stft.win_length:
        raise TypeInferenceError(
            f"a window of {given} is shorter than win_length {stft.win_length}"
        )
    if not is_float(window.dtype) and not window.dtype.startswith(("int", "uint")):
        raise TypeInferenceError(f"expected a window of numbers, found {window!r}")
    if isinstance(length, int) and length < stft.n_fft:
        raise TypeInferenceError(f"a signal of {length} is shorter than n_fft {stft.n_fft}")
    frequencies = stft.n_fft // 2 + 1 if stft.onesided else stft.n_fft
    frames = (length - stft.n_fft) // stft.hop_length + 1
    return TensorType([*data.shape[:-1], frequencies, frames, 2], data.dtype)


_WHOLE = {"n_fft": 8, "hop_length": 4, "win_length": 8}


def _count_stft(call: Call) -> int:
    """Return the products of a matrix of waves with frames of the signal."""
    side = abs(call.attrs["n_fft"]) + abs(call.attrs["win_length"])
    return side * (elements(call.type) + side)


@relay_op(
    "stft",
    traits=(Work(_count_stft),),
    infer=_stft_type,
    decompose=decompose_stft,
    meta_class="relay.attrs.StftAttrs",
    samples=[
        sample((2, 40), (8,), **_WHOLE),
        sample((30,), np.hanning(8).astype(np.float32), **_WHOLE, onesided=False),
        sample((2, 29), (6,), n_fft=7, hop_length=3, win_length=6, normalized=True),
        sample((2, 20), np.ones(9, np.int32), n_fft=9, hop_length=2, win_length=5),
    ],
)
def stft(data: Array, window: Array, *, stft: ShortTimeFourier) -> Array:
    """The Fourier transforms of the windows of a signal that start `hop_length` apart.

    As many windows as have room for `n_fft` elements; of each, the first `win_length` count and
    frequencies count periods in these. Axes are (batch,) frequency, window, and (real, imaginary);
    `onesided` leaves out the frequencies that mirror others, `normalized` divides by the root of
    `n_fft`.
    """
    starts = np.arange((data.shape[-1] - stft.n_fft) // stft.hop_length + 1) * stft.hop_length
    taps = np.arange(stft.win_length)
    frames = data[..., starts[:, None] + taps].astype(np.float64) * window[: stft.win_length]
    frequencies = np.arange(stft.n_fft // 2 + 1 if stft.onesided else stft.n_fft)
    twiddle_factors = np.exp(-2j * np.pi * np.outer(taps, frequencies) / stft.win_length)
    result = np.swapaxes(frames @ twiddle_factors, -1, -2)
    if stft.normalized:
        result = result / np.sqrt(stft.n_fft)
    return np.stack([result.real, result.imag], -1).astype(data.dtype)


@builder("stft")
def build_stft(
    data: Expr, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Expr | None = None, normalized: bool = False, onesided: bool = True,
) -> Expr:  # fmt: skip
    """Build ``stft``; windows are a quarter of `n_fft` apart, as long as it, and of ones."""
    weights: AnyValue = const(np.ones(n_fft, np.int32)) if window is None else window
    return call(
        "stft",
        data,
        weights,
        n_fft=n_fft,
        hop_length=n_fft // 4 if hop_length is None else hop_length,
        win_length=n_fft if win_length is None else win_length,
        normalized=normalized,
        onesided=onesided,
    )


def _spectrum_type(
    data: TensorType, *, axis: int, dft_length: int | None, inverse: bool, onesided: bool
) -> TensorType:
    require_float(data)
    if data.rank < 2 or data.shape[-1] not in (1, 2):
        raise TypeInferenceError(f"expected real or complex numbers on a last axis, found {data!r}")
    along = normalize_axis(axis, data.rank)
    if along == data.rank - 1:
        raise TypeInferenceError("the last axis holds the parts of a number")
    if dft_length is not None and dft_length < 1:
        raise TypeInferenceError(f"dft_length: expected a positive number, found {dft_length}")
    if onesided and (inverse or data.shape[-1] != 1):
        raise TypeInferenceError("one side alone is told of a forward transform of real numbers")
    length: Dim = data.shape[along] if dft_length is None else dft_length
    if onesided:
        length = length // 2 + 1
    return TensorType((*data.shape[:along], length, *data.shape[along + 1 : -1], 2), data.dtype)


def _decompose_spectrum(
    data: Expr, *, axis: int, dft_length: int | None, inverse: bool, onesided: bool
) -> Expr:
    """Relay transforms the last axis of two tensors, so the axis is moved there and back."""
    type_ = tensor_type(data)
    rank, along, length = type_.rank - 1, axis % type_.rank, type_.shape[axis]
    order = [*(each for each in range(rank) if each != along), along]
    count = 2 if type_.shape[-1] == 2 else 1
    parts: list[Expr] = [call("take", data, const(i, "int64"), axis=rank) for i in range(count)]
    parts = [call("transpose", part, axes=order) for part in parts]
    if dft_length is not None:
        parts = [_cut_or_pad(part, rank - 1, length, dft_length) for part in parts]
    imaginary = parts[1] if len(parts) == 2 else call("zeros_like", parts[0])
    found = call("dft", parts[0], imaginary, inverse=inverse)
    results: list[Expr] = [TupleGetItem(found, i) for i in (0, 1)]
    if onesided:
        full = length if dft_length is None else dft_length
        if not isinstance(full, int):
            raise TypeInferenceError(f"needs a fixed length to cut, found {type_!r}")
        results = [_first(part, rank - 1, full // 2 + 1) for part in results]
    back = [order.index(each) for each in range(rank)]
    results = [call("transpose", part, axes=back) for part in results]
    return call("stack", results, axis=rank)


def _first(part: Expr, axis: int, count: int) -> Expr:
    return call("strided_slice", part, begin=[0], end=[count], strides=[1], axes=[axis])


def _cut_or_pad(part: Expr, axis: int, length: Dim, wanted: int) -> Expr:
    """Return a part cut or padded with zeros to a length."""
    if not isinstance(length, int):
        raise TypeInferenceError("needs a fixed length to cut or pad")
    if wanted <= length:
        return part if wanted == length else _first(part, axis, wanted)
    widths = [(0, wanted - length if each == axis else 0) for each in range(axis + 1)]
    dtype = part.type.dtype if isinstance(part.type, TensorType) else "float32"
    return call("nn.pad", part, const(0.0, dtype), pad_width=widths)


@relay_op(
    "serde.dft",
    infer=_spectrum_type,
    decompose=_decompose_spectrum,
    samples=[
        sample((2, 8, 1)),
        sample((2, 5, 2), axis=-2, inverse=True),
        sample((2, 6, 3, 1), axis=1, onesided=True),
        sample((2, 6, 2), dft_length=4),
        sample(tensor((2, 5, 1), "float64"), dft_length=8, onesided=True),
        sample((4, 3, 2), axis=0),
    ],
)
def spectrum(
    data: Array,
    *,
    axis: int = 1,
    dft_length: int | None = None,
    inverse: bool = False,
    onesided: bool = False,
) -> Array:
    """The discrete Fourier transform along `axis`, cut or padded with zeros to `dft_length`.

    A last axis of one holds real numbers, of two their real and imaginary part, as in the
    result. The inverse divides by the length. `onesided` leaves out of a real signal's
    spectrum what the rest determines.
    """
    along = axis % data.ndim
    wide = data.astype(np.float64)
    signal = wide[..., 0] + 1j * wide[..., 1] if data.shape[-1] == 2 else wide[..., 0] + 0j
    result = (np.fft.ifft if inverse else np.fft.fft)(signal, n=dft_length, axis=along)
    if onesided:
        result = result.take(range(result.shape[along] // 2 + 1), along)
    return np.stack([result.real, result.imag], -1).astype(data.dtype)
