"""Normalisations of channels whose number is open, as tf2onnx writes Keras's layer norm."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from support.onnx_suite import interpret

import serde
import serde.relay as relay

KERAS = """<ir_version: 7, opset_import: ["" : 13]>
g (float[N, 8] x) => (float[N, 8] y)
   <int64[4] folded = {1, -1, 8, 1}, float one = {1}, float zero = {0}, int64[1] first = {0},
    int64[1] second = {1}, int64[3] others = {0, 2, 3}, float[8] gamma = {1,2,3,4,5,6,7,8},
    float[8] beta = {8,7,6,5,4,3,2,1}>
{
   shape = Shape (x)
   shape32 = Cast <to = 6> (shape)
   rows32 = Slice (shape32, first, second, first)
   rows = Cast <to = 7> (rows32)
   ones = Expand (one, rows)
   zeros = Expand (zero, rows)
   images = Reshape (x, folded)
   mean4 = ReduceMean <axes = [0, 2, 3], keepdims = 1> (images)
   mean = Squeeze (mean4, others)
   centred = Sub (images, mean4)
   squares = ReduceSumSquare <axes = [0, 2, 3], keepdims = 0> (centred)
   shape4 = Shape (images)
   counted = Gather (shape4, others)
   count = ReduceProd <axes = [0], keepdims = 0> (counted)
   size = Cast <to = 1> (count)
   variance = Div (squares, size)
   normal = BatchNormalization <epsilon = 0.001> (images, ones, zeros, mean, variance)
   back = Reshape (normal, shape)
   scaled = Mul (back, gamma)
   y = Add (scaled, beta)
}"""
"""What tf2onnx 1.14 writes for `LayerNormalization` of Keras: rows become channels."""

X = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)


def run(proto: onnx.ModelProto, **inputs: np.ndarray) -> list[np.ndarray]:
    return onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)


@pytest.mark.parametrize("opset", [11, 13, 17])
def test_layer_norm_of_keras(opset: int) -> None:
    proto = parser.parse_model(KERAS)
    (expected,) = run(proto, x=X)
    model = serde.to_relay(proto)
    np.testing.assert_allclose(interpret(model, {"x": X})[0], expected, atol=1e-5)
    (found,) = run(serde.from_relay(model, format="onnx", opset=opset), x=X)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("flags", [{}, {"scale": False}, {"center": False}])
@pytest.mark.parametrize("name", ["batch_norm", "instance_norm", "group_norm"])
@pytest.mark.parametrize("opset", [11, 17, 21])
def test_open_channels(name: str, flags: dict[str, bool], opset: int) -> None:
    x = relay.var("x", shape=(2, "C", 3), dtype="float32")
    vectors = [relay.var(n, shape=("C",), dtype="float32") for n in ("g", "b", "m", "v")]
    count = 4 if name == "batch_norm" else 2
    more = {"num_groups": 2} if name == "group_norm" else {}
    body = getattr(relay.nn, name)(x, *vectors[:count], **more, **flags)
    body = body[0] if name == "batch_norm" else body
    mod = relay.IRModule.from_expr(relay.Function([x, *vectors[:count]], body))
    proto = serde.export_model(mod, {}, format="onnx", opset=opset)
    rng = np.random.default_rng(0)
    given = {"x": rng.standard_normal((2, 4, 3)).astype(np.float32)}
    given |= {n: rng.uniform(0.5, 2, 4).astype(np.float32) for n in ("g", "b", "m", "v")[:count]}
    data = given["x"].astype(np.float64)
    if name == "batch_norm":
        mean, variance = given["m"][:, None], given["v"][:, None]
    else:
        parts = data.reshape(2, -1, 3) if name == "instance_norm" else data.reshape(2, 2, 6)
        mean, variance = parts.mean(2, keepdims=True), parts.var(2, keepdims=True)
        data = parts
    wanted = ((data - mean) / np.sqrt(variance + 1e-5)).reshape(2, 4, 3)
    wanted = wanted * (1 if "scale" in flags else given["g"][:, None])
    wanted = wanted + (0 if "center" in flags else given["b"][:, None])
    names = {each.name for each in proto.graph.input}
    (found,) = run(proto, **{n: value for n, value in given.items() if n in names})
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_groups_of_version_18_of_open_channels() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (float[N, C, 5] x) => (float[N, C, 5] y) <float[2] s = {2, 3}, float[2] b = {1, -1}>
        { y = GroupNormalization <num_groups = 2> (x, s, b) }"""
    proto = parser.parse_model(text)
    x = np.random.default_rng(0).standard_normal((2, 6, 5)).astype(np.float32)
    (expected,) = run(proto, x=x)
    model = serde.to_relay(proto)
    np.testing.assert_allclose(interpret(model, {"x": x})[0], expected, atol=1e-5)
    (found,) = run(serde.from_relay(model, format="onnx"), x=x)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
@pytest.mark.parametrize("values", ["float32", "int64", "int8"])
def test_one_hot_as_onnx_runtime_has_it(dtype: str, values: str) -> None:
    """It has a OneHot for some dtypes of indices, depth and values only."""
    x = relay.var("x", shape=("N", 2), dtype=dtype)
    marks = relay.Constant(np.array([2, 7], values))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.serde.one_hot(x, marks, depth=3)))
    proto = serde.export_model(mod, {}, format="onnx")
    (found,) = run(proto, x=np.array([[0, 2], [1, 0]], dtype))
    wanted = [[[7, 2, 2], [2, 2, 7]], [[2, 7, 2], [7, 2, 2]]]
    assert found.dtype == values
    assert found.tolist() == wanted
