# /// script
# requires-python = "3.11"
# dependencies = ["torch==2.13.0", "onnx==1.23.2", "onnxscript==0.7.2"]
# ///
"""torch.onnx: PyTorch's own exporter, from an exported program."""

import sys

import torch

torch.onnx.export(torch.export.load(sys.argv[1]), f=sys.argv[2], dynamo=True, external_data=False)
