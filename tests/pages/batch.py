"""What docs/batch.md takes for granted: a folder of models."""

from pathlib import Path

from support.page_nets import tell_shape, write_checkpoint

import serde

write_checkpoint("net")
Path("models").mkdir()
for number in range(3):
    shapes = {"data": (number + 1, 3, 32, 32)}
    serde.convert("net-symbol.json", f"models/net{number}.onnx", input_shapes=shapes)
tell_shape("net")
