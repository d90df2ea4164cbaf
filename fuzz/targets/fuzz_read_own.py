"""Reads hostile files of serde's own and of servers."""

import sys

from fuzz.guided import Target, fuzz

if __name__ == "__main__":
    fuzz(Target("own", "none", 1), sys.argv)
