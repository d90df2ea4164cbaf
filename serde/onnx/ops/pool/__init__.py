"""Pooling."""

from __future__ import annotations

from serde.onnx.ops.pool import adaptive, window

__all__ = ["adaptive", "window"]
