"""A float net with photos, and an int8 net of MXNet's."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from support.int8_nets import mx, quantize_small_net

rng = np.random.default_rng(0)
weights = {"w0": rng.normal(0, 0.3, (64, 3, 5, 5)), "w1": rng.normal(0, 1, (64, 40))}
graph = helper.make_graph(
    [
        helper.make_node("Conv", ["data", "w0"], ["c"], "conv"),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], "pool"),
        helper.make_node("Flatten", ["p"], ["f"], "flat"),
        helper.make_node("MatMul", ["f", "w1"], ["scores"], "head"),
    ],
    "net",
    [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, 16, 16])],
    [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 40])],
    [numpy_helper.from_array(each.astype("f4"), name) for name, each in weights.items()],
)
opsets = [helper.make_opsetid("", 17)]
onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "net.onnx")
Path("photos").mkdir()
for number in range(4):
    np.save(f"photos/{number}.npy", rng.normal(0, 1, (1, 3, 16, 16)).astype("f4"))
net = quantize_small_net("naive")
net.symbol.save("small-int8-symbol.json")
kinds = {name: "aux" for name in net.symbol.list_auxiliary_states()}
mx.nd.save(
    "small-int8-0000.params",
    {f"{kinds.get(name, 'arg')}:{name}": value for name, value in net.params.items()},
)
