"""Pooling."""

from __future__ import annotations

from serde.onnx.ops.pool import adaptive, unpool, window

__all__ = ["adaptive", "unpool", "window"]
