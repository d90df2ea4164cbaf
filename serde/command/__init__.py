"""The command line: commands, flags, and how reports look on a terminal and in a file."""
