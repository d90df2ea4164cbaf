"""What ONNX decides by the length of an axis, where that length is open, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from support.onnx_suite import interpret

import serde


def assert_kept(proto: onnx.ModelProto, x: np.ndarray) -> None:
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    model = serde.to_relay(proto)
    written = serde.from_relay(model, format="onnx").SerializeToString()
    session = onnxruntime.InferenceSession(written)
    for (found,) in (interpret(model, {"x": x}), session.run(None, {"x": x})):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(7, 8), (8, 7), (5, 2), (1, 1)])
@pytest.mark.parametrize("side", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("op", ["Conv", "MaxPool"])
def test_padding_to_the_same_length(op: str, side: str, shape: tuple[int, int]) -> None:
    """A stride above 1 lets the padding depend on the length, as in nets from TensorFlow."""
    inputs = "x, w" if op == "Conv" else "x"
    attrs = f'auto_pad = "{side}", kernel_shape = [3, 2], strides = [2, 3]'
    proto = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N, 2, H, W] x) => (float[N, C, P, Q] y)
        <float[2, 2, 3, 2] w = {{{", ".join(map(str, range(24)))}}}>
        {{ y = {op} <{attrs}> ({inputs}) }}"""
    )
    x = -1 - np.random.default_rng(0).random((1, 2, *shape)).astype(np.float32)
    assert_kept(proto, x)


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_hardmax(axis: int, opset: int) -> None:
    proto = parser.parse_model(
        f"""<ir_version: 7, opset_import: ["" : {opset}]>
        g (float[N, M, K] x) => (float[N, M, K] y) {{ y = Hardmax <axis = {axis}> (x) }}"""
    )
    x = np.random.default_rng(0).integers(0, 4, (3, 4, 5)).astype(np.float32)
    assert_kept(proto, x)


def test_expanding_to_no_elements_beside_a_length_that_is_computed() -> None:
    """Elements that there are none of do not tell how many rows they are."""
    proto = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[N] x) => (float[P, Q] y) {
          none = Constant <value = int64[1] {0}> ()
          places = NonZero (x)
          count = Shape <start = 1> (places)
          shape = Concat <axis = 0> (count, none)
          one = Constant <value = float {1}> ()
          y = Expand (one, shape)
        }"""
    )
    assert_kept(proto, np.array([1, 0, 2], np.float32))
