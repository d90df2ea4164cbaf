"""Random numbers: as functions of a key, and by a seed that each executor reads its own way."""

from __future__ import annotations

from serde.relay.op.random import rejection, seeded, threefry
from serde.relay.op.random.threefry import (
    ONES,
    PARITY,
    ROTATIONS,
    TOP,
    threefry_key,
    threefry_rounds,
)

__all__ = [
    "ONES",
    "PARITY",
    "ROTATIONS",
    "TOP",
    "rejection",
    "seeded",
    "threefry",
    "threefry_key",
    "threefry_rounds",
]
