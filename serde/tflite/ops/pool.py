"""Pooling over images whose channels come last; averages leave padding out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any as AnyValue

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.tflite.import_context import ImportContext
from serde.tflite.ops.table import INTEGERS, OPS
from serde.tflite.ops.window import padding_of
from serde.tflite.quantization import limited

__all__ = ["PoolOptions"]


@dataclass(frozen=True, kw_only=True)
class PoolOptions:
    """Options that the poolings share."""

    padding: int = 0
    stride_w: int = 0
    stride_h: int = 0
    filter_width: int = 0
    filter_height: int = 0
    fused_activation_function: int = 0

    def window(self, ctx: ImportContext, x: Expr) -> dict[str, AnyValue]:
        """Return windows as Relay's attributes have them."""
        size, strides = (self.filter_height, self.filter_width), (self.stride_h, self.stride_w)
        pads = padding_of(ctx, x, self.padding, size, strides)
        return {"pool_size": size, "strides": strides, "padding": pads, "layout": "NHWC"}


@OPS.imports("AVERAGE_POOL_2D")
def import_average_pool_2d(ctx: ImportContext, x: Expr, *, pool: PoolOptions) -> Expr:
    found = relay.nn.avg_pool2d(x, **pool.window(ctx, x))
    return ctx.activated(found, pool.fused_activation_function)


@OPS.imports("MAX_POOL_2D")
def import_max_pool_2d(ctx: ImportContext, x: Expr, *, pool: PoolOptions) -> Expr:
    found = relay.nn.max_pool2d(x, **pool.window(ctx, x))
    return ctx.activated(found, pool.fused_activation_function)


@INTEGERS.imports("MAX_POOL_2D")
def import_integer_max_pool_2d(ctx: ImportContext, x: Expr, *, pool: PoolOptions) -> Expr:
    """Codes are compared as they are."""
    found = relay.nn.max_pool2d(x, **pool.window(ctx, x))
    return limited(found, ctx.result(), pool.fused_activation_function)


@OPS.imports("L2_POOL_2D")
def import_l2_pool_2d(ctx: ImportContext, x: Expr, *, pool: PoolOptions) -> Expr:
    found = relay.sqrt(relay.nn.avg_pool2d(relay.multiply(x, x), **pool.window(ctx, x)))
    return ctx.activated(found, pool.fused_activation_function)
