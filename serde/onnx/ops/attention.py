"""Attention."""

from __future__ import annotations

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.table import OPS
from serde.relay.dims import Any
from serde.relay.expr import Call
from serde.relay.types import TensorType


def _has_form(node: Call) -> bool:
    """A mask has a row for each query and a column for each key, so their numbers must be known."""
    query, key, _, mask = (argument.type for argument in node.args)
    if not isinstance(mask, TensorType) or not isinstance(query, TensorType):
        return True
    known = isinstance(key, TensorType) and not isinstance(key.shape[2], Any)
    return known and not isinstance(query.shape[2], Any)


def _whole_mask(ctx: Ctx, query: Value, key: Value, mask: Value | None) -> Value | None:
    """ONNX pads a row that is too short, and ONNX Runtime repeats neither rows nor columns."""
    if mask is None:
        return None
    plane = (ctx.type(query).shape[2], ctx.type(key).shape[2])
    if ctx.type(mask).shape[-2:] == plane:
        return mask
    return ctx.emit("Expand", mask, ctx.shape(plane))


@OPS.exports("serde.attention", since=23, when=_has_form)
def export_attention(
    ctx: Ctx,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    *,
    scale: float | None,
    is_causal: bool,
    softcap: float | None,
) -> Value:
    return ctx.emit(
        "Attention",
        query,
        key,
        value,
        _whole_mask(ctx, query, key, mask),
        scale=scale,
        is_causal=int(is_causal) or None,
        softcap=softcap,
    )
