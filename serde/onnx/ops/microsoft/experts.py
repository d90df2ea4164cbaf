"""Mixtures of experts: each token goes through the few layers that a router picks for it."""

from __future__ import annotations

from typing import Literal

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.microsoft.activation import SwigluAttributes, split_last_axis
from serde.onnx.ops.microsoft.linalg import dequantize_rows, unpack_bits
from serde.onnx.ops.table import MICROSOFT, Import
from serde.relay.ir import Expr, call

Dense = tuple[Expr, Expr | None]
"""Weights of (experts, outputs, inputs), and biases of (experts, outputs)."""


@dataclass(frozen=True, kw_only=True)
class ExpertAttributes(SwigluAttributes):
    """Attributes of mixtures of experts."""

    activation_type: Literal["relu", "gelu", "silu", "swiglu", "identity", "relu2", "geglu"] = (
        "relu"
    )
    k: int = 1
    normalize_routing_weights: bool = False
    swiglu_fusion: int = 0
    swiglu_limit: float | None = None
    swiglu_limit_after_activation: bool = False
    use_sparse_mixer: bool = False

    def mix(
        self, ctx: Import, x: Expr, router: Expr, first: Dense, second: Dense, third: Dense | None,
        weights: Expr | None = None,
    ) -> Expr:  # fmt: skip
        """Return the sum of the experts' results, each times its share.

        All experts see all tokens, as only then shapes do not depend on values.
        The shares are the softmax of the router, or are taken from `weights`.
        """
        if self.use_sparse_mixer or self.swiglu_limit_after_activation:
            raise Unsupported("use_sparse_mixer=1, or swiglu_limit_after_activation=1")
        (width,) = ctx.static_lengths(x, [ctx.type(x).rank - 1])
        tokens = relay.expand_dims(relay.reshape(x, (-1, width)), axis=0)
        beside = None if third is None else _project(tokens, third)
        hidden = self._activate(ctx, _project(tokens, first), beside)
        found = _project(hidden, second)
        shares, picked = (
            relay.expand_dims(relay.transpose(each, axes=[1, 0]), axis=2)
            for each in self._route(ctx, router, weights)
        )
        zero = scalar_like(ctx, x, 0)
        kept = relay.where(relay.greater(picked, zero), relay.multiply(found, shares), zero)
        return relay.reshape_like(relay.sum(kept, axis=0), x)

    def _route(self, ctx: Import, router: Expr, weights: Expr | None) -> tuple[Expr, Expr]:
        """Return the share of each expert in each token, and a one where it is picked."""
        (count,) = ctx.static_lengths(router, [1])
        if not 0 < self.k <= count:
            raise Unsupported(f"k={self.k} of {count} experts")
        values, indices = relay.topk(router, k=self.k, axis=1, dtype="int64")
        if weights is not None:
            shares = relay.gather(weights, 1, indices)
            if self.normalize_routing_weights:
                shares = relay.divide(shares, relay.sum(shares, axis=1, keepdims=True))
        elif self.normalize_routing_weights:
            shares = relay.nn.softmax(values, axis=1)
        else:
            shares = relay.gather(relay.nn.softmax(router, axis=1), 1, indices)
        one, zero = (scalar_like(ctx, router, value) for value in (1, 0))
        places = relay.one_hot(indices, one, zero, count, -1, ctx.type(router).dtype)
        spread = relay.multiply(places, relay.expand_dims(shares, axis=2))
        return relay.sum(spread, axis=1), relay.sum(places, axis=1)

    def _activate(self, ctx: Import, hidden: Expr, beside: Expr | None) -> Expr:
        """Return the activated first layer, times the layer beside it if there is one."""
        if self.activation_type not in ("swiglu", "geglu"):
            found = self._apply(ctx, hidden)
            return found if beside is None else relay.multiply(found, beside)
        if (beside is None) != (self.swiglu_fusion in (1, 2)):
            raise Unsupported(f"swiglu_fusion={self.swiglu_fusion} with other weights than these")
        gate, up = (hidden, beside) if beside is not None else self._part(ctx, hidden)
        if self.activation_type == "swiglu":
            return self.build(ctx, gate, up, self.swiglu_limit)
        return relay.multiply(call("serde.gelu", gate, approximate="tanh"), up)

    def _part(self, ctx: Import, hidden: Expr) -> list[Expr]:
        if self.swiglu_fusion == 2:
            return split_last_axis(hidden, 2)
        (width,) = ctx.static_lengths(hidden, [2])
        return [
            relay.strided_slice(hidden, begin=[begin], end=[width], strides=[2], axes=[2])
            for begin in (0, 1)
        ]

    def _apply(self, ctx: Import, x: Expr) -> Expr:
        """Return an activation that gates nothing; that of Gelu is the form with a tangent."""
        match self.activation_type:
            case "gelu":
                return call("serde.gelu", x, approximate="tanh")
            case "silu":
                return call("serde.silu", x)
            case "identity":
                return x
        positive = relay.nn.relu(x)
        return positive if self.activation_type == "relu" else relay.multiply(positive, positive)


def _project(x: Expr, layer: Dense) -> Expr:
    """Return a dense layer of each expert, of (experts, tokens, outputs)."""
    weight, bias = layer
    found = relay.nn.batch_matmul(x, weight)
    return found if bias is None else relay.add(found, relay.expand_dims(bias, axis=1))


@MICROSOFT.imports("MoE")
def import_moe(
    ctx: Import, x: Expr, router_probs: Expr, fc1_experts_weights: Expr,
    fc1_experts_bias: Expr | None, fc2_experts_weights: Expr, fc2_experts_bias: Expr | None = None,
    fc3_experts_weights: Expr | None = None, fc3_experts_bias: Expr | None = None,
    *, experts: ExpertAttributes,
) -> Expr:  # fmt: skip
    first, second = (fc1_experts_weights, fc1_experts_bias), (fc2_experts_weights, fc2_experts_bias)
    third = None if fc3_experts_weights is None else (fc3_experts_weights, fc3_experts_bias)
    return experts.mix(ctx, x, router_probs, first, second, third)


@dataclass(frozen=True, kw_only=True)
class QuantizedExpertAttributes(ExpertAttributes):
    """Attributes of mixtures of experts whose weights are levels."""

    block_size: int = 0
    expert_weight_bits: int = 4
    fc1_expert_weight_bits: int | None = None
    fc2_expert_weight_bits: int | None = None
    fc3_expert_weight_bits: int | None = None
    quant_type: str = "int"
    weights_prepacked: int = -1

    def expand(
        self, ctx: Import, packed: Expr, scales: Expr, points: Expr | None, bits: int | None
    ) -> Expr:
        """Return weights in the dtype of their scales.

        Zero points of blocks fill bytes row by row, those of whole rows expert by expert.
        """
        bits = bits or self.expert_weight_bits
        if bits not in (2, 4, 8):
            raise Unsupported(f"weights of {bits} bits")
        if ctx.type(packed).rank != 3:
            raise Unsupported(f"weights of {ctx.type(packed)!r}")
        experts, count, _ = ctx.static_shape(packed)
        rows = unpack_bits(ctx, relay.reshape(packed, (experts * count, -1)), bits)
        (depth,) = ctx.static_lengths(rows, [1])
        block_size = self.block_size if self.block_size > 0 else depth
        if not depth or depth % block_size:
            raise Unsupported(f"rows of {depth} in blocks of {block_size}")
        blocks = depth // block_size
        if points is not None:
            line, length = (experts * count, blocks) if self.block_size > 0 else (experts, count)
            points = unpack_bits(ctx, relay.reshape(points, (line, -1)), bits)
            points = relay.strided_slice(points, begin=[0], end=[length], strides=[1], axes=[1])
            points = relay.reshape(points, (experts * count, blocks))
        factors = relay.reshape(scales, (experts * count, blocks))
        weight = dequantize_rows(ctx, rows, factors, points, bits, block_size)
        return relay.reshape(weight, (experts, count, depth))


@MICROSOFT.imports("QMoE", ignored=("accuracy_level",))
def import_qmoe(
    ctx: Import, x: Expr, router_probs: Expr, fc1_experts_weights: Expr, fc1_scales: Expr,
    fc1_experts_bias: Expr | None, fc2_experts_weights: Expr, fc2_scales: Expr,
    fc2_experts_bias: Expr | None = None, fc3_experts_weights: Expr | None = None,
    fc3_scales: Expr | None = None, fc3_experts_bias: Expr | None = None,
    fc1_zero_points: Expr | None = None, fc2_zero_points: Expr | None = None,
    fc3_zero_points: Expr | None = None, router_weights: Expr | None = None,
    *, experts: QuantizedExpertAttributes,
) -> Expr:  # fmt: skip
    """Weights whose layout is not named are laid out as ONNX Runtime reads them on a processor."""
    if experts.quant_type != "int" or experts.weights_prepacked == 1:
        raise Unsupported(
            f"quant_type={experts.quant_type!r}, weights_prepacked={experts.weights_prepacked}"
        )
    if router_weights is None and not experts.normalize_routing_weights:
        raise Unsupported(
            "normalize_routing_weights=0 without router_weights, which kernels read in two ways"
        )
    dtype, layers = ctx.type(x).dtype, []
    for packed, scales, bias, points, bits in (
        (fc1_experts_weights, fc1_scales, fc1_experts_bias, fc1_zero_points,
         experts.fc1_expert_weight_bits),
        (fc2_experts_weights, fc2_scales, fc2_experts_bias, fc2_zero_points,
         experts.fc2_expert_weight_bits),
        (fc3_experts_weights, fc3_scales, fc3_experts_bias, fc3_zero_points,
         experts.fc3_expert_weight_bits),
    ):  # fmt: skip
        if packed is not None:
            if scales is None:
                raise Unsupported("weights without scales")
            weight = relay.cast(experts.expand(ctx, packed, scales, points, bits), dtype)
            layers.append((weight, bias))
    third = layers[2] if len(layers) > 2 else None
    return experts.mix(ctx, x, router_probs, layers[0], layers[1], third, router_weights)
