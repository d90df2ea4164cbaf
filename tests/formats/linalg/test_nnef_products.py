"""Products of stacked rows with one matrix: ONNX Runtime and Khronos' C++ runtime agree.

That runtime gives what memory holds where one side of ``matmul`` is repeated along a batch.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from support.nnef_judges import Khronos

import serde

pytest.importorskip("nnef")

SHAPES = [(3, 4), (2, 3, 4), (2, 2, 3, 4), (1, 3, 4), (4,)]
CASES = [
    pytest.param(
        shape,
        bias,
        transposed,
        id=f"{len(shape)}d-{bias=}-{transposed=}-{shape[0]}",
        marks=[pytest.mark.wide] if bias == transposed else [],
    )
    for shape in SHAPES
    for bias in (False, True)
    for transposed in (False, True)
]


def net(shape: tuple[int, ...], bias: bool, transposed: bool, path: Path) -> np.ndarray:
    """Write the product as ONNX, and return what is put in; the weight may be transposed first."""
    draw = np.random.default_rng(len(shape))
    weight = draw.normal(size=(5, 4) if transposed else (4, 5)).astype(np.float32)
    held = {"weight": weight, "bias": draw.normal(size=5).astype(np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "weight"], ["product"], name="product")]
    if transposed:
        nodes[0].input[1] = "turned"
        nodes.insert(0, helper.make_node("Transpose", ["weight"], ["turned"], perm=[1, 0]))
    nodes.append(
        helper.make_node("Add", ["product", "bias"], ["y"])
        if bias
        else helper.make_node("Identity", ["product"], ["y"])
    )
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (*shape[:-1], 5))],
        [numpy_helper.from_array(each, name) for name, each in held.items()],
    )
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return draw.normal(size=shape).astype(np.float32)


@pytest.mark.wide
@pytest.mark.parametrize(("shape", "bias", "transposed"), CASES)
@pytest.mark.thin(2)
def test_runtimes_agree(
    shape: tuple[int, ...], bias: bool, transposed: bool, tmp_path: Path
) -> None:
    source = tmp_path / "net.onnx"
    given = net(shape, bias, transposed, source)
    (expected,) = onnxruntime.InferenceSession(source).run(None, {"x": given})
    serde.convert(source, tmp_path / "net", target_format="nnef")
    judge = Khronos()
    try:
        (found,) = judge.run(tmp_path / "net", [given], tmp_path)
    finally:
        judge.close()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    serde.convert(tmp_path / "net", tmp_path / "back.onnx")
    (back,) = onnxruntime.InferenceSession(tmp_path / "back.onnx").run(None, {"x": given})
    np.testing.assert_allclose(back, expected, rtol=1e-5, atol=1e-5)


def test_a_product_of_stacked_rows_is_read_as_one(tmp_path: Path) -> None:
    net((2, 3, 4), True, False, tmp_path / "net.onnx")
    serde.convert(tmp_path / "net.onnx", tmp_path / "net", target_format="nnef")
    serde.convert(tmp_path / "net", tmp_path / "back.onnx")
    nodes = onnx.load(tmp_path / "back.onnx").graph.node
    assert [each.op_type for each in nodes] == ["MatMul", "Add"]
