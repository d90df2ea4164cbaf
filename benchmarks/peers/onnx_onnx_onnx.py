# /// script
# requires-python = "3.11"
# dependencies = ["onnx==1.23.2"]
# ///
"""onnx: a file is read and written, and nothing else."""

import sys

import onnx

onnx.save(onnx.load(sys.argv[1]), sys.argv[2])
