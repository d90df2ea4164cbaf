"""Core ML: ML Programs of iOS15 to iOS26 are read."""

from __future__ import annotations

from serde.coreml.bridge import CoremlBridge

__all__ = ["BRIDGE"]

BRIDGE = CoremlBridge()
