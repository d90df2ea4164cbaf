"""ONNX files of known structure, for pages that show them."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def save(path: Path, nodes: list, inputs: list, outputs: list, weights: dict) -> Path:
    """A file of opset 17."""
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "net", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("corp", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def chain(path: Path, layers: int, *, scoped: bool = False, changed: int = -1) -> Path:
    """Layers of four nodes with a residual; the weight of one may be changed."""
    rng = np.random.default_rng(3)
    nodes, weights, last = [], {}, "x"
    for i in range(layers):
        weights[f"w{i}"] = rng.standard_normal((8, 8)).astype(np.float32)
        if i == changed:
            weights[f"w{i}"][0] *= -3
        name = f"layer{i}/" + "{}" if scoped else "{}_" + str(i)
        nodes += [
            helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"], name.format("MatMul")),
            helper.make_node("Relu", [f"m{i}"], [f"r{i}"], name.format("Relu")),
            helper.make_node("Add", [f"r{i}", last], [f"a{i}"], name.format("Add")),
            helper.make_node("Tanh", [f"a{i}"], [f"t{i}"], name.format("Tanh")),
        ]
        last = f"t{i}"
    ports = [helper.make_tensor_value_info(name, FLOAT, ["N", 8]) for name in ("x", last)]
    return save(path, nodes, ports[:1], ports[1:], weights)


def branches(path: Path) -> Path:
    """A conditional: what both branches read stands outside of them."""
    then = helper.make_graph(
        [helper.make_node("Mul", ["r", "r"], ["t"], "square")],
        "then",
        [],
        [helper.make_tensor_value_info("t", FLOAT, [2])],
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["r"], ["n"], "neg"), helper.make_node("Exp", ["n"], ["e"], "e")],
        "else",
        [],
        [helper.make_tensor_value_info("e", FLOAT, [2])],
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], "pre"),
        helper.make_node("If", ["c"], ["y"], "choice", then_branch=then, else_branch=other),
    ]
    inputs = [
        helper.make_tensor_value_info("x", FLOAT, [2]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    return save(path, nodes, inputs, [helper.make_tensor_value_info("y", FLOAT, [2])], {})


def ranks(path: Path) -> Path:
    """A conditional whose branches have no common type, and a sum that takes either."""
    sides = []
    for op, shape in (("Flatten", [1, 2]), ("Neg", [2])):
        result = helper.make_tensor_value_info(op, FLOAT, shape)
        sides.append(
            helper.make_graph([helper.make_node(op, ["x"], [op], f"own{op}")], op, [], [result])
        )
    nodes = [
        helper.make_node("If", ["c"], ["r"], "rank", then_branch=sides[0], else_branch=sides[1]),
        helper.make_node("ReduceSum", ["r"], ["y"], "sum", keepdims=0),
    ]
    inputs = [
        helper.make_tensor_value_info("x", FLOAT, [2]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    return save(path, nodes, inputs, [helper.make_tensor_value_info("y", FLOAT, [])], {})


def with_gap(path: Path) -> Path:
    """An operator that nobody knows, between others."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "relu_0"),
        helper.make_node("Gate", ["a"], ["b"], "gate_1", domain="corp", alpha=0.5),
        helper.make_node("Tanh", ["b"], ["c"], "tanh_2"),
    ]
    ports = [helper.make_tensor_value_info(name, FLOAT, [2, 3]) for name in ("x", "c")]
    return save(path, nodes, ports[:1], ports[1:], {})


def passing(path: Path) -> Path:
    """Nodes of which nothing is left in Relay, among others that read before and behind them."""
    weights = {"w": np.ones((4, 3, 1, 1), np.float32), "b": np.ones(4, np.float32)}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv"),
        helper.make_node("Identity", ["c"], ["i"], "same"),
        helper.make_node("Dropout", ["i"], ["d"], "dropout"),
        helper.make_node("Add", ["c", "d"], ["s"], "both"),
        helper.make_node("Mul", ["i", "s"], ["y"], "late"),
    ]
    ports = [
        helper.make_tensor_value_info(name, FLOAT, shape)
        for name, shape in (("x", [1, 3, 5, 5]), ("y", [1, 4, 5, 5]))
    ]
    return save(path, nodes, ports[:1], ports[1:], weights)


def quantized(path: Path) -> Path:
    """Stages whose weights are dequantised by nodes that stand before all others, unscoped."""
    nodes, weights, last = [], {}, "x"
    for i in range(4):
        weights[f"w{i}"] = np.full((8, 8), i + 1, np.int8)
        weights[f"s{i}"] = np.array(0.5, np.float32)
        nodes.append(helper.make_node("DequantizeLinear", [f"w{i}", f"s{i}"], [f"f{i}"], f"dq{i}"))
    for i in range(4):
        inner = [("MatMul", [last, f"f{i}"], f"m{i}"), ("Relu", [f"m{i}"], f"r{i}")]
        inner += [("Tanh", [f"r{i}"], f"t{i}"), ("Neg", [f"t{i}"], f"n{i}")]
        nodes += [helper.make_node(op, read, [to], f"stage{i}/{op}") for op, read, to in inner]
        last = f"n{i}"
    ports = [helper.make_tensor_value_info(name, FLOAT, ["N", 8]) for name in ("x", last)]
    return save(path, nodes, ports[:1], ports[1:], weights)


HOSTILE = "</script><script>window.broken=1</script><img src=http://127.0.0.1:9/x>&\u202e\x07"


def hostile(path: Path) -> Path:
    """Names that would end a script, ask for a picture, ring a bell, or fill the page."""
    names = [HOSTILE, "a" * 2**20, '"onmouseover="x', "{{data}}", "\u2028"]
    nodes, last = [], "x"
    for i, name in enumerate(names):
        nodes.append(helper.make_node("Relu", [last], [f"v{i}"], name))
        last = f"v{i}"
    nodes.append(helper.make_node("Relu", [last], ["y" + HOSTILE], "end"))
    ports = [helper.make_tensor_value_info(n, FLOAT, [2]) for n in ("x", "y" + HOSTILE)]
    return save(path, nodes, ports[:1], ports[1:], {})
