"""Passes of TVM's library that no conversion runs."""
