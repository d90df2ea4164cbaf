"""Attention, and what goes with it."""

from __future__ import annotations

from serde.onnx.ops.attention import heads, rotary, stateful, whole

__all__ = ["heads", "rotary", "stateful", "whole"]
