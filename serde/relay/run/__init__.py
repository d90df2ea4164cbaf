"""Relay evaluated: the interpreter, its executor, and weights that are computed."""
