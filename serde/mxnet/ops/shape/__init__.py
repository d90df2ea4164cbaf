"""Shapes: reshaping, joining, splitting, broadcasting and filling."""
