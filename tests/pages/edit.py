"""What docs/edit.md takes for granted: a net of images, a detector, and a net in two parts."""

import onnx
import onnx.parser
from support.page_nets import write_checkpoint

import serde

write_checkpoint("net")
SHAPES = {"data": (1, 3, 32, 32)}
serde.convert(
    "net-symbol.json", "net.onnx", input_shapes=SHAPES, rename_outputs={"prob_output": "prob"}
)
serde.convert("net.onnx", "body.onnx", outputs=["pool0"], rename_outputs={"pool0": "features"})
serde.convert("net.onnx", "head.onnx", inputs=["pool0"], rename_inputs={"pool0": "x"})
YOLO = """
<ir_version: 8, opset_import: ["" : 17]>
agraph (float[N, 7, 60] images) => (float[N, 7, 60] output0)
{ output0 = Sigmoid (images) }
"""
onnx.save(onnx.parser.parse_model(YOLO), "yolo.onnx")
