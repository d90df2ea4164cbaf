"""Operators that work element by element: unary, binary, special, conversion, rounding."""
