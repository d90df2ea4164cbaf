"""Loops, which carry the function they repeat as an attribute."""
