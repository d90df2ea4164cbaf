"""Biases that belong to the layer before them."""

from __future__ import annotations

from collections.abc import Mapping

from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import OpDef, has_trait, trait_of
from serde.relay.ir.traits import Layout, Linear
from serde.relay.ir.types import TensorType

__all__ = ["fused_biases"]


def fused_biases(
    uses: Mapping[Expr, int], *, dense_rank: int | None = 2
) -> dict[Expr, tuple[Call, Expr]]:
    """Return the additions of a bias that can be part of their only producer.

    Args:
        uses: How often each node is used, as :func:`serde.relay.ir.visit.use_counts` says.
        dense_rank: Rank of a dense layer's result with which the target adds a bias; None: any.

    Returns:
        For each addition, the producer and the bias.
    """
    found: dict[Expr, tuple[Call, Expr]] = {}
    for node in uses:
        if not isinstance(node, Call) or not isinstance(node.op, OpDef):
            continue
        if node.op.name != "nn.bias_add":
            continue
        producer = node.args[0]
        if not isinstance(producer, Call) or not has_trait(producer, Linear) or uses[producer] != 1:
            continue
        layout = trait_of(producer, Layout)
        type_ = producer.type
        if not isinstance(type_, TensorType):
            continue
        if layout is None and dense_rank not in (None, type_.rank):
            continue
        channel = producer.attrs[layout.attribute].index("C") if layout else type_.rank - 1
        if node.attrs["axis"] % type_.rank == channel:
            found[node] = (producer, node.args[1])
    return found
