"""Layouts: how operators follow them, and the passes that change them."""
