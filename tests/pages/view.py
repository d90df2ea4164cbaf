"""What docs/view.md takes for granted: a net of MXNet and of ONNX, and a browser of no window."""

import os

from support.page_nets import write_checkpoint

import serde

os.environ["BROWSER"] = "true"
write_checkpoint("net")
serde.convert("net-symbol.json", "net.onnx", input_shapes={"data": (1, 3, 224, 224)})
serde.convert("net-symbol.json", "resnet50.onnx", input_shapes={"data": (1, 3, 224, 224)})
