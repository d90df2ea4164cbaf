"""What README.md takes for granted: a checkpoint, its labels, and a folder of models."""

from pathlib import Path

from support.page_nets import write_checkpoint, write_labels

import serde

write_checkpoint("resnet50")
write_labels()
Path("models").mkdir()
serde.convert("resnet50-symbol.json", "models/a.onnx", input_shapes={"data": (1, 3, 224, 224)})
