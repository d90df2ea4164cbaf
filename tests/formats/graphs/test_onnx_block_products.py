"""Products with weights in blocks, from ONNX Runtime's operator and into it; it judges them."""

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
from serde.engine.interpreter import RelayEngine

RNG = np.random.default_rng(7)
ROWS = 24
DATA = RNG.normal(0, 1, (2, 3, 64)).astype("f4")
MIDDLE = {4: 8, 8: 128}


def save(path: Path, bits: int, depth: int, block: int, points: bool, **own: Any) -> dict[str, Any]:
    """Write a product of ONNX Runtime's; return what it is made of, each level a number."""
    blocks = -(-depth // block)
    levels = RNG.integers(0, 1 << bits, (ROWS, blocks, block)).astype("u1")
    zero = np.full((ROWS, blocks), MIDDLE[bits], "u1")
    if points:
        zero = RNG.integers(0, 1 << bits, (ROWS, blocks)).astype("u1")
    scales = RNG.uniform(0.01, 0.1, (ROWS, blocks)).astype(own.get("dtype", "f4"))
    arrays = {"levels": pack(levels, bits), "scales": scales}
    if points:
        arrays["points"] = pack(np.pad(zero, ((0, 0), (0, blocks % (8 // bits)))), bits)
    attributes = {"K": depth, "N": ROWS, "bits": bits, "block_size": block}
    node = helper.make_node(
        "MatMulNBits", ["x", *arrays], ["y"], "product", domain="com.microsoft", **attributes
    )
    kind = helper.np_dtype_to_tensor_dtype(scales.dtype)
    graph = helper.make_graph(
        [node],
        "net",
        [helper.make_tensor_value_info("x", kind, ["N", 3, depth])],
        [helper.make_tensor_value_info("y", kind, ["N", 3, ROWS])],
        [numpy_helper.from_array(each, name) for name, each in arrays.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    weight = (levels.astype("f4") - zero[..., None]) * scales[..., None].astype("f4")
    return {**arrays, "weight": weight.reshape(ROWS, -1)[:, :depth]}


def pack(levels: np.ndarray, bits: int) -> np.ndarray:
    """Return levels in bytes, the first one in the lowest bits."""
    return levels if bits == 8 else levels[..., ::2] | levels[..., 1::2] << 4


def run(path: Path, x: np.ndarray) -> np.ndarray:
    return open_session(path, fuse=False).run(None, {"x": x})[0]


def stored(path: Path) -> list[np.ndarray]:
    (node,) = onnx.load(path).graph.node
    assert node.op_type == "MatMulNBits"
    found = {e.name: numpy_helper.to_array(e) for e in onnx.load(path).graph.initializer}
    return [found[name] for name in node.input[1:]]


SHAPES = [(4, 64, 16), (4, 64, 64), (8, 64, 32), (4, 40, 16), (8, 40, 16)]


@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize(("bits", "depth", "block"), SHAPES)
def test_round_trip(tmp_path: Path, bits: int, depth: int, block: int, points: bool) -> None:
    made = save(tmp_path / "a.onnx", bits, depth, block, points)
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", runtime="onnxruntime", check=True)
    names = ["levels", "scales", *(["points"] if points else [])]
    found = stored(tmp_path / "b.onnx")
    assert len(found) == len(names)
    x = DATA[..., :depth]
    expected = x @ made["weight"].T
    np.testing.assert_allclose(run(tmp_path / "b.onnx", x), expected, rtol=1e-4, atol=1e-4)
    if depth % block == 0:
        for name, each in zip(names, found, strict=True):
            np.testing.assert_array_equal(each, made[name])


def test_the_report_tells_of_levels_that_take_bytes(tmp_path: Path) -> None:
    save(tmp_path / "a.onnx", 4, 64, 16, True)
    told = [
        [note for note in report.notes if "stored in 8" in note]
        for options in ({"opset": 17}, {"opset": 21}, {"opset": 17, "runtime": "onnxruntime"})
        for report in [serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", **options)]
    ]
    assert [len(each) for each in told] == [1, 0, 0]
    assert told[0][0].startswith("weights of 4 bits that are stored in 8: 1;")


def test_half(tmp_path: Path) -> None:
    made = save(tmp_path / "a.onnx", 4, 64, 32, True, dtype="f2")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", runtime="onnxruntime")
    for name, each in zip(("levels", "scales", "points"), stored(tmp_path / "b.onnx"), strict=True):
        np.testing.assert_array_equal(each, made[name])


@pytest.mark.parametrize("opset", [17, 21])
@pytest.mark.parametrize(("bits", "depth", "block"), SHAPES)
def test_operators_of_onnx(tmp_path: Path, bits: int, depth: int, block: int, opset: int) -> None:
    made = save(tmp_path / "a.onnx", bits, depth, block, True)
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", opset=opset)
    x = DATA[..., :depth]
    expected = x @ made["weight"].T
    np.testing.assert_allclose(run(tmp_path / "b.onnx", x), expected, rtol=1e-4, atol=1e-4)
    model = onnx.load(tmp_path / "b.onnx")
    if opset == 21 and bits == 4:
        assert Counter(each.op_type for each in model.graph.node) == {
            "DequantizeLinear": 1, "MatMul": 1,
        }  # fmt: skip
        kinds = [each.data_type for each in model.graph.initializer]
        assert sorted(kinds) == [TensorProto.FLOAT, TensorProto.UINT4, TensorProto.UINT4]


@pytest.mark.parametrize("dtype", ["int4", "int8"])
def test_from_operators_of_onnx(tmp_path: Path, dtype: str) -> None:
    """Levels with a sign become such without; what is in the middle is left out."""
    bits = int(dtype[3:])
    levels = RNG.integers(-(1 << bits - 1), 1 << bits - 1, (64, ROWS))
    scales = RNG.uniform(0.01, 0.1, (2, ROWS)).astype("f4")
    kind = {"int4": TensorProto.INT4, "int8": TensorProto.INT8}[dtype]
    graph = helper.make_graph(
        [
            helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=32),
            helper.make_node("MatMul", ["x", "d"], ["y"]),
        ],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3, ROWS])],
        [
            helper.make_tensor("w", kind, levels.shape, levels.reshape(-1)),
            numpy_helper.from_array(scales, "s"),
        ],
    )
    opsets = [helper.make_opsetid("", 21)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", runtime="onnxruntime", opset=21)
    packed, factors = stored(tmp_path / "b.onnx")
    shifted = (levels + (1 << bits - 1)).T.reshape(ROWS, 2, 32).astype("u1")
    np.testing.assert_array_equal(packed, pack(shifted, bits))
    np.testing.assert_array_equal(factors, scales.T)
    expected = DATA @ (levels * scales.repeat(32, 0))
    np.testing.assert_allclose(run(tmp_path / "b.onnx", DATA), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("suffix", [".relay", ".nnef.tgz"])
def test_other_formats(tmp_path: Path, suffix: str) -> None:
    made = save(tmp_path / "a.onnx", 4, 64, 32, True)
    target = tmp_path / f"b{suffix}"
    serde.convert(tmp_path / "a.onnx", target, input_shapes={"x": (2, 3, 64)})
    (found,) = RelayEngine(serde.to_relay(target)).run({"x": DATA})
    np.testing.assert_allclose(found, DATA @ made["weight"].T, rtol=1e-4, atol=1e-4)


def test_constants_of_core_ml(tmp_path: Path) -> None:
    """From iOS18 on, levels are a constant in blocks, which coremltools undoes."""
    tools = pytest.importorskip("coremltools")
    made = save(tmp_path / "a.onnx", 4, 64, 32, True)
    target = tmp_path / "b.mlpackage"
    given: dict[str, Any] = {"input_shapes": {"x": (2, 3, 64)}}
    serde.convert(tmp_path / "a.onnx", target, minimum_deployment_target="iOS18", **given)
    model = tools.models.MLModel(str(target), skip_model_load=True)
    program = model.get_spec().mlProgram.functions["main"]
    (block,) = program.block_specializations.values()
    assert "constexpr_blockwise_shift_scale" in [each.type for each in block.operations]
    plain = tools.optimize.coreml.decompress_weights(model)
    found = tools.optimize.coreml.get_weights_metadata(plain, weight_threshold=100)
    (weight,) = (each.val for each in found.values() if each.val.size == ROWS * 64)
    wanted = made["weight"] if weight.shape == made["weight"].shape else made["weight"].T
    np.testing.assert_allclose(weight, wanted, rtol=2e-3, atol=2e-3)
