"""Quantised tensors, and weights that are kept compressed."""
