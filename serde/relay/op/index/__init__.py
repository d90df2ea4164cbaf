"""Operators that pick, place, slice, sort and accumulate elements."""
