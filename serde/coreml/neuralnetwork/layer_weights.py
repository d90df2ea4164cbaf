"""The parameters of layers that multiply their data by weights."""

from __future__ import annotations

import serde.relay as relay
from serde.core.records import dataclass
from serde.coreml.neuralnetwork.import_context import ImportContext
from serde.coreml.neuralnetwork.message_view import MessageView
from serde.relay.ir.expr import Expr

__all__ = ["LayerWeights"]


@dataclass(frozen=True, kw_only=True)
class LayerWeights:
    """Weights, and a bias that counts only where the layer says so."""

    has_bias: bool = False
    weights: MessageView | None = None
    bias: MessageView | None = None

    def add_bias(self, ctx: ImportContext, x: Expr, channels: int, axis: int) -> Expr:
        """Return a result with the bias of its channels, if there is one."""
        if not self.has_bias:
            return x
        return relay.nn.bias_add(x, ctx.weight(self.bias, (channels,)), axis=axis)
