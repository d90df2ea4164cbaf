"""Reads hostile files as coreml."""

import sys

from fuzz.guided import Target, fuzz

if __name__ == "__main__":
    fuzz(Target("coreml", "none", 1), sys.argv)
