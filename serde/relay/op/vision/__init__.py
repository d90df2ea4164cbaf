"""Detection: anchors, regions of feature maps, and the suppression of overlapping boxes."""

from __future__ import annotations

import importlib
from typing import Any as AnyValue


def __getattr__(name: str) -> AnyValue:
    """Return a builder, as ``tvm.relay.op.vision`` has it."""
    return importlib.import_module("serde.relay.ir.op_paths").find_below("vision", name)
