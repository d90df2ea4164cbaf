"""Reads hostile files of any format, and writes each as one that is drawn."""

import sys

from fuzz.guided import Target, fuzz

if __name__ == "__main__":
    fuzz(Target("", "one", 1), sys.argv)
