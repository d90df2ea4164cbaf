"""Reads hostile files as mxnet."""

import sys

from fuzz.guided import Target, fuzz

if __name__ == "__main__":
    fuzz(Target("mxnet", "none", 1), sys.argv)
