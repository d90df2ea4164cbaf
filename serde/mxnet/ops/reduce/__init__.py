"""Reductions: plain ones, NumPy's sums and statistics, norms, losses."""
