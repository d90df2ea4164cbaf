"""Lengths that a caller opens: literals of the source follow them, or a node is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import serde
from serde.errors import UnsupportedModelError

onnxruntime = pytest.importorskip("onnxruntime")

_WEIGHTS = {
    "pooled": {"w": (3, 10)},
    "detector": {"k": (27, 3, 1, 1)},
    "attention": {"w": (24, 24)},
    "merged heads": {"w": (24, 24)},
    "class token": {"t": (1, 1, 6)},
    "initial states": {"w": (1, 20, 3), "r": (1, 20, 5), "h": (1, 1, 5), "c": (1, 1, 5)},
    "decoder": {"w": (6, 9)},
    "expanded": {"w": (6, 4)},
    "rows of heads": {"w": (6, 6)},
    "positions": {"w": (2, 2)},
}

_GRAPHS = {
    "pooled": """(float[1,3,8,8] x) => (float[1,10] y) <int64[2] s = {1, -1}> {
        a = GlobalAveragePool(x)
        b = Reshape(a, s)
        y = MatMul(b, w)
    }""",
    "detector": """(float[1,3,8,8] x) => (float[1,192,9] y)
        <int64[5] s = {1, 3, 9, 8, 8}, int64[3] t = {1, -1, 9}> {
        a = Conv(x, k)
        b = Reshape(a, s)
        c = Transpose<perm = [0, 1, 3, 4, 2]>(b)
        d = Sigmoid(c)
        y = Reshape(d, t)
    }""",
    "attention": """(float[1,6,24] x) => (float[1,6,24] y)
        <int64[4] s = {1, 6, 3, 8}, int64[3] t = {1, 6, 24}> {
        q = MatMul(x, w)
        a = Reshape(q, s)
        b = Transpose<perm = [0, 2, 1, 3]>(a)
        c = Transpose<perm = [0, 2, 3, 1]>(a)
        d = MatMul(b, c)
        e = Softmax<axis = -1>(d)
        f = MatMul(e, b)
        g = Transpose<perm = [0, 2, 1, 3]>(f)
        y = Reshape(g, t)
    }""",
    "merged heads": """(float[1,6,24] x) => (float[1,6,24] y)
        <int64[4] s = {1, 6, 3, 8}, int64[3] m = {3, 6, 8}, int64[4] n = {1, 3, 6, 8},
         int64[3] t = {1, 6, 24}> {
        q = MatMul(x, w)
        a = Reshape(q, s)
        b = Transpose<perm = [0, 2, 1, 3]>(a)
        c = Reshape(b, m)
        d = Transpose<perm = [0, 2, 1]>(c)
        e = MatMul(c, d)
        f = Softmax<axis = -1>(e)
        g = MatMul(f, c)
        h = Reshape(g, n)
        i = Transpose<perm = [0, 2, 1, 3]>(h)
        y = Reshape(i, t)
    }""",
    "class token": """(float[1,6,2,2] x) => (float[1,6] y)
        <int64[3] s = {1, 6, 4}, int64[3] e = {1, -1, -1}, int64[1] b = {0}, int64[1] f = {1},
         int64[1] ax = {1}, int64 i = {0}, int64[3] g = {1, 1, 6}> {
        a = Reshape(x, s)
        c = Transpose<perm = [0, 2, 1]>(a)
        u = Expand(t, g)
        d = Concat<axis = 1>(u, c)
        h = Softmax<axis = 1>(d)
        y = Gather<axis = 1>(h, i)
    }""",
    "initial states": """(float[4,1,3] x) => (float[4,1,1,5] y) {
        y = LSTM<hidden_size = 5>(x, w, r, , , h, c)
    }""",
    "decoder": """(float[4,1,6] x) => (float[4,1,9] y)
        <int64[2] s = {4, 6}, int64[3] t = {4, 1, 9}> {
        a = Reshape(x, s)
        b = MatMul(a, w)
        y = Reshape(b, t)
    }""",
    "rows of heads": """(float[4,1,6] x) => (float[4,1,6] y)
        <int64[3] s = {4, 2, 3}, int64[2] r = {4, 6}, int64[3] t = {4, 1, 6}> {
        a = Reshape(x, s)
        b = Transpose<perm = [1, 0, 2]>(a)
        c = Transpose<perm = [0, 2, 1]>(b)
        d = MatMul(b, c)
        e = Softmax<axis = -1>(d)
        f = MatMul(e, b)
        g = Transpose<perm = [1, 0, 2]>(f)
        h = Reshape(g, r)
        i = MatMul(h, w)
        y = Reshape(i, t)
    }""",
    "sliced": """(float[1,6] x) => (float[1,4] y)
        <int64[2] b = {0, 1}, int64[2] e = {1, 5}, int64[2] ax = {0, 1}> {
        y = Slice(x, b, e, ax)
    }""",
    "expanded": """(float[1,6] x) => (float[1,3,4] y)
        <int64[3] e = {1, 3, 6}, int64[3] s = {1, 1, 6}> {
        a = Reshape(x, s)
        b = Expand(a, e)
        y = MatMul(b, w)
    }""",
    "filled": """(float[1,6] x) => (float[1,8] y) <int64[2] s = {1, 2}> {
        z = ConstantOfShape<value = float[1] {3.0}>(s)
        y = Concat<axis = 1>(x, z)
    }""",
    "tiled": """(float[1,6] x) => (float[1,12] y) <int64[2] s = {1, 2}> {
        y = Tile(x, s)
    }""",
}

_FLOAT32: dict[str, Any] = {".mlpackage": {"compute_precision": "float32"}}

_REFUSED = {
    "entry": ("""(float[1,6] x) => (float[6] y) <int64 i = {0}> {
        a = Relu(x)
        y = Gather<axis = 0>(a, i)
    }""", "serde.take", "y"),
    "squeezed": ("""(float[1,6] x) => (float[6] y) <int64[1] i = {0}> {
        a = Relu(x)
        y = Squeeze(a, i)
    }""", "squeeze", "y"),
    "summed": ("""(float[1,6] x) => (float y) {
        a = Relu(x)
        b = ReduceSum<keepdims = 0>(a)
        y = Sqrt(b)
    }""", "sum", "b"),
    "positions": ("""(float[1,6] x) => (float[1,6] y) <int64[2] s = {2, 3}, int64[2] t = {1, 6}> {
        a = Reshape(x, s)
        b = MatMul(w, a)
        y = Reshape(b, t)
    }""", "reshape", "a"),
}  # fmt: skip


def build(name: str, text: str, folder: Path) -> Path:
    head = '<ir_version: 8, opset_import: ["" : 17]> m '
    proto = parser.parse_model(head + text)
    rng = np.random.default_rng(3)
    for key, shape in _WEIGHTS.get(name, {}).items():
        weight = rng.normal(size=shape).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(weight, key))
    onnx.save(proto, folder / "source.onnx")
    return folder / "source.onnx"


def run(path: Path, x: np.ndarray) -> np.ndarray:
    return onnxruntime.InferenceSession(path).run(None, {"x": x})[0]


def by_entries(path: Path, x: np.ndarray, axis: int) -> np.ndarray:
    pieces = [run(path, each) for each in np.split(x, x.shape[axis], axis)]
    shapes = onnxruntime.InferenceSession(path).get_outputs()[0].shape
    return np.concatenate(pieces, 2 if len(shapes) == 4 else axis)


@pytest.mark.parametrize("given", ["N", 3])
@pytest.mark.parametrize("name", _GRAPHS)
def test_a_batch_follows(name: str, given: Any, tmp_path: Path) -> None:
    path = build(name, _GRAPHS[name], tmp_path)
    shape = list(map(int, onnxruntime.InferenceSession(path).get_inputs()[0].shape))
    axis = shape.index(1)
    opened = [given if at == axis else n for at, n in enumerate(shape)]
    target = tmp_path / "target.onnx"
    serde.convert(path, target, input_shapes={"x": opened})
    shape[axis] = 3
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    expected = by_entries(path, x, axis)
    np.testing.assert_allclose(run(target, x), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("given", ["N", 3])
@pytest.mark.parametrize("name", _REFUSED)
def test_what_holds_a_batch_is_named(name: str, given: Any, tmp_path: Path) -> None:
    text, operator, node = _REFUSED[name]
    path = build(name, text, tmp_path)
    with pytest.raises(UnsupportedModelError) as caught:
        serde.convert(path, tmp_path / "target.onnx", input_shapes={"x": (given, 6)})
    assert (caught.value.report.issues[0].op, caught.value.report.issues[0].node) == (
        operator,
        node,
    )


@pytest.mark.wide
@pytest.mark.parametrize("suffix", ["-symbol.json", ".nnef", ".mlpackage", ".relay"])
def test_a_batch_follows_in_every_format(suffix: str, tmp_path: Path) -> None:
    path = build("pooled", _GRAPHS["pooled"], tmp_path)
    between = tmp_path / f"between{suffix}"
    serde.convert(path, between, **_FLOAT32.get(suffix, {}))
    target = tmp_path / "target.onnx"
    source: Any = between
    if suffix == "-symbol.json":
        source = (between, tmp_path / "between-0000.params")
    report = serde.convert(source, target, input_shapes={"x": ("N", 3, 8, 8)}, check=True)
    assert "dynamic dimensions were checked at N=2; N=3; N=1" in report.notes
    x = np.random.default_rng(0).normal(size=(3, 3, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(run(target, x), by_entries(path, x, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.wide
def test_the_length_of_a_sequence_follows(tmp_path: Path) -> None:
    text = _GRAPHS["attention"]
    path = build("attention", text, tmp_path)
    report = serde.convert(
        path, tmp_path / "target.onnx", input_shapes={"x": (1, "S", 24)}, check=True
    )
    assert "dynamic dimensions were checked at S=12; S=18; S=6" in report.notes
    (tmp_path / "open").mkdir()
    free = text.replace("1,6,24", "1,S,24").replace("{1, 6,", "{1, -1,")
    expected = build("attention", free, tmp_path / "open")
    x = np.random.default_rng(0).normal(size=(1, 9, 24)).astype(np.float32)
    np.testing.assert_allclose(run(tmp_path / "target.onnx", x), run(expected, x), atol=1e-5)


def test_what_fixes_a_length_is_told(tmp_path: Path) -> None:
    path = build("pooled", _GRAPHS["pooled"], tmp_path)
    report = serde.convert(path, tmp_path / "target.onnx", input_shapes=("N", 3, 8, 8), check=True)
    assert "what held a length of the source follows it now: b newshape [1, -1]: [N, -1]" in (
        report.notes
    )
    assert "dynamic dimensions were checked at N=2; N=3; N=1" in report.notes


def test_a_length_that_weights_fix_is_refused(tmp_path: Path) -> None:
    path = build("pooled", _GRAPHS["pooled"], tmp_path)
    with pytest.raises(UnsupportedModelError, match="cannot multiply") as caught:
        serde.convert(path, tmp_path / "target.onnx", input_shapes=(1, "C", 8, 8))
    assert [each.node for each in caught.value.report.issues] == ["y"]


def test_an_opened_length_that_nothing_holds_is_checked_at_two_sizes(tmp_path: Path) -> None:
    text = "(float[1,3,8,8] x) => (float[1,3,8,8] y) { y = Softmax<axis = 1>(x) }"
    path = build("softmax", text, tmp_path)
    report = serde.convert(path, tmp_path / "target.onnx", input_shapes=(1, 3, "H", 8), check=True)
    assert report.engines is not None
    assert "onnxruntime" in report.engines[0]
    assert "dynamic dimensions were checked at H=16; H=24; H=8" in report.notes
