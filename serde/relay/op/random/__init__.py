"""Random numbers: as functions of a key, and by a seed that each executor reads its own way."""

from __future__ import annotations

import importlib
from typing import Any as AnyValue


def __getattr__(name: str) -> AnyValue:
    """Return a builder, as ``tvm.relay.op.random`` has it."""
    return importlib.import_module("serde.relay.ir.op_paths").find_below("random", name)
