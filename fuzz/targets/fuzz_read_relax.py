"""Reads hostile files as relax."""

import sys

from fuzz.guided import Target, fuzz

if __name__ == "__main__":
    fuzz(Target("relax", "none", 1), sys.argv)
