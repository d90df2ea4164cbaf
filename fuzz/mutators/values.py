"""Values that readers and converters are likely to be wrong about."""

from __future__ import annotations

import random
from typing import Final

__all__ = ["FLOATS", "INTEGERS", "STRINGS", "some_float", "some_integer", "some_text"]

INTEGERS: Final = (
    0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 100, 127, 128, 255, 256, 1000, 4096, 65535,
    65536, 10**6, 2**24, 10**9, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**53, 2**62, 2**63 - 1,
    2**63, 2**64 - 1, -1, -2, -3, -8, -128, -32768, -(2**31), -(2**31) - 1, -(2**63), -(2**63) - 1,
)  # fmt: skip
"""Small counts, and both sides of every border between sizes."""

FLOATS: Final = (
    0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-45, 1e-8, 1e8, 2.0**31, 2.0**63, 3.4e38, 1e39, 1e308,
    float("inf"), float("-inf"), float("nan"),
)  # fmt: skip

STRINGS: Final = (
    "", " ", "0", "1", "-1", "x", "None", "True", "False", "nan", "inf", "1e999", "()", "(0,)",
    "(-1, -1)", "(1000000, 1000000)", "(2147483648,)", "(9223372036854775807, 2)", "[]", "[1]",
    "[0, -1]", "float16", "float64", "int8", "uint4", "bfloat16", "NOTSET", "SAME_UPPER", "VALID",
    "../x", "/dev/zero", "a/b", ".", "..", "\0", "a\0b", "é", "\U0001f600", "a" * 300, "9" * 30,
    "9" * 5000, "-9223372036854775809", "%", "{}", "<", "\n", "__class__", "../../../../etc/passwd",
)  # fmt: skip


def some_integer(rng: random.Random, value: int = 0) -> int:
    """Return another integer: near `value`, from the list, or of a random size."""
    kind = rng.randrange(8)
    if kind < 2:
        return value + rng.choice((-1, 1, 2, -2))
    if kind == 2:
        return value * rng.choice((2, 3, -1, 1000, 2**16, 2**32))
    if kind == 3:
        return rng.randrange(2 ** rng.randrange(1, 65))
    return rng.choice(INTEGERS)


def some_float(rng: random.Random, value: float = 0.0) -> float:
    """Return another float."""
    return rng.choice((*FLOATS, value * 2, -value, value * 1e10, value + 1))


def some_text(rng: random.Random, value: str = "") -> str:
    """Return another text."""
    kind = rng.randrange(6)
    if kind == 0 and value:
        place = rng.randrange(len(value))
        return value[:place] + rng.choice(("", "a", "0", " ", "_", "-", "é")) + value[place + 1 :]
    if kind == 1:
        return value + value
    if kind == 2 and value.lstrip("-").isdigit() and len(value) < 30:
        return str(some_integer(rng, int(value)))
    return rng.choice(STRINGS)
