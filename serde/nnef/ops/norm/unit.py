"""Normalisation to a length of one."""

from __future__ import annotations

import math

import serde.relay as relay
from serde.nnef.export_context import ExportContext, Value, is_exact
from serde.nnef.import_context import ImportContext
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Call, Expr, tensor_type

__all__: list[str] = []


@OPS.imports("l1_normalization")
def import_l1_normalization(
    ctx: ImportContext,
    input: Expr,
    *,
    axes: tuple[int, ...],
    bias: float = 0.0,
    epsilon: float = 0.0,
) -> Expr:
    length = relay.sum(relay.abs(input), axis=axes, keepdims=True)
    return _divide(ctx, input, length, bias, epsilon)


@OPS.imports("l2_normalization")
def import_l2_normalization(
    ctx: ImportContext,
    input: Expr,
    *,
    axes: tuple[int, ...],
    bias: float = 0.0,
    epsilon: float = 0.0,
) -> Expr:
    """Relay has a bound of the square: ``max(sqrt(s), e) == sqrt(max(s, e**2))``."""
    if axes and not bias and epsilon >= 0 and _has_square(epsilon):
        return relay.nn.l2_normalize(input, eps=epsilon**2, axis=axes)
    total = relay.sum(relay.multiply(input, input), axis=axes, keepdims=True)
    return _divide(ctx, input, relay.sqrt(total), bias, epsilon)


def _has_square(epsilon: float) -> bool:
    """Whether the square is a normal number of 32 bits, or zero for zero."""
    return not epsilon or 1.2e-38 < epsilon**2 < 3.4e38


def _divide(ctx: ImportContext, x: Expr, length: Expr, bias: float, epsilon: float) -> Expr:
    """Return ``x / max(length + bias, epsilon)``."""
    if bias:
        length = relay.add(length, ctx.const(bias))
    return relay.divide(x, relay.maximum(length, ctx.const(epsilon)))


def _is_exact(call: Call) -> bool:
    """Whether the text holds the bound of the length."""
    eps = call.attrs["eps"]
    return eps >= 0 and is_exact(tensor_type(call.args[0]).dtype, math.sqrt(eps))


@OPS.exports("nn.l2_normalize", when=_is_exact)
def export_l2_normalize(
    ctx: ExportContext, data: Value, *, eps: float, axis: tuple[int, ...]
) -> Value:
    """No axis stands for all of them."""
    type_ = ctx.type(data)
    axes = sorted(each % type_.rank for each in axis) or list(range(type_.rank))
    return ctx.emit("l2_normalization", data, axes=axes, epsilon=math.sqrt(eps))
