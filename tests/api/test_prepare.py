"""What is done to a model between source and target, and what is left undone when asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from support.runtime import run_onnx

import serde

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
agraph (float[N, 3, 4, 4] x) => (float[N, 2, 4, 4] y, float[N, 2, 4, 4] z)
<float[2, 3, 1, 1] w = {1, 2, 3, 4, 5, 6}, float[2] s = {2, 3}, float[2] b = {0, 1},
 float[2] m = {1, 1}, float[2] v = {4, 9}>
{
    c = Conv (x, w)
    n = BatchNormalization (c, s, b, m, v)
    d = Dropout (n)
    y = Relu (d)
    z = Relu (n)
}
"""


@pytest.mark.parametrize(
    ("options", "operators"),
    [
        ({}, ["Conv", "Relu"]),
        ({"keep_batch_norm": True}, ["BatchNormalization", "Conv", "Relu"]),
        ({"simplify": False}, ["BatchNormalization", "Conv", "Relu", "Relu"]),
    ],
)
def test_simplifying(tmp_path: Path, options: dict[str, Any], operators: list[str]) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "n.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), source)
    serde.convert(source, target, **options)
    counted = [node.op_type for node in onnx.load(target).graph.node if node.op_type != "Identity"]
    assert sorted(counted) == operators
    data = {"x": np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype("float32")}
    for left, right in zip(run_onnx(source, data)[1], run_onnx(target, data)[1], strict=True):
        np.testing.assert_allclose(right, left, rtol=1e-5, atol=1e-5)
