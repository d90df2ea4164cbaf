# /// script
# requires-python = "3.11"
# dependencies = ["onnxslim==0.1.96", "onnx==1.23.2"]
# ///
"""onnxslim: fuses and removes nodes."""

import sys

import onnxslim

onnxslim.slim(sys.argv[1], sys.argv[2])
