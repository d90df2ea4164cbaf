"""Models as objects of their frameworks."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from typing_extensions import assert_type

import serde
from serde import relay
from serde.conversion.signature import FormatName

model = serde.to_relay("net.onnx", input_shapes={"data": (1, 3, 224, 224)}, source_opset=13)
assert_type(model, relay.RelayModel)
assert_type(serde.export_model("net-symbol.json", format="onnx", opset=17), onnx.ModelProto)
assert_type(serde.export_model("net", format="onnx", path="net.onnx"), Path)
assert_type(serde.export_model("net", path=Path("net.mlpackage"), author="me"), Path)
assert_type(serde.from_relay(model, format="onnx").graph, onnx.GraphProto)
assert_type(serde.from_relay(model, format="toy"), Any)
assert_type(serde.from_relay(model, format=FormatName("toy"), volume=11), Any)

module, params = serde.export_model("net.onnx", format="relay", strict=True)
assert_type(module, relay.IRModule)
assert_type(params["w"].nbytes, int)
np.add(params["w"], 1)
symbol, arrays = serde.import_model("net.onnx", keep_batch_norm=True)
assert_type(arrays.inputs, tuple[str, ...])
block = serde.import_to_gluon("net.onnx", format="onnx", source_opset=13)
block.export("net")
serde.export_model("net", format="coreml", compute_precision="float32").save("net.mlpackage")

try:
    serde.convert("net.onnx", "net.mlpackage")
except serde.UnsupportedModelError as error:
    assert_type(error.report, serde.Report)
