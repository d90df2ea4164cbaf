"""Loops, which carry the function they repeat as an attribute."""

from __future__ import annotations

from serde.relay.op.control import loop, scan

__all__ = ["loop", "scan"]
