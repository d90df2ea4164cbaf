"""Indices: elements looked up, placed, ordered and cut."""
