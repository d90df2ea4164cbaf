"""What docs/command-line.md takes for granted: nets as ONNX and MXNet, and photographs."""

import os
from pathlib import Path

from support.page_nets import write_checkpoint, write_photos

import serde

# Where shells look for completions, in a home of the page's own.
os.environ["HOME"] = str(Path.cwd())
for place in (".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"):
    Path(place).mkdir(parents=True)
write_checkpoint("resnet50")
write_checkpoint("net")
write_photos((32, 32))
serde.convert("net-symbol.json", "net.onnx", input_shapes={"data": (1, 3, 32, 32)})
model = serde.export_model("net-symbol.json", format="onnx", input_shapes={"data": (1, 3, 32, 32)})
for node in model.graph.node:
    for names in (node.input, node.output):
        for place, name in enumerate(names):
            names[place] = "/pool/GlobalAveragePool_output_0" if "pool0" in name else name
with open("model.onnx", "wb") as file:
    file.write(model.SerializeToString())
