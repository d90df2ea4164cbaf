"""What docs/serve.md takes for granted: a net of MXNet and of ONNX, and its labels."""

from support.page_nets import write_checkpoint, write_labels

import serde

write_checkpoint("resnet50")
write_labels()
serde.convert("resnet50-symbol.json", "resnet50.onnx", input_shapes={"data": ("N", 3, 224, 224)})
