"""JSON of files, which may be nested more deeply than Python's parser can follow."""

from __future__ import annotations

import json
from typing import Any as AnyValue, Final

import numpy as np

from serde.core.garbage_collection import pause_garbage_collection

__all__ = ["nesting_depth", "parse_json"]


@pause_garbage_collection()
def parse_json(text: str | bytes | bytearray, **options: AnyValue) -> AnyValue:
    """Return what JSON holds.

    No garbage is collected meanwhile: finalizers of others fail so near to the limit of recursion.

    Args:
        text: The JSON.
        options: Of ``json.loads``.

    Raises:
        ValueError: It is none, or nested too deeply.
    """
    try:
        return json.loads(text, **options)
    except RecursionError:
        raise ValueError("nested too deeply") from None


_PIECE: Final = 2**18
_QUOTE: Final = ord('"')
_LOWER: Final = 0x20
"""The bit in which ``[`` and ``]`` differ from ``{`` and ``}``."""


def nesting_depth(data: bytes) -> int:
    """Return how many brackets are open at once at most; those in strings do not count.

    The text need not be sound: it takes a fraction of the time of parsing it, whatever it is.

    Args:
        data: The text in UTF-8.
    """
    if b"\\" in data:
        data = data.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    whole = np.frombuffer(data, np.uint8)
    inside, depth, deepest = False, 0, 0
    for start in range(0, len(whole), _PIECE):
        piece = whole[start : start + _PIECE]
        quoted = np.logical_xor.accumulate(piece == _QUOTE)
        if inside:
            np.logical_not(quoted, out=quoted)
        inside = bool(quoted[-1])
        lowered = piece | _LOWER
        step = (lowered == ord("{")).view(np.int8) - (lowered == ord("}")).view(np.int8)
        step[quoted] = 0
        depths = np.cumsum(step, dtype=np.int32)
        deepest = max(deepest, depth + int(depths.max()))
        depth += int(depths[-1])
    return deepest
