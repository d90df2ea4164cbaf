"""Linear attention as ONNX Runtime has it, and the gates that feed it."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.attention import UpdateRule, import_linear_attention
from serde.onnx.ops.table import MICROSOFT, Import
from serde.relay.ir import Expr, call


@MICROSOFT.imports("LinearAttention", ignored=("chunk_size",))
def import_microsoft_linear_attention(
    ctx: Import, query: Expr, key: Expr, value: Expr, past_state: Expr | None = None,
    decay: Expr | None = None, beta: Expr | None = None,
    *, kv_num_heads: int, q_num_heads: int, scale: float = 0.0, state_window: int = 0,
    update_rule: UpdateRule = "gated_delta",
) -> list[Expr]:  # fmt: skip
    """There may be fewer heads of queries than of keys, too, each for a group of them."""
    if state_window:
        raise Unsupported(f"state_window={state_window}")
    if 0 < q_num_heads < kv_num_heads:
        if kv_num_heads % q_num_heads:
            raise Unsupported(f"{q_num_heads} heads of queries for {kv_num_heads} of keys")
        heads = relay.reshape(query, (0, 0, q_num_heads, -1))
        query = relay.reshape(relay.repeat(heads, kv_num_heads // q_num_heads, axis=2), (0, 0, -3))
        q_num_heads = kv_num_heads
    return import_linear_attention(
        ctx, query, key, value, past_state, decay, beta, kv_num_heads=kv_num_heads,
        q_num_heads=q_num_heads, scale=scale, update_rule=update_rule,
    )  # fmt: skip


@MICROSOFT.imports("LinearAttentionGate")
def import_linear_attention_gate(
    ctx: Import, a: Expr, dt_bias: Expr, decay_scale: Expr, b: Expr | None = None
) -> list[Expr]:
    """``decay_scale * softplus(a + dt_bias)`` and ``sigmoid(b)``, computed in float32."""
    dtype = ctx.type(a).dtype
    sums = call("serde.softplus", relay.add(relay.cast(a, "float32"), dt_bias))
    found = [relay.cast(relay.multiply(decay_scale, sums), dtype)]
    if b is not None:
        found.append(relay.cast(relay.sigmoid(relay.cast(b, "float32")), dtype))
    return found
