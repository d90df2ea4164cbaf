"""What docs/tflite.md takes for granted: a checkpoint, the same net as ONNX, and its classes."""

from support.page_nets import write_checkpoint, write_labels

import serde

write_checkpoint("net")
write_labels()
serde.convert("net-symbol.json", "net.onnx", input_shapes={"data": (1, 3, 224, 224)})
