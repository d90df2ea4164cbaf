"""Normalisation: Relay's own, over all last axes, and to unit spread or length."""
