"""Operators that work element by element: unary, binary, conversion, rounding, fixed point."""

from __future__ import annotations

from serde.relay.op.elementwise import binary, convert, erf, fixed_point, rounding, unary

__all__ = ["binary", "convert", "erf", "fixed_point", "rounding", "unary"]
