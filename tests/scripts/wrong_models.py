"""A mistake on each line that says so."""

import serde

serde.export_model("a", format="onnx", opst=17)  # error
serde.export_model("a", format="onnx", strict=True)  # error
serde.export_model("a", opset=17)  # error
serde.export_model("a", format="onnx", path="b").graph  # error
serde.export_model("a", format="onnx", opset=17).graph
serde.from_relay("a", format="relay", epoch=3)  # error
serde.to_relay("a", format="mxnet", source_opset=11)  # error
serde.to_relay("a", format="mxnet", epoch="3")  # error
serde.to_relay("a").module  # error
serde.import_model("a", opset=17)  # error
serde.import_to_gluon("a", keep_batchnorm=True)  # error
symbol, arrays, aux = serde.import_model("a")  # error
