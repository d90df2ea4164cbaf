"""Operators that work element by element: unary, binary, conversion, fixed point."""

from __future__ import annotations

from serde.relay.op.elementwise import binary, convert, erf, fixed_point, unary

__all__ = ["binary", "convert", "erf", "fixed_point", "unary"]
