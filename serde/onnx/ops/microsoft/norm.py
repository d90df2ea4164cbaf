"""Normalisations of the last axis, alone and behind sums.

SimplifiedLayerNormalization is ONNX Runtime's, though it stands in ONNX's own domain.
"""

from __future__ import annotations

from typing import Literal

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.onnx.ops.attention import arange_like
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.table import MICROSOFT, Import
from serde.relay.ir import Expr, TupleGetItem, call


def _build_layer_norm(x: Expr, gamma: Expr, beta: Expr | None, epsilon: float) -> Expr:
    return TupleGetItem(call("serde.layer_norm", x, gamma, beta, axis=-1, epsilon=epsilon), 0)


def _add_skip(ctx: Import, x: Expr, skip: Expr, bias: Expr | None) -> Expr:
    """Return what is normalised; the statistics are given by training alone."""
    if ctx.wants(1) or ctx.wants(2):
        raise Unsupported("the statistics of a normalisation behind a sum")
    total = relay.add(x, skip)
    return total if bias is None else relay.add(total, bias)


@MICROSOFT.imports("SkipLayerNormalization")
def import_skip_layer_norm(
    ctx: Import, x: Expr, skip: Expr, gamma: Expr, beta: Expr | None = None,
    bias: Expr | None = None,
    *, epsilon: float = 1e-12,
) -> list[Expr]:  # fmt: skip
    total = _add_skip(ctx, x, skip, bias)
    return [_build_layer_norm(total, gamma, beta, epsilon), total, total, total]


@MICROSOFT.imports("SkipSimplifiedLayerNormalization")
def import_skip_simplified_layer_norm(
    ctx: Import,
    x: Expr,
    skip: Expr,
    gamma: Expr,
    bias: Expr | None = None,
    *,
    epsilon: float = 1e-12,
) -> list[Expr]:
    total = _add_skip(ctx, x, skip, bias)
    found = call("serde.rms_norm", total, gamma, axis=-1, epsilon=epsilon)
    return [found, total, total, total]


@MICROSOFT.imports("EmbedLayerNormalization")
def import_embed_layer_norm(
    ctx: Import, input_ids: Expr, segment_ids: Expr | None, word_embedding: Expr,
    position_embedding: Expr, segment_embedding: Expr | None, gamma: Expr, beta: Expr,
    mask: Expr | None = None, position_ids: Expr | None = None,
    *, epsilon: float = 1e-12, mask_index_type: int = 0,
) -> list[Expr]:  # fmt: skip
    """Rows of up to three tables are summed; the second output counts the ones of a mask."""
    if position_ids is None:
        position_ids = arange_like(ctx, input_ids, 1)
    words = relay.take(word_embedding, input_ids, axis=0, mode="fast")
    total = relay.add(words, relay.take(position_embedding, position_ids, axis=0, mode="fast"))
    if segment_ids is not None and segment_embedding is not None:
        segments = relay.take(segment_embedding, segment_ids, axis=0, mode="fast")
        total = relay.add(total, segments)
    if mask is None:
        counts = relay.zeros_like(relay.sum(relay.cast(input_ids, "int32"), axis=1))
    else:
        ones = relay.equal(mask, scalar_like(ctx, mask, 1))
        counts = relay.sum(relay.cast(ones, "int32"), axis=1)
    if mask_index_type and ctx.wants(1):
        raise Unsupported(f"mask_index_type={mask_index_type}")
    return [_build_layer_norm(total, gamma, beta, epsilon), counts, total]


@dataclass(frozen=True, kw_only=True)
class GroupNormAttributes:
    """Attributes of normalisations of groups of channels."""

    activation: int
    channels_last: bool = True
    epsilon: float = 1e-5
    groups: int

    def build(self, ctx: Import, x: Expr, gamma: Expr, beta: Expr) -> Expr:
        """Return normalised groups of channels, which are computed in float32."""
        if self.activation not in (0, 1):
            raise Unsupported(f"activation={self.activation}")
        dtype = ctx.type(x).dtype
        found = relay.nn.group_norm(
            x,
            relay.cast(gamma, dtype),
            relay.cast(beta, dtype),
            num_groups=self.groups,
            axis=ctx.type(x).rank - 1 if self.channels_last else 1,
            epsilon=self.epsilon,
        )
        return call("serde.silu", found) if self.activation else found


@MICROSOFT.imports("GroupNorm")
def import_microsoft_group_norm(
    ctx: Import, x: Expr, gamma: Expr, beta: Expr, *, group: GroupNormAttributes
) -> Expr:
    return group.build(ctx, x, gamma, beta)


@MICROSOFT.imports("SkipGroupNorm")
def import_skip_group_norm(
    ctx: Import, x: Expr, gamma: Expr, beta: Expr, skip: Expr, bias: Expr | None = None,
    *, group: GroupNormAttributes,
) -> list[Expr]:  # fmt: skip
    """What is added may be one row of channels a sample; its channels are behind."""
    if not group.channels_last:
        raise Unsupported("channels_last=0 beside a skip, whose channels are behind")
    if ctx.type(skip).rank == 2:
        skip = relay.expand_dims(skip, axis=1, num_newaxis=2)
    total = relay.add(x, skip)
    if bias is not None:
        total = relay.add(total, bias)
    return [group.build(ctx, total, gamma, beta), total]


@MICROSOFT.imports("GatedRMSNorm")
def import_gated_rms_norm(
    ctx: Import,
    x: Expr,
    scale: Expr,
    gate: Expr,
    *,
    activation: Literal["silu", "swish", "sigmoid"] = "silu",
    epsilon: float = 1e-5,
) -> Expr:
    """Groups as long as the scale are normalised; all is computed in float32."""
    (width,) = ctx.static_lengths(scale, [0])
    groups = relay.cast(relay.reshape(x, (-1, width)), "float32")
    found = call("serde.rms_norm", groups, relay.cast(scale, "float32"), axis=-1, epsilon=epsilon)
    wide = relay.cast(gate, "float32")
    factor = relay.sigmoid(wide) if activation == "sigmoid" else call("serde.silu", wide)
    return relay.cast(relay.multiply(relay.reshape_like(found, x), factor), ctx.type(x).dtype)
