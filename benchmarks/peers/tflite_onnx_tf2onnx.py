# /// script
# requires-python = "3.11"
# dependencies = ["tf2onnx==1.17.0", "tensorflow-cpu==2.21.0", "onnx<1.20"]
# ///
"""tf2onnx, from TFLite."""

import sys

from tf2onnx import convert

convert.from_tflite(sys.argv[1], opset=17, output_path=sys.argv[2])
