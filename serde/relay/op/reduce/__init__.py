"""Reductions of axes: plain ones, norms and logarithms of sums, losses."""
