"""Reads hostile files as nnef."""

import sys

from fuzz.guided import Target, fuzz

if __name__ == "__main__":
    fuzz(Target("nnef", "none", 1), sys.argv)
