"""Pooling: over sliding windows, over adaptive parts, over everything, and by a norm."""

from __future__ import annotations

from serde.relay.op.pool import adaptive, norm, window

__all__ = ["adaptive", "norm", "window"]
