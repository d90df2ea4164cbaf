"""Which operators give another result each time they run."""

from __future__ import annotations

from serde.relay.registry import OpDef

__all__ = ["is_random"]

_DRAWS = ("bernoulli", "multinomial", "random", "sample_")


def is_random(definition: OpDef) -> bool:
    """Whether calls of an operator must neither be merged nor evaluated beforehand.

    Relay's own random operators take a key and are functions of it; those
    without an operand called ``key`` draw anew each time.
    """
    if all(word not in definition.name for word in _DRAWS):
        return False
    return all(operand.name != "key" for operand in definition.operands)
