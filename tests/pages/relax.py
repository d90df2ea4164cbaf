"""What docs/relax.md takes for granted: a model of ONNX and, where PyTorch is, a net of its."""

import importlib.util

import tvm
from support.page_nets import write_checkpoint

import serde

write_checkpoint("m")
serde.convert("m-symbol.json", "net.onnx", input_shapes={"data": (1, 3, 32, 32)})
if importlib.util.find_spec("torch"):
    import torch
    import tvm.relax.frontend.torch

    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval()
    images = torch.rand(1, 3, 8, 8)
assert tvm
