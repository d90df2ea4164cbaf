"""Pooling: over sliding windows, over adaptive parts, over everything, and by a norm; and back."""

from __future__ import annotations

from serde.relay.op.pool import adaptive, norm, places, unpool, window

__all__ = ["adaptive", "norm", "places", "unpool", "window"]
