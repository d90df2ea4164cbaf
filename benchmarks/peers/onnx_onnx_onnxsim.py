# /// script
# requires-python = "3.11"
# dependencies = ["onnxsim==0.8.1", "onnx==1.23.2", "onnxruntime==1.32.0"]
# ///
"""onnxsim: folds constants and removes what does nothing."""

import sys

import onnx
import onnxsim

onnx.save(onnxsim.simplify(onnx.load(sys.argv[1]))[0], sys.argv[2])
