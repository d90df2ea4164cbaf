# /// script
# requires-python = "3.11"
# dependencies = ["torch==2.13.0", "onnx==1.23.2"]
# without-dependencies = ["onnx2torch==1.5.15", "torchvision==0.28.0"]
# ///
"""onnx2torch: a module, exported as an archive."""

import sys

import onnx2torch
import torch

module = onnx2torch.convert(sys.argv[1]).eval()
x = torch.rand(tuple(map(int, sys.argv[3].split(","))))
torch.export.save(torch.export.export(module, (x,)), sys.argv[2])
