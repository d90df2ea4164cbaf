"""What docs/serve.md takes for granted: a net of four classes, and their names."""

from support.page_nets import write_checkpoint, write_labels

import serde

write_checkpoint("resnet50")
write_labels()
serde.convert("resnet50-symbol.json", "resnet50.onnx", input_shapes={"data": ("N", 3, 32, 32)})
