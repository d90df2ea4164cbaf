"""What a source says of training, which Relay has no place for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any as AnyValue

from serde.core.parsing import parse_json
from serde.relay.ir.model import TRAINING_HEADS, TRAINING_NODES, ModelMeta

__all__ = ["read_facts", "read_heads"]


def read_facts(meta: ModelMeta) -> Mapping[str, Mapping[str, AnyValue]]:
    """Return what is unusual in training, by node."""
    found = _read(meta, TRAINING_NODES)
    return {
        name: {key: value for key, value in each.items() if _is_sound(key, value)}
        for name, each in found.items()
        if isinstance(each, dict)
    }


def read_heads(meta: ModelMeta) -> dict[str, str]:
    """Return the operators that outputs are losses of, by output."""
    return {name: str(each) for name, each in _read(meta, TRAINING_HEADS).items()}


def _read(meta: ModelMeta, key: str) -> dict[str, AnyValue]:
    try:
        found = parse_json(meta.extra.get(key, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_sound(key: str, value: AnyValue) -> bool:
    """Whether a fact has the type that it should have; a file may say anything."""
    if key in ("momentum", "p"):
        return type(value) in (int, float) and math.isfinite(value)
    if key == "axes":
        return isinstance(value, list) and all(type(each) is int for each in value)
    return type(value) is bool
