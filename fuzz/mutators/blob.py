"""Bytes of which nothing is known, such as files of weights."""

from __future__ import annotations

import random
from typing import Final

from fuzz.mutators.values import some_integer

__all__ = ["mutate_blob", "reduce_blob"]

_HEADER: Final = 256
"""Where most of a file of weights says what it holds."""


def mutate_blob(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with one change, mostly near their start."""
    if not data:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(16)))
    made = bytearray(data)
    size = min(len(data), _HEADER) if rng.randrange(4) else len(data)
    place = rng.randrange(size)
    kind = rng.randrange(8)
    if kind == 0:
        made[place] ^= 1 << rng.randrange(8)
    elif kind == 1:
        made[place] = rng.choice((0, 1, 127, 128, 255))
    elif kind < 5:
        width = rng.choice((1, 2, 4, 8))
        start = place - place % width
        old = int.from_bytes(made[start : start + width], "little")
        made[start : start + width] = (some_integer(rng, old) % 256**width).to_bytes(
            width, "little"
        )
    elif kind == 5:
        del made[place : place + rng.choice((1, 4, 8, len(made)))]
    elif kind == 6:
        made[place:place] = made[place : place + rng.choice((1, 4, 8, 64))]
    else:
        made[place:place] = bytes(rng.choice((1, 4, 8, 64)))
    return bytes(made)


def reduce_blob(data: bytes):
    """Yield shorter bytes, then blanker ones; see :func:`fuzz.mutators.document.reductions`."""
    size = len(data) // 2
    while size:
        place = 0
        while place < len(data):
            shorter = data[:place] + data[place + size :]
            if (yield shorter):
                data = shorter
            else:
                place += size
        size //= 2
        if len(data) > 4096 and size < 64:
            return
