"""Reads hostile files as onnx."""

import sys

from fuzz.guided import Target, fuzz

if __name__ == "__main__":
    fuzz(Target("onnx", "none", 1), sys.argv)
