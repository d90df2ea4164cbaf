"""Weights of 4 bits in blocks, by ONNX Runtime's tool; NumPy rounds as its documentation says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.runtime import open_session

import serde
from serde.errors import CheckError, OptionError

pytest.importorskip("onnxruntime.quantization")
pytest.importorskip("onnx_ir")  # Which that tool asks for, and does not bring.

TOKENS, WIDTH, CLASSES = 40, 64, 24
RNG = np.random.default_rng(0)
TABLE = RNG.normal(0, 1, (TOKENS, WIDTH)).astype("f4")
LAYER = (RNG.normal(0, 0.3, (WIDTH, WIDTH)) * RNG.uniform(0.1, 3, (1, WIDTH))).astype("f4")
HEAD = RNG.normal(0, 0.3, (WIDTH, CLASSES)).astype("f4")
IDS = np.arange(TOKENS).reshape(2, -1)


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, a layer, and a head behind which scores are capped."""
    node = helper.make_node
    nodes = [
        node("Gather", ["table", "ids"], ["x"], "pick"),
        node("MatMul", ["x", "layer"], ["y"], "layer"),
        node("Relu", ["y"], ["z"], "relu"),
        node("MatMul", ["z", "head"], ["s"], "head"),
        node("Tanh", ["s"], ["scores"], "cap"),
    ]
    weights = {"table": TABLE, "layer": LAYER, "head": HEAD}
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["N", "T"])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", "T", CLASSES])],
        [numpy_helper.from_array(each, name) for name, each in weights.items()],
    )
    path = tmp_path_factory.mktemp("net") / "net.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path
    )
    return path


def rounded(weight: np.ndarray, size: int, points: bool) -> np.ndarray:
    """Return a weight with blocks along axis 0 rounded to 16 levels."""
    blocks = weight.reshape(-1, size, weight.shape[1]).astype(np.float64)
    low, high = blocks.min(1, keepdims=True), blocks.max(1, keepdims=True)
    if points:
        low, high = np.minimum(low, 0), np.maximum(high, 0)
        scale = (high - low) / 15
        zero = np.rint(-low / scale)
        levels = np.clip(np.rint(blocks / scale + zero), 0, 15) - zero
    else:
        scale = np.where(high > -low, high, low) / -8
        levels = np.clip(np.rint(blocks / scale), -8, 7)
    return (levels * scale).reshape(weight.shape)


def expected(layer: np.ndarray, head: np.ndarray, table: np.ndarray = TABLE) -> np.ndarray:
    return np.tanh(np.maximum(table[IDS] @ layer, 0) @ head)


def operators(path: Path) -> Counter[str]:
    return Counter(each.op_type for each in onnx.load(path).graph.node)


def scores(path: Path) -> np.ndarray:
    # Fused, products with DequantizeLinear would take their data as integers, too.
    (found,) = open_session(path, fuse=False).run(None, {"ids": IDS})
    return found


@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("size", [16, 32])
def test_products_are_those_of_rounded_weights(
    net: Path, tmp_path: Path, size: int, points: bool
) -> None:
    options = {} if size == 32 else {"block_size": size}
    report = serde.convert(net, tmp_path / "a.onnx", int4=True, zero_points=points, **options)
    assert operators(tmp_path / "a.onnx")["MatMulNBits"] == 2
    wanted = expected(rounded(LAYER, size, points), rounded(HEAD, size, points))
    # A half may go either way in float32.
    assert np.abs(scores(tmp_path / "a.onnx") - wanted).max() < 5e-3
    assert np.abs(expected(LAYER, HEAD) - wanted).max() > 5e-2
    assert report.accuracy[0].after.cosine > 0.97
    assert report.facts["smaller_size_bytes"] < 0.65 * report.facts["float_size_bytes"]
    # The same weights by operators of ONNX.
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", opset=21)
    assert operators(tmp_path / "b.onnx")["DequantizeLinear"] == 2
    np.testing.assert_allclose(scores(tmp_path / "b.onnx"), scores(tmp_path / "a.onnx"), atol=1e-5)


def test_heads_and_layers_stay(net: Path, tmp_path: Path) -> None:
    serde.convert(net, tmp_path / "a.onnx", int4=True, int4_head=False)
    wanted = expected(rounded(LAYER, 32, False), HEAD)
    assert np.abs(scores(tmp_path / "a.onnx") - wanted).max() < 5e-3
    serde.convert(net, tmp_path / "b.onnx", int4=True, int8_exclude=("layer_1",))
    wanted = expected(LAYER, rounded(HEAD, 32, False))
    assert np.abs(scores(tmp_path / "b.onnx") - wanted).max() < 5e-3


def test_data_of_8_bits(net: Path, tmp_path: Path) -> None:
    """The operator multiplies integers then: near what floats give, and not the same."""
    path = tmp_path / "small.onnx"
    report = serde.convert(net, path, int4=True, activation_type="int8")
    products = [node for node in onnx.load(path).graph.node if node.op_type == "MatMulNBits"]
    levels = [{a.name: a.i for a in node.attribute}["accuracy_level"] for node in products]
    assert levels == [4, 4]
    assert "activations int8 at run time" in report.facts["quantized"]
    serde.convert(net, tmp_path / "floats.onnx", int4=True)
    ours, floats = (
        open_session(each, fuse=False).run(None, {"ids": IDS})[0]
        for each in (path, tmp_path / "floats.onnx")
    )
    assert 0.0 < np.sqrt(np.square(ours - floats).mean()) < 0.03 * floats.std()


def test_tables_too(net: Path, tmp_path: Path) -> None:
    serde.convert(
        net, tmp_path / "a.onnx", int4=True, int4_embeddings=True, opset=21, zero_points=True
    )
    assert operators(tmp_path / "a.onnx")["GatherBlockQuantized"] == 1
    table = rounded(TABLE.T, 32, True).T
    wanted = expected(rounded(LAYER, 32, True), rounded(HEAD, 32, True), table)
    assert np.abs(scores(tmp_path / "a.onnx") - wanted).max() < 1e-2


@pytest.mark.parametrize("turned", [0, 1])
def test_layers_with_biases(tmp_path: Path, turned: int) -> None:
    bias = RNG.normal(0, 1, CLASSES).astype("f4")
    weights = {"w": HEAD.T.copy() if turned else HEAD, "b": bias}
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], "layer", transB=turned)],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", CLASSES])],
        [numpy_helper.from_array(each, name) for name, each in weights.items()],
    )
    opsets = [helper.make_opsetid("", 21)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", int4=True)
    assert operators(tmp_path / "b.onnx") == {"MatMulNBits": 1, "Add": 1}
    (found,) = open_session(tmp_path / "b.onnx").run(None, {"x": TABLE})
    np.testing.assert_allclose(found, TABLE @ rounded(HEAD, 32, False) + bias, atol=2e-4)


def test_half(net: Path, tmp_path: Path) -> None:
    serde.convert(net, tmp_path / "a.onnx", int4=True, float16=True)
    assert operators(tmp_path / "a.onnx")["MatMulNBits"] == 2
    layer, head = (rounded(each.astype("f2").astype("f4"), 32, False) for each in (LAYER, HEAD))
    distance = scores(tmp_path / "a.onnx").astype("f4") - expected(layer, head)
    assert np.abs(distance).mean() < 2e-3


def test_too_much_lost(net: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="scores is below the least"):
        serde.convert(net, tmp_path / "a.onnx", int4=True, min_cosine=0.99999)
    assert list(tmp_path.iterdir()) == []


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no power of two": ({"block_size": 24}, "a power of two from 16 on, found 24"),
    "small blocks": ({"block_size": 8}, "a power of two from 16 on, found 8"),
    "no blocks": ({"block_size": 0}, "a power of two from 16 on, found 0"),
    "a low opset": ({"int4_embeddings": True}, "4 bits need opset 21, found 17"),
    "a type": ({"weight_type": "uint8"}, "weight_type: int4 has no such option"),
    "no such node": ({"int8_exclude": ("gate",)}, "the model has no node gate"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(net: Path, tmp_path: Path, case: str) -> None:
    options, message = REFUSED[case]
    with pytest.raises(OptionError, match=message):
        serde.convert(net, tmp_path / "a.onnx", int4=True, **options)
    assert list(tmp_path.iterdir()) == []
