"""Resizing, sampling and rearranging of images."""

from __future__ import annotations

import importlib
from typing import Any as AnyValue


def __getattr__(name: str) -> AnyValue:
    """Return a builder, as ``tvm.relay.op.image`` has it."""
    return importlib.import_module("serde.relay.ir.op_paths").find_below("image", name)
