"""A mistake on each line that says so."""

import serde

serde.convert("a", targt="b")  # error
serde.convert("a", "b", opst=17)  # error
serde.convert("a", "b", float16="yes")  # error
serde.convert("a", "b", quantized="exactly")  # error
serde.convert("a", "b", opset="latest")  # error
serde.convert("a", "b", target_format="onnx", minimum_deployment_target="iOS15")  # error
serde.convert("a", "b", target_format="onxx", opset=17)  # error
serde.convert("a", "b", opset=17)
serde.convert("a", "b", input_shapes={"data": 3})  # error
serde.convert("a", "b", input_shapes={"data": (3,)})
serde.check("a")  # error
serde.check("a", "b", source_format="onnx", epoch=3)  # error
serde.check("a", "b", opset=17)  # error
serde.bisect("a", "b", runs=3)  # error
serde.compile("a", target=3)  # error
serde.compile("a", opset=17)  # error
serde.diff("a", "b", weigths=False)  # error
serde.diff("a", "b").same  # error
serde.converts("a", "b")  # error
serde.Report().pased  # error
