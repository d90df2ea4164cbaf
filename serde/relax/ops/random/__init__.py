"""Numbers that are drawn."""
