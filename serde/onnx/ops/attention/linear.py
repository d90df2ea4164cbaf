"""Linear attention and causal convolution: layers with a state from step to step."""

from __future__ import annotations

import math
from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.attention.heads import join_heads, split_heads
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr, Function, Tuple, TupleGetItem, Var, const
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType

UpdateRule = Literal["linear", "gated", "delta", "gated_delta"]


def _split_in_float32(x: Expr, count: int) -> Expr:
    return relay.cast(split_heads(x, count), "float32")


def _zero_state(key: Expr, width: int) -> Expr:
    """Return zeros of (batch, heads, key width, `width`)."""
    row = relay.zeros_like(relay.sum(key, axis=2))
    return relay.repeat(relay.expand_dims(row, axis=3), width, axis=3)


def _build_step(types: dict[str, TensorType], scale: float, group: int) -> Function:
    """Return what one time does to the state: q, k, v, and decay and beta where there are any."""
    given = {name: Var(name, type_) for name, type_ in types.items()}
    state: Expr = given["state"]
    key = relay.expand_dims(given["k"], axis=3)
    value: Expr = given["v"]
    if "decay" in given:
        state = relay.multiply(state, relay.expand_dims(relay.exp(given["decay"]), axis=3))
    if "beta" in given:
        retrieved = relay.sum(relay.multiply(state, key), axis=2)
        value = relay.multiply(given["beta"], relay.subtract(value, retrieved))
    state = relay.add(state, relay.multiply(key, relay.expand_dims(value, axis=2)))
    shared = state if group == 1 else relay.repeat(state, group, axis=1)
    query = relay.multiply(given["q"], const(scale, "float32"))
    found = relay.sum(relay.multiply(relay.expand_dims(query, axis=3), shared), axis=2)
    return Function(list(given.values()), Tuple([state, found]))


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
    """One time after another, in float32; the size of a chunk bears on speed alone."""
    if (decay is not None) != ("gated" in update_rule):
        raise Unsupported(f"update_rule {update_rule!r} and decay do not go together")
    if (beta is not None) != ("delta" in update_rule):
        raise Unsupported(f"update_rule {update_rule!r} and beta do not go together")
    if kv_num_heads < 1 or q_num_heads < 1 or q_num_heads % kv_num_heads:
        raise Unsupported(f"{q_num_heads} heads of queries for {kv_num_heads} of keys")
    rows = {
        "q": _split_in_float32(query, q_num_heads),
        "k": _split_in_float32(key, kv_num_heads),
        "v": _split_in_float32(value, kv_num_heads),
    }
    if decay is not None:
        rows["decay"] = _split_in_float32(decay, kv_num_heads)
    if beta is not None:
        rows["beta"] = _split_in_float32(beta, ctx.static_lengths(beta, [2])[0])
    (key_width,) = ctx.static_lengths(rows["k"], [3])
    (value_width,) = ctx.static_lengths(rows["v"], [3])
    if past_state is None:
        start, dtype = _zero_state(rows["k"], value_width), ctx.type(query).dtype
    else:
        start, dtype = relay.cast(past_state, "float32"), ctx.type(past_state).dtype
    types = {"state": ctx.type(start)}
    for name, row in rows.items():
        shape = ctx.type(row).shape
        types[name] = TensorType([*shape[:2], *shape[3:]], "float32")
    body = _build_step(types, scale or 1 / math.sqrt(key_width), q_num_heads // kv_num_heads)
    walked = list(rows.values())
    found = call(
        "serde.scan",
        [start],
        walked,
        [],
        body=body,
        axes=(2,) * len(walked),
        reverse=(False,) * len(walked),
        out_axes=(2,),
        out_reverse=(False,),
    )
    output = relay.cast(join_heads(TupleGetItem(found, 1)), ctx.type(query).dtype)
    return [output, relay.cast(TupleGetItem(found, 0), dtype)]


@OPS.imports("CausalConvWithState", since=27)
def import_causal_conv(
    ctx: ImportContext,
    x: Expr,
    weight: Expr,
    bias: Expr | None = None,
    past_state: Expr | None = None,
    *,
    activation: Literal["none", "silu", "swish"] = "none",
) -> list[Expr]:
    """A convolution of each channel that sees the last inputs, which are the state."""
    channels, size = ctx.static_lengths(weight, [0, 2])
    before = size - 1
    if past_state is not None:
        whole = relay.concatenate([past_state, x], axis=2)
    else:
        whole = relay.nn.pad(x, [(0, 0), (0, 0), (before, 0)], scalar_like(ctx, x, 0))
    found = relay.nn.conv1d(whole, weight, groups=channels, channels=channels, kernel_size=(size,))
    if bias is not None:
        found = relay.nn.bias_add(found, bias, axis=1)
    if activation != "none":
        wide = call("serde.silu", relay.cast(found, "float32"))
        found = relay.cast(wide, ctx.type(x).dtype)
    if not ctx.wants(1):
        return [found]
    if not before:
        none = relay.strided_slice(whole, begin=[0], end=[0], strides=[1], axes=[2])
        return [found, none]
    end = (1 << 31) - 1
    state = relay.strided_slice(whole, begin=[-before], end=[end], strides=[1], axes=[2])
    return [found, state]
