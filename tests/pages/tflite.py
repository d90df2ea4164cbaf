"""What docs/tflite.md takes for granted: a checkpoint, and the same net as ONNX."""

from support.page_nets import write_checkpoint

import serde

write_checkpoint("net")
serde.convert("net-symbol.json", "net.onnx", input_shapes={"data": (1, 3, 224, 224)})
