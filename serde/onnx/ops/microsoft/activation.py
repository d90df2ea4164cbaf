"""Activations, alone and behind a bias."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.activation import apply_to_rows
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.table import MICROSOFT
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


@MICROSOFT.imports("Gelu")
def import_gelu(ctx: ImportContext, x: Expr) -> Expr:
    return call("serde.gelu", x)


@MICROSOFT.imports("BiasGelu")
def import_bias_gelu(ctx: ImportContext, x: Expr, bias: Expr) -> Expr:
    return call("serde.gelu", relay.add(x, bias))


@MICROSOFT.imports("FastGelu")
def import_fast_gelu(ctx: ImportContext, x: Expr, bias: Expr | None = None) -> Expr:
    """The form with a hyperbolic tangent."""
    return call("serde.gelu", x if bias is None else relay.add(x, bias), approximate="tanh")


@MICROSOFT.imports("QuickGelu")
def import_quick_gelu(ctx: ImportContext, x: Expr, *, alpha: float = 1.702) -> Expr:
    """``y = x * sigmoid(alpha * x)``."""
    return relay.multiply(x, relay.sigmoid(relay.multiply(x, scalar_like(ctx, x, alpha))))


@MICROSOFT.imports("BiasSoftmax")
def import_bias_softmax(
    ctx: ImportContext, x: Expr, bias: Expr, *, axis: int = 1, is_inner_broadcast: bool
) -> Expr:
    """All axes from `axis` on form one row; the bias has length 1 where it is repeated."""
    rank = ctx.type(x).rank
    shape, biased = ctx.type(x).shape, ctx.type(bias).shape
    if len(biased) != rank or biased[axis:] != shape[axis:]:
        raise Unsupported(f"a bias of {ctx.type(bias)!r} for {ctx.type(x)!r}")
    return apply_to_rows(ctx, relay.add(x, bias), axis, relay.nn.softmax)


def apply_activation(ctx: ImportContext, x: Expr, name: str, params: tuple[float, ...]) -> Expr:
    """Return the function that a fused layer names.

    Raises:
        Unsupported: It is unknown, or lacks parameters.
    """
    counts = {"LeakyRelu": 1, "Clip": 2, "HardSigmoid": 2}
    if len(params) != counts.get(name, 0):
        raise Unsupported(f"activation {name!r} with {len(params)} parameters")
    match name:
        case "":
            return x
        case "Relu":
            return relay.nn.relu(x)
        case "Tanh":
            return relay.tanh(x)
        case "Sigmoid":
            return relay.sigmoid(x)
        case "LeakyRelu":
            return relay.nn.leaky_relu(x, alpha=params[0])
        case "Clip":
            return relay.clip(x, params[0], params[1])
        case "HardSigmoid":
            return call("serde.hard_sigmoid", x, alpha=params[0], beta=params[1])
    raise Unsupported(f"activation {name!r} is unknown")
