"""Activations, alone and behind a bias."""

from __future__ import annotations

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.onnx.ops.activation import apply_to_rows
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.table import MICROSOFT, Import
from serde.relay.ir import Expr, call


@MICROSOFT.imports("Gelu")
def import_gelu(ctx: Import, x: Expr) -> Expr:
    return call("serde.gelu", x)


@MICROSOFT.imports("BiasGelu")
def import_bias_gelu(ctx: Import, x: Expr, bias: Expr) -> Expr:
    return call("serde.gelu", relay.add(x, bias))


@MICROSOFT.imports("FastGelu")
def import_fast_gelu(ctx: Import, x: Expr, bias: Expr | None = None) -> Expr:
    """The form with a hyperbolic tangent."""
    return call("serde.gelu", x if bias is None else relay.add(x, bias), approximate="tanh")


@MICROSOFT.imports("QuickGelu")
def import_quick_gelu(ctx: Import, x: Expr, *, alpha: float = 1.702) -> Expr:
    """``y = x * sigmoid(alpha * x)``."""
    return relay.multiply(x, relay.sigmoid(relay.multiply(x, scalar_like(ctx, x, alpha))))


@MICROSOFT.imports("BiasSplitGelu")
def import_bias_split_gelu(ctx: Import, x: Expr, bias: Expr) -> Expr:
    """``y = left * gelu(right)``, of the halves of the last axis."""
    left, right = split_last_axis(relay.add(x, bias), 2)
    return relay.multiply(left, call("serde.gelu", right))


@dataclass(frozen=True, kw_only=True)
class SwigluAttributes:
    """Attributes of gated activations, of which experts have two."""

    activation_alpha: float = 1.0
    activation_beta: float = 0.0

    def build(self, ctx: Import, gate: Expr, up: Expr, limit: float | None) -> Expr:
        """Return ``gate * sigmoid(alpha * gate) * (up + beta)``, both sides clipped at a limit."""
        if limit is not None:
            gate = relay.minimum(gate, scalar_like(ctx, gate, limit))
            up = relay.clip(up, -limit, limit)
        if self.activation_beta:
            up = relay.add(up, scalar_like(ctx, up, self.activation_beta))
        return call("serde.swiglu", gate, up, alpha=self.activation_alpha)


@MICROSOFT.imports("SwiGLU")
def import_microsoft_swiglu(
    ctx: Import,
    gate: Expr,
    up: Expr | None = None,
    *,
    limit: float = 0.0,
    round_activation: bool = False,
    swiglu: SwigluAttributes,
) -> Expr:
    """Without `up` its values are behind those of the gate. Only float16 is rounded halfway."""
    if round_activation and ctx.type(gate).dtype != "float32":
        raise Unsupported("round_activation=1")
    if up is None:
        gate, up = split_last_axis(gate, 2)
    return swiglu.build(ctx, gate, up, limit if limit > 0 else None)


def split_last_axis(x: Expr, count: int) -> list[Expr]:
    """Return `count` equal parts of the last axis."""
    parts = relay.split(x, count, axis=-1)
    return [parts[index] for index in range(count)]


@MICROSOFT.imports("BiasSoftmax")
def import_bias_softmax(
    ctx: Import, x: Expr, bias: Expr, *, axis: int = 1, is_inner_broadcast: bool
) -> Expr:
    """All axes from `axis` on form one row; the bias has length 1 where it is repeated."""
    rank = ctx.type(x).rank
    shape, biased = ctx.type(x).shape, ctx.type(bias).shape
    if len(biased) != rank or biased[axis:] != shape[axis:]:
        raise Unsupported(f"a bias of {ctx.type(bias)!r} for {ctx.type(x)!r}")
    return apply_to_rows(ctx, relay.add(x, bias), axis, relay.nn.softmax)


def apply_activation(ctx: Import, x: Expr, name: str, params: tuple[float, ...]) -> Expr:
    """Return the function that a fused layer names."""
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
