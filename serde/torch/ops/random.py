"""Numbers that are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, call, is_float
from serde.torch.ops.elementwise.binary import scale
from serde.torch.ops.elementwise.convert import PLACEMENT
from serde.torch.ops.shape.create import DType, Size, fill
from serde.torch.ops.table import OPS, Export, Import, SymInt, Value
from serde.torch.ops.written import cast
from serde.walk.pairs import reads

DRAWN = (*PLACEMENT, "generator")
"""Arguments that say where a tensor lies, and whose numbers it holds."""


def _draw(ctx: Import, op: str, size: Sequence[SymInt], dtype: str) -> Expr:
    """Return numbers of the unit distribution, whose lengths may be computed."""
    dims = [ctx.dim(each) for each in size]
    if all(isinstance(dim, int) for dim in dims):
        return call(op, shape=dims, dtype=dtype)
    return call(op, fill(ctx, size, ctx.scalar(0, dtype)), dtype=dtype)


def _draw_like(ctx: Import, op: str, like: Expr, dtype: DType = None) -> Expr:
    kind = ctx.dtype(like) if dtype is None else dtype.name
    shape = ctx.type(like).concrete_shape
    if shape is not None:
        return call(op, shape=shape, dtype=kind)
    return call(op, like, dtype=kind)


def _register_unit(name: str, op: str) -> None:
    @OPS.imports(f"aten::{name}", ignored=DRAWN)
    def import_drawn(ctx: Import, *, size: Size, dtype: DType = None) -> Expr:
        return _draw(ctx, op, size, ctx.default_dtype if dtype is None else dtype.name)

    @OPS.imports(f"aten::{name}_like", ignored=DRAWN)
    def import_drawn_like(ctx: Import, self: Expr, *, dtype: DType = None) -> Expr:
        return _draw_like(ctx, op, self, dtype)


_register_unit("rand", "serde.random_uniform")
_register_unit("randn", "serde.random_normal")


def _as_integers(ctx: Import, unit: Expr, low: SymInt, high: SymInt, dtype: str) -> Expr:
    """Return numbers from 0 to 1 in float64 as integers from `low` to below `high`."""
    first, last = (ctx.scalar(each, "float64") for each in (low, high))
    span = relay.subtract(last, first)
    return ctx.cast(relay.floor(relay.add(relay.multiply(unit, span), first)), dtype)


@OPS.imports("aten::randint", ignored=DRAWN)
def import_randint(
    ctx: Import, *, high: SymInt, size: Size, low: SymInt = 0, dtype: DType = None
) -> Expr:
    unit = _draw(ctx, "serde.random_uniform", size, "float64")
    return _as_integers(ctx, unit, low, high, "int64" if dtype is None else dtype.name)


@OPS.imports("aten::randint_like", ignored=DRAWN)
def import_randint_like(
    ctx: Import, self: Expr, *, high: SymInt, low: SymInt = 0, dtype: DType = None
) -> Expr:
    unit = _draw_like(ctx, "serde.random_uniform", ctx.cast(self, "float64"))
    return _as_integers(ctx, unit, low, high, ctx.dtype(self) if dtype is None else dtype.name)


@OPS.imports("aten::randperm", ignored=DRAWN)
def import_randperm(ctx: Import, *, n: SymInt, dtype: DType = None) -> Expr:
    """The order of numbers that are drawn."""
    unit = _draw(ctx, "serde.random_uniform", (n,), "float64")
    return relay.argsort(unit, axis=0, dtype="int64" if dtype is None else dtype.name)


@OPS.imports("aten::bernoulli.p", ignored=DRAWN)
def import_bernoulli_of(ctx: Import, self: Expr, *, p: float = 0.5) -> Expr:
    unit = _draw_like(ctx, "serde.random_uniform", ctx.cast(self, "float32"))
    return relay.cast(relay.less(unit, ctx.scalar(p, "float32")), ctx.dtype(self))


@OPS.imports("aten::bernoulli.Tensor", ignored=DRAWN)
def import_bernoulli_by(ctx: Import, self: Expr, p: Expr) -> Expr:
    unit = _draw_like(ctx, "serde.random_uniform", ctx.cast(self, "float32"))
    return relay.cast(relay.less(unit, ctx.cast(p, "float32")), ctx.dtype(self))


def _normal(ctx: Import, mean: Expr, std: Expr, like: Expr) -> Expr:
    """Return numbers around the means, shaped as these and the deviations broadcast."""
    unit = _draw_like(ctx, "serde.random_normal", like)
    return relay.add(relay.multiply(unit, std), mean)


@OPS.imports("aten::normal.Tensor_Tensor", ignored=DRAWN)
def import_normal(ctx: Import, mean: Expr, std: Expr) -> Expr:
    one, two = ctx.promote(mean, std)
    return _normal(ctx, one, two, relay.add(one, two))


@OPS.imports("aten::normal.Tensor_float", ignored=DRAWN)
def import_normal_around(ctx: Import, mean: Expr, *, std: float = 1.0) -> Expr:
    return _normal(ctx, mean, ctx.scalar(std, ctx.dtype(mean)), mean)


@OPS.imports("aten::normal.float_Tensor", ignored=DRAWN)
def import_normal_of(ctx: Import, std: Expr, *, mean: float) -> Expr:
    return _normal(ctx, ctx.scalar(mean, ctx.dtype(std)), std, std)


@OPS.imports("aten::normal.float_float", ignored=DRAWN)
def import_normal_sized(
    ctx: Import, *, mean: float, std: float, size: Size, dtype: DType = None
) -> Expr:
    kind = ctx.default_dtype if dtype is None else dtype.name
    unit = _draw(ctx, "serde.random_normal", size, kind)
    return relay.add(scale(ctx, unit, std), ctx.scalar(mean, kind))


@OPS.imports("aten::normal", "aten::normal_functional", ignored=DRAWN)
def import_normal_functional(
    ctx: Import, self: Expr, *, mean: float = 0.0, std: float = 1.0
) -> Expr:
    unit = _draw_like(ctx, "serde.random_normal", self)
    return relay.add(scale(ctx, unit, std), ctx.scalar(mean, ctx.dtype(self)))


@OPS.imports("aten::exponential", ignored=DRAWN)
def import_exponential(ctx: Import, self: Expr, *, lambd: float = 1.0) -> Expr:
    """The logarithm of what is left of 1."""
    unit = _draw_like(ctx, "serde.random_uniform", self)
    if not lambd > 0:
        raise Unsupported(f"exponential numbers of the rate {lambd}")
    return scale(ctx, call("serde.log1p", relay.negative(unit)), -1 / lambd)


@OPS.imports("aten::log_normal", ignored=DRAWN)
def import_log_normal(ctx: Import, self: Expr, *, mean: float = 1.0, std: float = 2.0) -> Expr:
    return relay.exp(import_normal_functional(ctx, self, mean=mean, std=std))


@OPS.imports("aten::multinomial", ignored=DRAWN)
def import_multinomial(
    ctx: Import, self: Expr, *, num_samples: SymInt, replacement: bool = False
) -> Expr:
    """Without replacement, the greatest of the weights over exponential numbers."""
    count = ctx.fixed(num_samples)
    single = ctx.type(self).rank == 1
    weights = relay.expand_dims(self, 0) if single else self
    if replacement or count == 1:
        logits = relay.log(weights)
        found: Expr = call("serde.multinomial", logits, sample_size=count, dtype="int64")
    else:
        unit = _draw_like(ctx, "serde.random_uniform", weights)
        waits = relay.negative(call("serde.log1p", relay.negative(unit)))
        rates = relay.divide(waits, weights)
        found = relay.topk(rates, count, ret_type="indices", is_ascend=True, dtype="int64")
    return relay.squeeze(found, axis=[0]) if single else found


@OPS.imports("aten::dropout")
def import_dropout(ctx: Import, input: Expr, *, p: float, train: bool) -> Expr:
    """What is kept in training is scaled up."""
    if not train:
        return relay.nn.dropout(input, rate=p)
    return _drop(ctx, input, p)[0]


def _check_rate(rate: float) -> None:
    """Refuse a part of elements to drop that is none."""
    if not 0 <= rate <= 1:
        raise Unsupported(f"dropout of a part of {rate}")


def _drop(ctx: Import, x: Expr, rate: float) -> tuple[Expr, Expr]:
    if not is_float(ctx.dtype(x)):
        raise Unsupported(f"dropout of {ctx.dtype(x)}")
    _check_rate(rate)
    if rate == 0:
        return x, relay.ones_like(ctx.cast(x, "bool"))
    unit = _draw_like(ctx, "serde.random_uniform", ctx.cast(x, "float32"))
    mask = relay.greater_equal(unit, ctx.scalar(rate, "float32"))
    factor = 1 / (1 - rate) if rate < 1 else 0.0
    return relay.multiply(scale(ctx, x, factor), ctx.cast(mask, ctx.dtype(x))), mask


@OPS.imports("aten::native_dropout")
def import_native_dropout(
    ctx: Import, input: Expr, *, p: float, train: bool | None
) -> tuple[Expr, Expr]:
    if train or train is None:
        return _drop(ctx, input, p)
    return input, relay.ones_like(ctx.cast(input, "bool"))


def _kept(ctx: Import, x: Expr, rate: float, features: bool) -> Expr:
    """Return which elements, or which channels of samples, are kept."""
    like = ctx.cast(x, "float32")
    if features:
        like = relay.max(like, axis=list(range(2, ctx.type(x).rank)), keepdims=True)
    unit = _draw_like(ctx, "serde.random_uniform", like)
    return relay.greater_equal(unit, ctx.scalar(rate, "float32"))


@OPS.imports("aten::feature_dropout")
def import_feature_dropout(ctx: Import, input: Expr, *, p: float, train: bool) -> Expr:
    """Whole channels are dropped."""
    if not train or p == 0:
        return input
    _check_rate(p)
    mask = ctx.cast(_kept(ctx, input, p, True), ctx.dtype(input))
    return relay.multiply(scale(ctx, input, 1 / (1 - p) if p < 1 else 0.0), mask)


SATURATION = -1.7580993408473766
"""What SELU tends to, far below zero."""


def _register_alpha(op: str, features: bool) -> None:
    @OPS.imports(op)
    def import_alpha_dropout(ctx: Import, input: Expr, *, p: float, train: bool) -> Expr:
        """Dropped elements are saturated; mean and variance are kept."""
        if not train or p == 0:
            return input
        _check_rate(p)
        dtype = ctx.dtype(input)
        factor = 1 / math.sqrt((1 - p) * (1 + p * SATURATION**2)) if p < 1 else 0.0
        kept = relay.where(_kept(ctx, input, p, features), input, ctx.scalar(SATURATION, dtype))
        return relay.add(scale(ctx, kept, factor), ctx.scalar(-factor * SATURATION * p, dtype))


_register_alpha("aten::alpha_dropout", features=False)
_register_alpha("aten::feature_alpha_dropout", features=True)


@OPS.imports("aten::geometric", ignored=DRAWN)
def import_geometric(ctx: Import, self: Expr, *, p: float) -> Expr:
    if not 0 < p < 1:
        raise Unsupported(f"trials that succeed with a probability of {p}")
    unit = _draw_like(ctx, "serde.random_uniform", ctx.cast(self, "float64"))
    waits = scale(ctx, call("serde.log1p", relay.negative(unit)), 1 / math.log1p(-p))
    least = relay.maximum(relay.ceil(waits), ctx.scalar(1, "float64"))
    return ctx.cast(least, ctx.dtype(self))


@OPS.imports("aten::cauchy", ignored=DRAWN)
def import_cauchy(ctx: Import, self: Expr, *, median: float = 0.0, sigma: float = 1.0) -> Expr:
    unit = _draw_like(ctx, "serde.random_uniform", self)
    dtype = ctx.dtype(self)
    angle = scale(ctx, relay.subtract(unit, ctx.scalar(0.5, dtype)), math.pi)
    return relay.add(scale(ctx, relay.tan(angle), sigma), ctx.scalar(median, dtype))


@OPS.imports("aten::native_dropout_backward")
def import_native_dropout_backward(
    ctx: Import, grad_output: Expr, mask: Expr, *, scale: float
) -> Expr:
    """The mask is scaled as a tensor of the gradient's dtype by a number with a fraction."""
    factors = ctx.promote(ctx.cast(mask, ctx.dtype(grad_output)), ctx.number(scale))
    return relay.multiply(*ctx.promote(grad_output, relay.multiply(*factors)))


OPS.pairs(
    reads("aten::bernoulli", "serde.bernoulli", ignored=DRAWN),
    reads("aten::poisson", "serde.random_poisson", ignored=DRAWN),
)


def _scaled(ctx: Export, target: str, factor: float, offset: float) -> Value:
    type_ = ctx.result_type()
    drawn = ctx.call(target, ctx.sizes(type_.shape), dtype=ctx.dtype(type_.dtype))
    if factor != 1:
        drawn = ctx.infix("*", drawn, factor)
    return ctx.infix("+", drawn, offset) if offset else drawn


@OPS.exports("serde.random_uniform", ignored=("shape", "dtype"))
def export_random_uniform(ctx: Export, like: Value | None, *, low: float, high: float) -> Value:
    return _scaled(ctx, "torch.rand", high - low, low)


@OPS.exports("serde.random_normal", ignored=("shape", "dtype"))
def export_random_normal(ctx: Export, like: Value | None, *, mean: float, scale: float) -> Value:
    return _scaled(ctx, "torch.randn", scale, mean)


@OPS.exports("serde.bernoulli", ignored=("dtype",))
def export_bernoulli(ctx: Export, probs: Value) -> Value:
    own = ctx.type(probs).dtype
    return cast(ctx, ctx.call("torch.bernoulli", probs), ctx.result_type().dtype, own)


@OPS.exports("serde.multinomial")
def export_multinomial(
    ctx: Export, logits: Value, *, sample_size: int, dtype: np.dtype[AnyValue]
) -> Value:
    probs = ctx.call("F.softmax", cast(ctx, logits, "float32"), dim=-1)
    drawn = ctx.call("torch.multinomial", probs, sample_size, replacement=True)
    return cast(ctx, drawn, dtype.name, "int64")


def _export_each(ctx: Export, rate: Value, *, target: str) -> Value:
    return ctx.call(target, ctx.method(rate, "expand", ctx.sizes(ctx.result_type().shape)))


for _name, _target in {"gamma": "torch._standard_gamma", "poisson": "torch.poisson"}.items():
    OPS.exports(f"serde.random_{_name}", ignored=("shape",))(partial(_export_each, target=_target))


@OPS.exports("random.threefry_generate")
def export_threefry_generate(
    ctx: Export, key: Value, *, out_shape: tuple[int, ...]
) -> tuple[Value, ...]:
    return ctx.call_tuple(ctx.helper("threefry_generate"), key, list(out_shape), outputs=2)


@OPS.exports("random.threefry_split")
def export_threefry_split(ctx: Export, key: Value) -> tuple[Value, ...]:
    return ctx.call_tuple(ctx.helper("threefry_split"), key, outputs=2)


def _export_threefry(
    ctx: Export, key: Value, one: Value, two: Value, *, name: str, out_shape: tuple[int, ...]
) -> tuple[Value, ...]:
    helper = ctx.helper(f"threefry_{name}")
    return ctx.call_tuple(helper, key, one, two, list(out_shape), outputs=2)


for _name in ("uniform", "normal"):
    OPS.exports(f"random.{_name}", ignored=("out_dtype",))(partial(_export_threefry, name=_name))


@OPS.exports("random.multinomial")
def export_random_multinomial(
    ctx: Export, key: Value, probs: Value, *, num_samples: int
) -> tuple[Value, ...]:
    return ctx.call_tuple(ctx.helper("threefry_multinomial"), key, probs, num_samples, outputs=2)
