"""Random numbers."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core.records import dataclass
from serde.coreml.neuralnetwork.import_context import number
from serde.coreml.neuralnetwork.ops.table import LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr


def _to_relay_seed(seed: int) -> float | None:
    """Return a seed; -1 stands for another one each time."""
    return None if seed == -1 else float(seed)


@dataclass(frozen=True, kw_only=True)
class NormalAttributes:
    """Attributes of the layers that draw from a normal distribution."""

    seed: int = 0
    mean: float = 0.0
    std_dev: float = 0.0

    def draw(self, like: Expr | None, shape: tuple[int, ...] | None = None) -> Expr:
        """Return numbers as many as `like` has, or of a fixed shape."""
        return relay.serde.random_normal(
            like, shape=shape, dtype="float32", mean=self.mean, scale=self.std_dev,
            seed=_to_relay_seed(self.seed),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class UniformAttributes:
    """Attributes of the layers that draw from a uniform distribution."""

    seed: int = 0
    min_val: float = 0.0
    max_val: float = 0.0

    def draw(self, like: Expr | None, shape: tuple[int, ...] | None = None) -> Expr:
        """Return numbers as many as `like` has, or of a fixed shape."""
        return relay.serde.random_uniform(
            like, shape=shape, dtype="float32", low=self.min_val, high=self.max_val,
            seed=_to_relay_seed(self.seed),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BernoulliAttributes:
    """Attributes of the layers that draw zeros and ones."""

    seed: int = 0
    prob: float = 0.0

    def draw(self, chances: Expr) -> Expr:
        """Return as many of them as there are chances."""
        return relay.serde.bernoulli(chances, dtype="float32", seed=_to_relay_seed(self.seed))

    @property
    def chance(self) -> Expr:
        """The chance of a one."""
        return relay.const(np.float32(self.prob))


def _fill_shape(ctx: Import, shape: Expr) -> Expr:
    """Return a tensor of a shape that is computed."""
    return relay.full(relay.const(np.float32(0)), ctx.integers(shape), "float32")


@LAYERS.imports("randomNormalLike")
def import_random_normal_like(ctx: Import, x: Expr, *, normal: NormalAttributes) -> Expr:
    return normal.draw(x)


@LAYERS.imports("randomNormalStatic")
def import_random_normal_static(
    ctx: Import, *, normal: NormalAttributes, output_shape: tuple[int, ...] = ()
) -> Expr:
    return normal.draw(None, shape=output_shape)


@LAYERS.imports("randomNormalDynamic")
def import_random_normal_dynamic(ctx: Import, shape: Expr, *, normal: NormalAttributes) -> Expr:
    return normal.draw(_fill_shape(ctx, shape))


@LAYERS.imports("randomUniformLike")
def import_random_uniform_like(ctx: Import, x: Expr, *, uniform: UniformAttributes) -> Expr:
    return uniform.draw(x)


@LAYERS.imports("randomUniformStatic")
def import_random_uniform_static(
    ctx: Import, *, uniform: UniformAttributes, output_shape: tuple[int, ...] = ()
) -> Expr:
    return uniform.draw(None, shape=output_shape)


@LAYERS.imports("randomUniformDynamic")
def import_random_uniform_dynamic(ctx: Import, shape: Expr, *, uniform: UniformAttributes) -> Expr:
    return uniform.draw(_fill_shape(ctx, shape))


@LAYERS.imports("randomBernoulliLike")
def import_random_bernoulli_like(ctx: Import, x: Expr, *, bernoulli: BernoulliAttributes) -> Expr:
    return bernoulli.draw(relay.full_like(x, bernoulli.chance))


@LAYERS.imports("randomBernoulliStatic")
def import_random_bernoulli_static(
    ctx: Import, *, bernoulli: BernoulliAttributes, output_shape: tuple[int, ...] = ()
) -> Expr:
    return bernoulli.draw(relay.full(bernoulli.chance, output_shape, "float32"))


@LAYERS.imports("randomBernoulliDynamic")
def import_random_bernoulli_dynamic(
    ctx: Import, shape: Expr, *, bernoulli: BernoulliAttributes
) -> Expr:
    return bernoulli.draw(relay.full(bernoulli.chance, ctx.integers(shape), "float32"))


@LAYERS.imports("categoricalDistribution")
def import_categorical_distribution(
    ctx: Import, x: Expr,
    *, seed: int = 0, num_samples: int = 1, is_logits: bool = False, eps: float = 1e-10,
    temperature: float = 1.0,
) -> Expr:  # fmt: skip
    """Chances become logarithms, with a constant added, before the temperature divides them."""
    if ctx.type(x).rank != 2:
        raise Unsupported(f"a tensor of {ctx.type(x).rank} axes")
    logits = x if is_logits else relay.log(relay.add(x, number(eps)))
    if temperature != 1:
        logits = relay.divide(logits, number(temperature))
    found = relay.serde.multinomial(
        logits, sample_size=num_samples, dtype="int32", seed=_to_relay_seed(seed)
    )
    return relay.cast(found, "float32")


def _emit_random(
    ctx: Export, name: str, shape: Value, fields: dict[str, AnyValue], seed: int
) -> Value:
    """Append a layer that draws numbers of a shape, known or computed."""
    if shape.data is None:
        return ctx.layer(f"{name}Dynamic", shape, seed=seed, **fields)
    lengths = [int(each) for each in shape.data] or [1]
    return ctx.layer(f"{name}Static", seed=seed, output_shape=lengths, **fields)


@LAYERS.exports("random_uniform")
def export_random_uniform(
    ctx: Export, shape: Value, *, low: float = 0.0, high: float = 1.0, seed: int = -1
) -> Value:
    return _emit_random(ctx, "randomUniform", shape, {"min_val": low, "max_val": high}, seed)


@LAYERS.exports("random_normal")
def export_random_normal(
    ctx: Export, shape: Value, *, mean: float = 0.0, stddev: float = 1.0, seed: int = -1
) -> Value:
    return _emit_random(ctx, "randomNormal", shape, {"mean": mean, "std_dev": stddev}, seed)


@LAYERS.exports("random_categorical")
def export_random_categorical(
    ctx: Export, x: Value, *, mode: str = "logits", size: int = 1, seed: int = -1
) -> Value:
    logits = mode == "logits"
    return ctx.layer(
        "categoricalDistribution", x, num_samples=size, is_logits=logits, eps=1e-10,
        temperature=1.0, seed=seed,
    )  # fmt: skip
