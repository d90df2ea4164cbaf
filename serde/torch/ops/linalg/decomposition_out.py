"""Systems, factors, spectra and sparse matrices as they are written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from serde.relay.ir.types import TensorType
from serde.relay.op.linalg.fourier import ShortTimeFourier
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import cast


def _wide(ctx: ExportContext, x: Value) -> tuple[Value, str]:
    """Return a tensor in a dtype that PyTorch factors, and that dtype."""
    dtype = ctx.type(x).dtype
    work = "float32" if dtype in ("float16", "bfloat16") else dtype
    found = cast(ctx, x, work)
    return ctx.typed(found, TensorType(ctx.type(x).shape, work)), work


def _export_function(ctx: ExportContext, data: Value, *, target: str) -> Value:
    x, work = _wide(ctx, data)
    return cast(ctx, ctx.call(target, x), ctx.type(data).dtype, work)


for _name, _target in {
    "serde.cholesky": "torch.linalg.cholesky",
    "serde.det": "torch.linalg.det",
    "serde.inverse": "torch.linalg.inv",
}.items():
    OPS.exports(_name)(partial(_export_function, target=_target))


def _make_parts_exporter(target: str, outputs: int, **options: object) -> Callable[..., object]:
    def export_parts(ctx: ExportContext, data: Value) -> tuple[Value, ...]:
        x, work = _wide(ctx, data)
        name = target if "." in target else ctx.helper(target)
        found = ctx.call_tuple(name, x, outputs=outputs, **options)
        return tuple(cast(ctx, each, ctx.type(data).dtype, work) for each in found)

    return export_parts


OPS.exports("serde.slogdet")(_make_parts_exporter("torch.linalg.slogdet", 2))
OPS.exports("serde.svd")(_make_parts_exporter("torch.linalg.svd", 3, full_matrices=False))
OPS.exports("serde.lq")(_make_parts_exporter("lower_factor", 2))
OPS.exports("serde.eig")(_make_parts_exporter("real_eigenvalues", 2))


@OPS.exports("serde.eigh")
def export_eigh(ctx: ExportContext, data: Value, *, triangle: str) -> tuple[Value, ...]:
    x, work = _wide(ctx, data)
    letter = "L" if triangle == "lower" else "U"
    found = ctx.call_tuple(ctx.helper("symmetric_eigenvalues"), x, letter, outputs=2)
    return tuple(cast(ctx, each, ctx.type(data).dtype, work) for each in found)


@OPS.exports("serde.solve")
def export_solve(ctx: ExportContext, a: Value, b: Value) -> Value:
    (x, work), (y, _) = _wide(ctx, a), _wide(ctx, b)
    return cast(ctx, ctx.call("torch.linalg.solve", x, y), ctx.type(b).dtype, work)


@OPS.exports("serde.triangular_solve")
def export_triangular_solve(
    ctx: ExportContext, a: Value, b: Value, *, lower: bool, transpose: bool
) -> Value:
    (x, work), (y, _) = _wide(ctx, a), _wide(ctx, b)
    if transpose:
        x = ctx.method(x, "transpose", -2, -1)
    upper = lower == transpose
    found = ctx.call("torch.linalg.solve_triangular", x, y, upper=upper)
    return cast(ctx, found, ctx.type(b).dtype, work)


@OPS.exports("dft")
def export_dft(
    ctx: ExportContext, re_data: Value, im_data: Value, *, inverse: bool
) -> tuple[Value, Value]:
    (real, work), (imaginary, _) = _wide(ctx, re_data), _wide(ctx, im_data)
    signal = ctx.call("torch.complex", real, imaginary)
    found = ctx.call("torch.fft.ifft" if inverse else "torch.fft.fft", signal)
    dtype = ctx.type(re_data).dtype
    parts = ctx.call("torch.real", found), ctx.call("torch.imag", found)
    return cast(ctx, parts[0], dtype, work), cast(ctx, parts[1], dtype, work)


@OPS.exports("serde.dft")
def export_serde_dft(
    ctx: ExportContext,
    data: Value,
    *,
    axis: int,
    dft_length: int | None,
    inverse: bool,
    onesided: bool,
) -> Value:
    """Real numbers are complex ones without an imaginary part."""
    type_ = ctx.type(data)
    axis %= type_.rank
    x, work = _wide(ctx, data)
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
def export_stft(ctx: ExportContext, data: Value, window: Value, *, stft: ShortTimeFourier) -> Value:
    """Of each window the first elements count alone, so the transform is as long as they are."""
    options = list(vars(stft).values())
    return ctx.call(ctx.helper("short_time_fourier"), data, window, *options)
