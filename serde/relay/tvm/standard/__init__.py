"""Definitions that programs of Relay rely on, as text: lists, options, trees, naturals."""
