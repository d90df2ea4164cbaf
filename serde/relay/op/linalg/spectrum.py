"""The discrete Fourier transform along any axis, of real or complex data, cut or padded."""

from __future__ import annotations

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr, TupleGetItem, const, tensor_type
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import normalize_axis, require_float
from serde.relay.ir.types import TensorType

__all__: list[str] = []


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
