"""Arithmetic, comparison and mathematical functions, element by element."""
