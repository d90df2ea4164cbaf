"""Nets of images that are read at another size: their literals follow, or a node is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.resized_nets import DOUBTFUL, FOLLOWING, REFUSED, build, image

import serde
from serde.errors import OptionError, UnsupportedModelError

onnxruntime = pytest.importorskip("onnxruntime")

SIZES = {"numbers": (1, 3, 12, 16), "names": (1, 3, "H", "W"), "multiples": (1, 3, "4*H", "4*W")}
_FLOAT32: dict[str, Any] = {".mlpackage": {"compute_precision": "float32"}}


def run(proto: onnx.ModelProto, x: np.ndarray) -> list[Any]:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: x})


def assert_as_built(found: onnx.ModelProto, net: Any, h: int, w: int) -> None:
    x = np.random.default_rng(0).normal(size=(1, 3, h, w)).astype(np.float32)
    for one, other in zip(run(found, x), run(image(h, w, net(h, w)), x), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("own", [(8, 8), (8, 12)])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", FOLLOWING)
def test_a_net_follows(name: str, size: str, own: tuple[int, int]) -> None:
    net = FOLLOWING[name]
    source = image(*own, net(*own))
    found = serde.export_model(source, format="onnx", input_shapes={"x": SIZES[size]})
    assert_as_built(found, net, 12, 16)


@pytest.mark.parametrize("size", ["numbers", "multiples"])
@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_size_follows_where_its_readings_are_one(name: str, size: str) -> None:
    net = DOUBTFUL[name]
    source = image(8, 8, net(8, 8))
    found = serde.export_model(source, format="onnx", input_shapes={"x": SIZES[size]})
    assert_as_built(found, net, 12, 16)


@pytest.mark.parametrize(("name", "node"), [("segmentation", "c"), ("doubled", "y")])
def test_a_size_that_may_be_two_lengths_is_refused(name: str, node: str) -> None:
    source = image(8, 8, DOUBTFUL[name](8, 8))
    with pytest.raises(UnsupportedModelError, match="size may stand for H and for") as caught:
        serde.to_relay(source, input_shapes={"x": (1, 3, "H", 8)})
    assert [each.node for each in caught.value.report.issues] == [node]


@pytest.mark.parametrize(("name", "node"), [("segmentation", "c"), ("doubled", "y")])
def test_literals_stay_where_it_is_allowed(name: str, node: str, tmp_path: Path) -> None:
    source, path = image(8, 8, DOUBTFUL[name](8, 8)), tmp_path / "net.onnx"
    shapes = {"x": (1, 3, "H", 8)}
    report = serde.convert(source, path, input_shapes=shapes, allow=["other-lengths"])
    assert [each.node for each in report.allowed] == [node]
    source.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "H"
    names = [each.name for each in source.graph.output]
    del source.graph.output[:], source.graph.value_info[:]
    source.graph.output.extend(onnx.ValueInfoProto(name=each) for each in names)
    x = np.random.default_rng(0).normal(size=(1, 3, 12, 8)).astype(np.float32)
    found, wanted = run(onnx.load(path), x), run(source, x)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", ["numbers", "names"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_follow_is_named(name: str, size: str) -> None:
    net, operator, node = REFUSED[name]
    with pytest.raises(UnsupportedModelError) as caught:
        serde.to_relay(image(8, 8, net), input_shapes={"x": SIZES[size]})
    first = caught.value.report.issues[0]
    assert (first.op, first.node) == (operator, node)


@pytest.mark.parametrize("suffix", [".tflite", ".mlpackage", ".nnef"])
@pytest.mark.parametrize("name", ["unet", "head", "image_pooling"])
def test_a_net_follows_in_every_format(name: str, suffix: str, tmp_path: Path) -> None:
    net, path = FOLLOWING[name], tmp_path / f"net{suffix}"
    serde.export_model(image(8, 8, net(8, 8)), path=path, **_FLOAT32.get(suffix, {}))
    found = serde.export_model(path, format="onnx", input_shapes=(1, 3, 12, 16))
    assert_as_built(found, net, 12, 16)


def test_numbers_are_checked_by_the_source_itself(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(image(8, 8, FOLLOWING["classifier"](8, 8)), path)
    report = serde.convert(path, tmp_path / "o.onnx", input_shapes=(2, 3, 12, 16), check=True)
    assert report.passed
    assert report.engines is not None
    assert "onnxruntime" in report.engines[0]


# Entries of a batch.

_BATCH: dict[str, tuple[str, str]] = {
    "heads of one token": (
        "[{n},1,24] x) => (float[{n},1,24] y) "
        "<int64[4] s = {{{n},1,3,8}}, int64[3] t = {{{n},1,24}}>",
        "a = Reshape(x, s) b = Transpose<perm = [0,2,1,3]>(a) c = Softmax<axis = -1>(b) "
        "d = Transpose<perm = [0,2,1,3]>(c) y = Reshape(d, t)",
    ),
    "gray image": (
        "[{n},1,4,4] x) => (float[{n},1,16] y) <int64[3] s = {{{n},1,16}}>",
        "a = Relu(x) y = Reshape(a, s)",
    ),
    "group of one": (
        "[{n},6,4,4] x) => (float[{n},6,4,4] y) <int64[3] s = {{{n},1,96}}, int64[4] t = "
        "{{{n},6,4,4}}, float[1] o = {{1}}, float[1] z = {{0}}>",
        "a = Reshape(x, s) b = InstanceNormalization(a, o, z) y = Reshape(b, t)",
    ),
    "sizes of all axes": (
        "[{n},2,4,4] x) => (float[{n},2,8,8] y) <int64[4] s = {{{n},2,8,8}}>",
        'a = Relu(x) y = Resize<mode = "linear">(a, , , s)',
    ),
    "states of zeros": (
        "[{n},4,3] x) => (float[4,1,{n},5] y) <int64[3] s = {{1,{n},5}}>",
        "t = Transpose<perm = [1,0,2]>(x) h = ConstantOfShape(s) "
        "y = LSTM<hidden_size = 5>(t, w, r, , , h, h)",
    ),
    "elements gathered": (
        "[{n},4] x) => (float[{n},2] y)", "a = Relu(x) y = GatherElements<axis = 1>(a, i)",
    ),
    "elements scattered": (
        "[{n},4] x) => (float[{n},4] y)", "a = Relu(x) y = ScatterElements<axis = 1>(a, i, u)",
    ),
    "concatenated": (
        "[{n},6] x) => (float[{n},6] y)",
        "a = Relu(x) b = Concat<axis = 0>(a, x) y, z = Split<axis = 0>(b)",
    ),
}  # fmt: skip


def batch(name: str, n: int) -> onnx.ModelProto:
    head, nodes = _BATCH[name]
    weights = {
        "states of zeros": {"w": (1, 20, 3), "r": (1, 20, 5)},
        "elements gathered": {"i": np.int64([[1, 3]] * n)},
        "elements scattered": {"i": np.int64([[1, 3]] * n), "u": np.float32([[5, 6]] * n)},
    }
    return build(f"(float{head.format(n=n)} {{ {nodes} }}", weights.get(name, {}))


@pytest.mark.parametrize("given", ["N", 3, "1..4"])
@pytest.mark.parametrize("name", _BATCH)
def test_entries_follow(name: str, given: Any) -> None:
    source = batch(name, 1)
    shape = [dim.dim_value for dim in source.graph.input[0].type.tensor_type.shape.dim]
    found = serde.export_model(source, format="onnx", input_shapes={"x": (given, *shape[1:])})
    x = np.random.default_rng(0).normal(size=(3, *shape[1:])).astype(np.float32)
    for one, other in zip(run(found, x), run(batch(name, 3), x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_indices_of_one_entry_are_refused() -> None:
    nodes = "(float[1,4,3] x) => (float[1,4,3] y) { a = Relu(x) y = ScatterND(a, i, u) }"
    source = build(nodes, {"i": np.int64([[0, 1]]), "u": (1, 3)})
    with pytest.raises(UnsupportedModelError, match="indices are of one entry"):
        serde.to_relay(source, input_shapes={"x": ("N", 4, 3)})


def test_entries_that_outputs_rule_out_are_refused() -> None:
    source = build("(float[1,1,4,4] x) => (float[4,4] y) { a = Relu(x) y = Squeeze(a) }", {})
    with pytest.raises(OptionError, match="N is 1 in the source"):
        serde.to_relay(source, input_shapes={"x": ("N", 1, 4, 4)})
