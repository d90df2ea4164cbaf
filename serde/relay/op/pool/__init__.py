"""Pooling: over sliding windows, over adaptive parts, over everything, and by a norm; and back."""
