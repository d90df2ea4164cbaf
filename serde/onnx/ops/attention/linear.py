"""Linear attention: a layer with a state from step to step."""

from __future__ import annotations

from typing import Literal

from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr, TupleGetItem
from serde.relay.ir.registry import call

UpdateRule = Literal["linear", "gated", "delta", "gated_delta"]


@OPS.exports("serde.linear_attention", since=27)
def export_linear_attention(
    ctx: ExportContext,
    query: Value,
    key: Value,
    value: Value,
    decay: Value | None,
    beta: Value | None,
    state: Value | None,
    *,
    num_heads: int,
    num_key_heads: int,
    scale: float | None,
) -> tuple[Value, ...]:
    """The rule that ONNX names follows from what is given."""
    names = [name for name, x in (("gated", decay), ("delta", beta)) if x is not None]
    return ctx.emit_tuple(
        "LinearAttention",
        query,
        key,
        value,
        state,
        decay,
        beta,
        outputs=2,
        q_num_heads=num_heads,
        kv_num_heads=num_key_heads,
        scale=scale,
        update_rule="_".join(names) or "linear",
    )


@OPS.imports("LinearAttention", since=27, ignored=("chunk_size",))
def import_linear_attention(
    ctx: ImportContext,
    query: Expr,
    key: Expr,
    value: Expr,
    past_state: Expr | None = None,
    decay: Expr | None = None,
    beta: Expr | None = None,
    *,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    update_rule: UpdateRule = "gated_delta",
) -> list[Expr]:
    """The size of a chunk bears on speed alone."""
    if (decay is not None) != ("gated" in update_rule):
        raise Unsupported(f"update_rule {update_rule!r} and decay do not go together")
    if (beta is not None) != ("delta" in update_rule):
        raise Unsupported(f"update_rule {update_rule!r} and beta do not go together")
    found = call(
        "serde.linear_attention",
        query,
        key,
        value,
        decay,
        beta,
        past_state,
        num_heads=q_num_heads,
        num_key_heads=kv_num_heads,
        scale=scale or None,
    )
    return [TupleGetItem(found, index) for index in range(2)]
