"""ML Programs: the dialect of MIL."""
