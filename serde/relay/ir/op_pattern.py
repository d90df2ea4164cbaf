"""How the elements of an operator's result depend on its operands: TVM's op patterns."""

from __future__ import annotations

from serde.relay.ir.registry import OpDef
from serde.relay.ir.traits import (
    Elementwise,
    Fusion,
    FusionPattern,
    Linear,
    Moves,
    Reduction,
    Reshape,
)

__all__ = ["pattern_of"]


def pattern_of(definition: OpDef) -> FusionPattern:
    """Return the pattern of an operator, as it says or as its other traits tell."""
    said = definition.trait(Fusion)
    if said is not None:
        return said.pattern
    if definition.has(Elementwise):
        one = len(definition.operands) == 1
        return FusionPattern.ELEMWISE if one else FusionPattern.BROADCAST
    if definition.has(Moves, Reshape):
        return FusionPattern.INJECTIVE
    if definition.has(Reduction):
        return FusionPattern.COMM_REDUCE
    return FusionPattern.OUT_ELEMWISE_FUSABLE if definition.has(Linear) else FusionPattern.OPAQUE
