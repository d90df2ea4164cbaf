"""Quantised tensors."""
