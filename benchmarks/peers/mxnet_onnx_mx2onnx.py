# /// script
# requires-python = "3.8"
# dependencies = ["mxnet==1.9.1", "onnx==1.14.1", "protobuf==3.20.3", "numpy==1.23.5"]
# ///
"""mx.onnx: MXNet's own exporter, beside the ONNX of its days."""

import sys

import mxnet as mx
import numpy as np

symbol, shape = sys.argv[1], tuple(map(int, sys.argv[3].split(",")))
params = symbol.replace("-symbol.json", "-0000.params")
mx.onnx.export_model(symbol, params, [shape], np.float32, sys.argv[2])
