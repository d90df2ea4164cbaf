"""Which operators must not be evaluated beforehand."""

from __future__ import annotations

from serde.relay.registry import OpDef

__all__ = ["is_random", "unpacks"]

_DRAWS = ("bernoulli", "multinomial", "random", "sample_")


def is_random(definition: OpDef) -> bool:
    """Whether calls of an operator must neither be merged nor evaluated beforehand.

    Relay's own random operators take a key and are functions of it; those
    without an operand called ``key`` draw anew each time.
    """
    if all(word not in definition.name for word in _DRAWS):
        return False
    return all(operand.name != "key" for operand in definition.operands)


def unpacks(definition: OpDef) -> bool:
    """Whether an operator makes floats of quantised numbers, which then stay as small as they are.

    Evaluated beforehand, a weight would be four times as large, and a runtime would not know
    that it was quantised.
    """
    return definition.name == "serde.dequantize_linear"
