"""Normalisation: Relay's own, over all last axes, and to unit spread or length."""

from __future__ import annotations

from serde.relay.op.norm import layer, plain, unit

__all__ = ["layer", "plain", "unit"]
