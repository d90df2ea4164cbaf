"""Fourier transforms, as products with a matrix of twiddle factors in float64, and sketches."""

from __future__ import annotations

import serde.relay as relay
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir.expr import Expr


@OPS.imports("_contrib_fft", ignored=("compute_size",))
def import_fft(ctx: Import, data: Expr) -> Expr:
    """Real and imaginary parts alternate along the last axis."""
    parts = relay.dft(data, relay.zeros_like(data), inverse=False)
    pairs = relay.stack(list(parts), axis=-1)
    return relay.reshape(pairs, (*[0] * (ctx.type(data).rank - 1), -3))


@OPS.imports("_contrib_ifft", ignored=("compute_size",))
def import_ifft(ctx: Import, data: Expr) -> Expr:
    """The real part, not divided by the length; what comes in is interleaved as `fft` gives it."""
    type_ = ctx.type(data)
    (width,) = ctx.static_lengths(data, [-1])
    pairs = relay.reshape(data, (*[0] * (type_.rank - 1), width // 2, 2))
    re, im = (relay.squeeze(part, (-1,)) for part in relay.split(pairs, 2, axis=-1))
    real = relay.dft(re, im, inverse=True)[0]
    return relay.multiply(real, relay.const(width // 2, type_.dtype))


@OPS.imports("_contrib_count_sketch", ignored=("processing_batch_size",))
def import_count_sketch(ctx: Import, data: Expr, h: Expr, s: Expr, *, out_dim: int) -> Expr:
    """Each element is added, with its sign of `s`, to the place that `h` names."""
    dtype = ctx.type(data).dtype
    indices = relay.reshape(relay.cast(h, "int32"), (-1,))
    on, off = relay.const(1, dtype), relay.const(0, dtype)
    spread = relay.one_hot(indices, on, off, out_dim, -1, dtype)
    signed = relay.multiply(spread, relay.reshape(s, (-1, 1)))
    return relay.nn.matmul(data, signed)
