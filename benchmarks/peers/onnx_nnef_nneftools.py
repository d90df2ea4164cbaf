# /// script
# requires-python = "3.11"
# dependencies = [
#     "nnef-tools==1.0.11", "nnef", "onnx==1.23.2",
#     "onnxruntime==1.32.0", "onnxsim==0.8.1", "six", "future", "numpy<2",
# ]
# ///
"""NNEF-Tools, Khronos' converter."""

import runpy
import sys

sys.argv[1:] = [
    "--input-format", "onnx", "--output-format", "nnef",
    "--input-model", sys.argv[1], "--output-model", sys.argv[2],
]  # fmt: skip
runpy.run_module("nnef_tools.convert", run_name="__main__")
