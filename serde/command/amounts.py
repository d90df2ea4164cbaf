"""Values of flags that have a unit, or are large: times, sizes and counts."""

from __future__ import annotations

import re

import click

__all__ = ["read_count", "read_duration", "read_size"]

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smh]?)")
_SIZE = re.compile(r"(\d{1,18})(?:([kMGT])(i?)B?|B)?")
_COUNT = re.compile(r"(\d{1,18})([kMG]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def read_duration(text: str) -> float:
    """Return the seconds that a text says: ``90``, ``90s``, ``5m`` or ``2h``."""
    match = _DURATION.fullmatch(text)
    if match is None or float(match[1]) <= 0:
        raise click.BadParameter(f"{text!r} is no time; expected 90, 90s, 5m or 2h")
    return float(match[1]) * _SECONDS[match[2]]


def read_size(text: str) -> int:
    """Return the bytes that a text says: ``500M``, ``2G`` or ``2Gi``."""
    match = _SIZE.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise click.BadParameter(f"{text!r} is no size; expected 500M, 2G or 2Gi")
    base = 1024 if match[3] else 1000
    return int(match[1]) * base ** (" kMGT".index(match[2]) if match[2] else 0)


def read_count(text: str) -> int:
    """Return the number that a text says: ``5000000``, ``500k`` or ``5M``."""
    match = _COUNT.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise click.BadParameter(f"{text!r} is no number; expected 500000, 500k or 5M")
    return int(match[1]) * 1000 ** " kMG".index(match[2] or " ")
