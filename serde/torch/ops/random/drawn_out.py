"""Random numbers as they are written."""

from __future__ import annotations

from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import DType, cast


def _has_no_seed(call: Call) -> bool:
    """Whether any numbers will do; those of a seed are the same with every format."""
    return call.attrs["seed"] is None


def _draw(ctx: ExportContext, target: str, shape: tuple[Dim, ...], dtype: str) -> Value:
    return ctx.call(target, ctx.sizes(shape), dtype=ctx.dtype(dtype))


@OPS.exports("serde.random_uniform", when=_has_no_seed, ignored=("shape", "dtype", "seed"))
def export_random_uniform(
    ctx: ExportContext, like: Value | None, *, low: float, high: float
) -> Value:
    type_ = ctx.result_type()
    drawn = _draw(ctx, "torch.rand", type_.shape, type_.dtype)
    if high - low != 1:
        drawn = ctx.infix("*", drawn, high - low)
    return ctx.infix("+", drawn, low) if low else drawn


@OPS.exports("serde.random_normal", when=_has_no_seed, ignored=("shape", "dtype", "seed"))
def export_random_normal(
    ctx: ExportContext, like: Value | None, *, mean: float, scale: float
) -> Value:
    type_ = ctx.result_type()
    drawn = _draw(ctx, "torch.randn", type_.shape, type_.dtype)
    if scale != 1:
        drawn = ctx.infix("*", drawn, scale)
    return ctx.infix("+", drawn, mean) if mean else drawn


@OPS.exports("serde.bernoulli", when=_has_no_seed, ignored=("dtype", "seed"))
def export_bernoulli(ctx: ExportContext, probs: Value) -> Value:
    own = ctx.type(probs).dtype
    return cast(ctx, ctx.call("torch.bernoulli", probs), ctx.result_type().dtype, own)


@OPS.exports("serde.multinomial", when=_has_no_seed, ignored=("seed",))
def export_multinomial(
    ctx: ExportContext, logits: Value, *, sample_size: int, dtype: DType
) -> Value:
    probs = ctx.call("F.softmax", cast(ctx, logits, "float32"), dim=-1)
    drawn = ctx.call("torch.multinomial", probs, sample_size, replacement=True)
    return cast(ctx, drawn, dtype.name, "int64")


@OPS.exports("serde.random_gamma", when=_has_no_seed, ignored=("shape", "seed"))
def export_random_gamma(ctx: ExportContext, alpha: Value) -> Value:
    spread = ctx.method(alpha, "expand", ctx.sizes(ctx.result_type().shape))
    return ctx.call("torch._standard_gamma", spread)


@OPS.exports("serde.random_poisson", when=_has_no_seed, ignored=("shape", "seed"))
def export_random_poisson(ctx: ExportContext, lam: Value) -> Value:
    spread = ctx.method(lam, "expand", ctx.sizes(ctx.result_type().shape))
    return ctx.call("torch.poisson", spread)


@OPS.exports("random.threefry_generate")
def export_threefry_generate(
    ctx: ExportContext, key: Value, *, out_shape: tuple[int, ...]
) -> tuple[Value, ...]:
    return ctx.call_tuple(ctx.helper("threefry_generate"), key, list(out_shape), outputs=2)


@OPS.exports("random.threefry_split")
def export_threefry_split(ctx: ExportContext, key: Value) -> tuple[Value, ...]:
    return ctx.call_tuple(ctx.helper("threefry_split"), key, outputs=2)


@OPS.exports("random.uniform", ignored=("out_dtype",))
def export_uniform(
    ctx: ExportContext, key: Value, low: Value, high: Value, *, out_shape: tuple[int, ...]
) -> tuple[Value, ...]:
    name = ctx.helper("threefry_uniform")
    return ctx.call_tuple(name, key, low, high, list(out_shape), outputs=2)


@OPS.exports("random.normal", ignored=("out_dtype",))
def export_normal(
    ctx: ExportContext, key: Value, mean: Value, scale: Value, *, out_shape: tuple[int, ...]
) -> tuple[Value, ...]:
    name = ctx.helper("threefry_normal")
    return ctx.call_tuple(name, key, mean, scale, list(out_shape), outputs=2)


@OPS.exports("random.multinomial")
def export_random_multinomial(
    ctx: ExportContext, key: Value, probs: Value, *, num_samples: int
) -> tuple[Value, ...]:
    return ctx.call_tuple(ctx.helper("threefry_multinomial"), key, probs, num_samples, outputs=2)
