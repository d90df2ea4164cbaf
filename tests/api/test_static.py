"""Models without shape arithmetic: what is evaluated, and what is refused by name."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from support.resized_nets import build
from support.samples import build as build_sample

import serde
from serde.errors import OptionError, UnsupportedModelError
from serde.relay.ir import get

SHAPING = {"ConstantOfShape", "If", "NonZero", "Range", "Shape", "Size"}

EVALUATED = {
    "expanded": """<int64[1] one = {1}> {
        s = Shape(x) n = Shape(s) o = ConstantOfShape<value = int64[1] {1}>(n) m = Neg(o)
        c = Equal(s, m) w = Where(c, o, s) t = Constant<value = float[1,1] {2.0}>()
        e = Expand(t, w) y = Add(x, e) }""",
    "positions": """<int64 z = {0}, int64 one = {1}> {
        s = Shape(x) n = Gather(s, one) r = Range(z, n, one) f = Cast<to = 1>(r) y = Add(x, f) }""",
    "condition": """<int64 z = {0}, int64 one = {1}> {
        s = Shape(x) n = Gather(s, z) c = Equal(n, one)
        y = If(c)<then_branch = a () => (float[N,S] p) { p = Relu(x) },
            else_branch = b () => (float[N,S] q) { q = Neg(x) }> }""",
    "zeros": "{ s = Shape(x) z = ConstantOfShape(s) y = Concat<axis = 1>(x, z) }",
    "mask": """{
        n = Shape<start = 1>(x) s = Concat<axis = 0>(n, n)
        o = ConstantOfShape<value = float[1] {1.0}>(s) t = Trilu<upper = 0>(o)
        y = MatMul(x, t) }""",
    "half": """<int64 one = {1}, int64[1] z = {0}, int64[1] ax = {1}, int64 two = {2}> {
        s = Shape(x) n = Gather(s, one) h = Div(n, two) e = Unsqueeze(h, z) y = Slice(x, z, e, ax)
        }""",
    "size": "{ s = Size(x) f = Cast<to = 1>(s) y = Div(x, f) }",
    "reshaped": """<int64 z = {0}, int64[1] m = {-1}, int64[1] a = {0}> {
        s = Shape(x) n = Gather(s, z) u = Unsqueeze(n, a) r = Concat<axis = 0>(u, m)
        b = Unsqueeze(x, a) y = Reshape(b, r) }""",
}

DECIDED = {
    "NonZero": ("(float[N,S] x) => (int64[2,K] y) { a = Relu(x) y = NonZero(a) }", ["y"]),
    "TopK": (
        "(float[N,S] x, int64[1] k) => (float[N,K] y) { a = Relu(x) y, i = TopK(a, k) }", ["y"]
    ),
    "NonMaxSuppression": (
        "(float[1,S,4] b, float[1,2,S] c) => (int64[K,3] y) <int64 k = {3}> "
        "{ y = NonMaxSuppression(b, c, k) }", ["y"],
    ),
    "Reshape": ("(float[N,S] x, int64[2] s) => (float[A,B] y) { y = Reshape(x, s) }", ["y"]),
    "several": (
        "(float[N,S] x) => (int64[K] y, float[M] z) <int64 o = {0}> { a = NonZero(x) "
        "y = Gather(a, o) b = Unique(x) z = Relu(b) }", ["a", "b"],
    ),
}  # fmt: skip
LENGTHS = {"N": 2, "S": 4}


def convert(proto: onnx.ModelProto, **options: object) -> onnx.ModelProto:
    shapes = {
        each.name: [
            LENGTHS.get(dim.dim_param, dim.dim_value) for dim in each.type.tensor_type.shape.dim
        ]
        for each in proto.graph.input
    }
    found = serde.export_model(proto, format="onnx", input_shapes=shapes, static=True, **options)
    assert isinstance(found, onnx.ModelProto)
    return found


@pytest.mark.parametrize("name", EVALUATED)
def test_no_shape_arithmetic_is_left(name: str) -> None:
    proto = build(f"(float[N,S] x) => (float[A,B] y) {EVALUATED[name]}", {})
    found = convert(proto)
    assert not SHAPING & {node.op_type for node in found.graph.node}
    assert len(found.graph.node) <= 1
    assert all(dim.dim_value for dim in found.graph.output[0].type.tensor_type.shape.dim)
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    expected, result = (
        onnxruntime.InferenceSession(each.SerializeToString()).run(None, {"x": x})[0]
        for each in (proto, found)
    )
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize("name", DECIDED)
def test_what_values_decide_is_refused_by_name(name: str) -> None:
    text, nodes = DECIDED[name]
    with pytest.raises(UnsupportedModelError, match="values decide the lengths") as caught:
        convert(build(text, {}))
    assert [each.node for each in caught.value.report.issues] == nodes


def test_a_number_that_is_given_is_no_value() -> None:
    found = convert(build(DECIDED["TopK"][0], {}), fix_inputs={"k": 2})
    assert [node.op_type for node in found.graph.node] == ["Relu", "TopK"]


def test_an_open_length_is_refused_by_its_input() -> None:
    proto = build(
        "(float[2,S] x, float[N,4] z) => (float[A,B] y) { y = Concat<axis = 0>(x, z) }", {}
    )
    with pytest.raises(OptionError, match=r"static: input z is Tensor\[\(N, 4\), float32\]; give"):
        serde.export_model(proto, format="onnx", input_shapes={"x": (2, 4)}, static=True)


@pytest.mark.parametrize("name", ["cumprod", "scatter_nd", "strided_set", "zeros_like"])
def test_writers_evaluate_the_shapes_that_they_spell(name: str) -> None:
    sample = build_sample(get(name), get(name).samples[0])
    found = serde.from_relay(sample.function, format="onnx", static=True)
    assert not SHAPING & {each.op_type for each in found.graph.node}
