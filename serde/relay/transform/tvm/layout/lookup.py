"""How an operator follows layouts, by what was registered for it or by its traits."""

from __future__ import annotations

from serde.relay.ir.op_attributes import get_op_attr
from serde.relay.ir.registry import OpDef
from serde.relay.ir.traits import Elementwise, Reduction
from serde.relay.transform.tvm.layout.inference import (
    Inference,
    infer_broadcast,
    infer_elementwise,
)
from serde.relay.transform.tvm.layout.reductions import infer_reduction

__all__ = ["inference_of"]


def inference_of(definition: OpDef) -> Inference | None:
    """Return how an operator follows layouts; None where it needs those that it was written for."""
    found: Inference | None = get_op_attr(definition.name, "FInferCorrectLayout")
    if found is not None:
        return found
    if definition.has(Elementwise) and len(definition.operands) <= 2:
        return infer_elementwise if len(definition.operands) == 1 else infer_broadcast
    # TVM's `any` alone of the reductions follows no layout.
    follows = definition.has(Reduction) and definition.name != "any"
    return infer_reduction if follows else None
