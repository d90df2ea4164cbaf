# /// script
# requires-python = "3.11"
# dependencies = [
#     "torch==2.13.0", "transformers==5.23.0", "onnx==1.23.2", "onnxruntime-genai==0.18.0",
# ]
# ///
"""onnxruntime-genai: the builder of models that comes with it, in float32 for processors."""

import runpy
import sys
import tempfile

with tempfile.TemporaryDirectory() as cache:
    sys.argv[1:] = ["-i", sys.argv[1], "-o", sys.argv[2], "-p", "fp32", "-e", "cpu", "-c", cache]
    runpy.run_module("onnxruntime_genai.models.builder", run_name="__main__")
