"""Slicing, looking up, writing by index, and ordering."""
