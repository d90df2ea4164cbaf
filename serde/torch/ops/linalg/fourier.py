"""Fourier transforms, and the complex tensors that go into them and come out.

Relay has no complex numbers: a tensor of them is one of their parts, along one more axis.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, call, is_float, normalize_axis, same_shape
from serde.relay.op.linalg.fourier import ShortTimeFourier
from serde.torch.ops.table import OPS, Export, Import, Value
from serde.torch.ops.written import cast, widen

Norm = Literal["backward", "ortho", "forward"]


def _require_real(ctx: Import, x: Expr) -> None:
    if ctx.is_complex(x) or ctx.dtype(x).startswith("complex"):
        raise Unsupported("a complex tensor where a real one is expected")


def _take_part(ctx: Import, x: Expr, place: int) -> Expr:
    return relay.take(x, relay.const(place, "int64"), axis=ctx.type(x).rank - 1)


@OPS.imports("aten::complex")
def import_complex(ctx: Import, real: Expr, imag: Expr) -> Expr:
    for each in (real, imag):
        _require_real(ctx, each)
    if not same_shape(ctx.type(real).shape, ctx.type(imag).shape):
        shape = relay.add(real, imag)
        real, imag = (relay.broadcast_to_like(each, shape) for each in (real, imag))
    return ctx.as_complex(relay.stack([real, imag], axis=ctx.type(real).rank))


@OPS.imports("aten::view_as_complex")
def import_view_as_complex(ctx: Import, self: Expr) -> Expr:
    _require_real(ctx, self)
    if not ctx.type(self).rank or ctx.type(self).shape[-1] != 2:
        raise Unsupported(f"expected two parts along the last axis, found {ctx.type(self)!r}")
    return ctx.as_complex(self)


@OPS.imports("aten::view_as_real")
def import_view_as_real(ctx: Import, self: Expr) -> Expr:
    if not ctx.is_complex(self):
        raise Unsupported(f"expected a complex tensor, found {ctx.type(self)!r}")
    return relay.copy(self)


@OPS.imports("aten::real")
def import_real(ctx: Import, self: Expr) -> Expr:
    return _take_part(ctx, self, 0) if ctx.is_complex(self) else self


@OPS.imports("aten::imag")
def import_imag(ctx: Import, self: Expr) -> Expr:
    if not ctx.is_complex(self):
        raise Unsupported("the imaginary part of a real tensor")
    return _take_part(ctx, self, 1)


def _transform(
    ctx: Import, self: Expr,
    *, n: int | None = None, dim: int = -1, norm: Norm | None = None, inverse: bool = False,
    onesided: bool = False,
) -> Expr:  # fmt: skip
    """Return a transform along one axis, of which the inverse divides by the length by default."""
    if not ctx.is_complex(self):
        _require_real(ctx, self)
        self = self if is_float(ctx.dtype(self)) else ctx.cast(self, ctx.default_dtype)
        self = relay.expand_dims(self, axis=ctx.type(self).rank)
    axis = normalize_axis(dim, ctx.type(self).rank - 1)
    found: Expr = call(
        "serde.dft", self, axis=axis, dft_length=n, inverse=inverse, onesided=onesided
    )
    if norm not in (None, "backward"):
        length = ctx.type(self).shape[axis] if n is None else n
        if not isinstance(length, int):
            raise Unsupported(f"a transform of {length} elements whose norm is {norm!r}")
        power = 0.5 if norm == "ortho" else 1.0
        scale = math.pow(length, power if inverse else -power)
        found = relay.multiply(found, relay.const(scale, ctx.dtype(self)))
    return ctx.as_complex(found)


OPS.imports("aten::fft_fft")(partial(_transform, inverse=False, onesided=False))
OPS.imports("aten::fft_ifft")(partial(_transform, inverse=True, onesided=False))


@OPS.imports("aten::fft_rfft")
def import_rfft(
    ctx: Import, self: Expr, *, n: int | None = None, dim: int = -1, norm: Norm | None = None
) -> Expr:
    _require_real(ctx, self)
    return _transform(ctx, self, n=n, dim=dim, norm=norm, onesided=True)


@OPS.exports("dft")
def export_dft(
    ctx: Export, re_data: Value, im_data: Value, *, inverse: bool
) -> tuple[Value, Value]:
    (real, work), (imaginary, _) = widen(ctx, re_data), widen(ctx, im_data)
    signal = ctx.call("torch.complex", real, imaginary)
    found = ctx.call("torch.fft.ifft" if inverse else "torch.fft.fft", signal)
    dtype = ctx.type(re_data).dtype
    parts = ctx.call("torch.real", found), ctx.call("torch.imag", found)
    return cast(ctx, parts[0], dtype, work), cast(ctx, parts[1], dtype, work)


@OPS.exports("serde.dft")
def export_serde_dft(
    ctx: Export, data: Value, *, axis: int, dft_length: int | None, inverse: bool, onesided: bool
) -> Value:
    """Real numbers are complex ones without an imaginary part."""
    type_ = ctx.type(data)
    axis %= type_.rank
    x, work = widen(ctx, data)
    if type_.shape[-1] == 1:
        x = ctx.call("F.pad", x, [0, 1])
    signal = ctx.call("torch.view_as_complex", ctx.method(x, "contiguous"))
    options: dict[str, object] = {} if dft_length is None else {"n": dft_length}
    found = ctx.call(f"torch.fft.{'ifft' if inverse else 'fft'}", signal, dim=axis, **options)
    found = ctx.call("torch.view_as_real", found)
    if onesided:
        length = ctx.result_type().shape[axis]
        count: object = length
        if not isinstance(length, int):
            half = ctx.infix("//", ctx.method(found, "size", axis), 2)
            count = ctx.infix("+", half, 1)
        found = ctx.method(found, "narrow", axis, 0, count)
    return cast(ctx, found, type_.dtype, work)


@OPS.exports("stft")
def export_stft(ctx: Export, data: Value, window: Value, *, stft: ShortTimeFourier) -> Value:
    """Of each window the first elements count alone, so the transform is as long as they are."""
    options = list(vars(stft).values())
    return ctx.call(ctx.helper("short_time_fourier"), data, window, *options)
