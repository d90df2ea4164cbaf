# /// script
# requires-python = "3.11"
# dependencies = ["onnxoptimizer", "onnx==1.23.2"]
# ///
"""onnxoptimizer: ONNX's former optimiser, with the passes that it runs by default."""

import sys

import onnx
import onnxoptimizer

onnx.save(onnxoptimizer.optimize(onnx.load(sys.argv[1])), sys.argv[2])
