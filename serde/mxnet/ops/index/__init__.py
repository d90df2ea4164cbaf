"""Slicing, looking up, writing and sorting."""
