"""Reads hostile files as tflite."""

import sys

from fuzz.guided import Target, fuzz

if __name__ == "__main__":
    fuzz(Target("tflite", "none", 1), sys.argv)
