"""The ground, which knows no format and no graph: weights, limits, reports, texts, the system."""
