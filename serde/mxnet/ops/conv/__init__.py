"""Convolutions: direct and transposed, and at learned positions."""
