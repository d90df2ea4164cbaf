"""Operators that work element by element: unary, binary, special, conversion, rounding."""

from __future__ import annotations

from serde.relay.op.elementwise import binary, convert, erf, fixed_point, rounding, special, unary

__all__ = ["binary", "convert", "erf", "fixed_point", "rounding", "special", "unary"]
