"""Reads hostile files as relay."""

import sys

from fuzz.guided import Target, fuzz

if __name__ == "__main__":
    fuzz(Target("relay", "none", 1), sys.argv)
