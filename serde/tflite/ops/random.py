"""Random numbers; each draw gives others, whatever seeds say."""

from __future__ import annotations

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.tflite.import_context import ImportContext
from serde.tflite.ops.table import OPS

__all__: list[str] = []


@OPS.imports("RANDOM_UNIFORM", ignored=("seed", "seed2"))
def import_random_uniform(ctx: ImportContext, shape: Expr) -> Expr:
    return relay.serde.random_uniform(shape=ctx.ints(shape), dtype="float32")


@OPS.imports("RANDOM_STANDARD_NORMAL", ignored=("seed", "seed2"))
def import_random_standard_normal(ctx: ImportContext, shape: Expr) -> Expr:
    return relay.serde.random_normal(shape=ctx.ints(shape), dtype="float32")


@OPS.imports("MULTINOMIAL", ignored=("seed", "seed2"))
def import_multinomial(ctx: ImportContext, logits: Expr, count: Expr) -> Expr:
    return relay.serde.multinomial(logits, int(ctx.item(count)), ctx.result().dtype)
