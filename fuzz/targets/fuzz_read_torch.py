"""Reads hostile files as torch."""

import sys

from fuzz.guided import Target, fuzz

if __name__ == "__main__":
    fuzz(Target("torch", "none", 1), sys.argv)
