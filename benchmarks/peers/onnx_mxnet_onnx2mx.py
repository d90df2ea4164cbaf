# /// script
# requires-python = "3.8"
# dependencies = ["mxnet==1.9.1", "onnx==1.14.1", "protobuf==3.20.3", "numpy==1.23.5"]
# ///
"""mx.contrib.onnx: MXNet's own importer, beside the ONNX of its days."""

import sys

import mxnet as mx
from mxnet.contrib import onnx as onnx_mxnet

symbol, args, aux = onnx_mxnet.import_model(sys.argv[1])
mx.model.save_checkpoint(sys.argv[2].replace("-symbol.json", ""), 0, symbol, args, aux)
