"""Operators that change, join, repeat or make shapes."""
