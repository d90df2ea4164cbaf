"""Weights of 4 bits below version 21 of ONNX's operators: held in 8 bits, with their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from support.runtime import open_session

import serde

ROWS, COLUMNS = 8, 6
BOUNDS = {"int4": (-8, 8), "uint4": (0, 16)}
FORMS: dict[str, dict[str, int]] = {
    "one": {},
    "channels": {"axis": 1},
    "rows": {"axis": 0},
    "blocks": {"axis": 0, "block_size": 4},
    "blocks of the last axis": {"axis": 1, "block_size": 3},
}


def quantized(dtype: str, form: str, zero: bool) -> tuple[ModelProto, np.ndarray]:
    """A product with a weight of 4 bits, and what the weight is."""
    rng = np.random.default_rng(6)
    attrs = FORMS[form]
    shape: tuple[int, ...] = ()
    if "block_size" in attrs:
        lengths = [ROWS, COLUMNS]
        lengths[attrs["axis"]] //= attrs["block_size"]
        shape = tuple(lengths)
    elif attrs:
        shape = ((ROWS, COLUMNS)[attrs["axis"]],)
    levels = rng.integers(*BOUNDS[dtype], (ROWS, COLUMNS))
    points = rng.integers(*BOUNDS[dtype], shape) if zero else np.zeros(shape, np.int64)
    scale = rng.uniform(0.1, 0.5, shape).astype(np.float32)
    kind = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4}[dtype]
    kept = [
        helper.make_tensor("w", kind, levels.shape, levels.reshape(-1).tolist()),
        numpy_helper.from_array(scale, "s"),
        helper.make_tensor("z", kind, shape, np.reshape(points, -1).tolist()),
    ]
    given = ["w", "s", "z"] if zero else ["w", "s"]
    nodes = [
        helper.make_node("DequantizeLinear", given, ["d"], **attrs),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, ROWS]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, COLUMNS]),
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], kept[: len(given)])
    opsets = [helper.make_opsetid("", 21)]
    spread = [points.astype(np.float32), scale]
    for index, each in enumerate(spread):
        if "block_size" in attrs:
            spread[index] = each.repeat(attrs["block_size"], attrs["axis"])
        elif attrs:
            spread[index] = each[:, None] if attrs["axis"] == 0 else each
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), (
        (levels - spread[0]) * spread[1]
    ).astype(np.float32)


@pytest.mark.parametrize("opset", [13, 17, 20])
@pytest.mark.parametrize("zero", [False, True], ids=["plain", "zero"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", BOUNDS)
def test_weights_stay_quantised_in_bytes(dtype: str, form: str, zero: bool, opset: int) -> None:
    model, weight = quantized(dtype, form, zero)
    found = serde.export_model(model, format="onnx", opset=opset)
    kinds = {each.data_type for each in found.graph.initializer if len(each.dims) == 2}
    wide = {"int4": TensorProto.INT8, "uint4": TensorProto.UINT8}[dtype]
    assert kinds == {wide}
    assert "DequantizeLinear" in {node.op_type for node in found.graph.node}
    x = np.eye(ROWS, dtype=np.float32)[:2] * np.float32(2)
    # What ONNX Runtime makes of both nodes together it computes on fewer bits.
    session: Any = open_session(found.SerializeToString(), fuse=False)
    (result,) = session.run(None, {"x": x})
    np.testing.assert_allclose(result, x @ weight, rtol=1e-6, atol=1e-7)
