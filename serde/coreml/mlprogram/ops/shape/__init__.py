"""Shapes: joining, cutting, spreading, padding and arranging."""
