"""Random numbers as they are written."""

from __future__ import annotations

from functools import partial

from serde.relay.ir.expr import Call
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import DType, cast


def _has_no_seed(call: Call) -> bool:
    """Whether any numbers will do; those of a seed are the same with every format."""
    return call.attrs["seed"] is None


def _scaled(ctx: ExportContext, target: str, factor: float, offset: float) -> Value:
    type_ = ctx.result_type()
    drawn = ctx.call(target, ctx.sizes(type_.shape), dtype=ctx.dtype(type_.dtype))
    if factor != 1:
        drawn = ctx.infix("*", drawn, factor)
    return ctx.infix("+", drawn, offset) if offset else drawn


@OPS.exports("serde.random_uniform", when=_has_no_seed, ignored=("shape", "dtype", "seed"))
def export_random_uniform(
    ctx: ExportContext, like: Value | None, *, low: float, high: float
) -> Value:
    return _scaled(ctx, "torch.rand", high - low, low)


@OPS.exports("serde.random_normal", when=_has_no_seed, ignored=("shape", "dtype", "seed"))
def export_random_normal(
    ctx: ExportContext, like: Value | None, *, mean: float, scale: float
) -> Value:
    return _scaled(ctx, "torch.randn", scale, mean)


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


def _export_each(ctx: ExportContext, rate: Value, *, target: str) -> Value:
    return ctx.call(target, ctx.method(rate, "expand", ctx.sizes(ctx.result_type().shape)))


for _name, _target in {"gamma": "torch._standard_gamma", "poisson": "torch.poisson"}.items():
    OPS.exports(f"serde.random_{_name}", when=_has_no_seed, ignored=("shape", "seed"))(
        partial(_export_each, target=_target)
    )


@OPS.exports("random.threefry_generate")
def export_threefry_generate(
    ctx: ExportContext, key: Value, *, out_shape: tuple[int, ...]
) -> tuple[Value, ...]:
    return ctx.call_tuple(ctx.helper("threefry_generate"), key, list(out_shape), outputs=2)


@OPS.exports("random.threefry_split")
def export_threefry_split(ctx: ExportContext, key: Value) -> tuple[Value, ...]:
    return ctx.call_tuple(ctx.helper("threefry_split"), key, outputs=2)


def _export_threefry(
    ctx: ExportContext, key: Value, one: Value, two: Value, *, name: str, out_shape: tuple[int, ...]
) -> tuple[Value, ...]:
    helper = ctx.helper(f"threefry_{name}")
    return ctx.call_tuple(helper, key, one, two, list(out_shape), outputs=2)


for _name in ("uniform", "normal"):
    OPS.exports(f"random.{_name}", ignored=("out_dtype",))(partial(_export_threefry, name=_name))


@OPS.exports("random.multinomial")
def export_random_multinomial(
    ctx: ExportContext, key: Value, probs: Value, *, num_samples: int
) -> tuple[Value, ...]:
    return ctx.call_tuple(ctx.helper("threefry_multinomial"), key, probs, num_samples, outputs=2)
