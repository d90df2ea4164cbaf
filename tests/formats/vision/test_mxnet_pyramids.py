"""Nets whose images may have any size: what comes back from ONNX as MXNet's own operators."""

from __future__ import annotations

import json
import types
from typing import Any

import numpy as np
import onnx
import pytest
from support.oracle import run_mxnet
from support.runtime import open_session

import serde
from serde.compat import import_mxnet

node, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
FLOAT = onnx.TensorProto.FLOAT


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def model(nodes: list[Any], inputs: dict[str, list[Any]], **arrays: Any) -> onnx.ModelProto:
    """A model with one output y."""
    graph = onnx.helper.make_graph(
        nodes, "net", [info(name, FLOAT, shape) for name, shape in inputs.items()],
        [info("y", FLOAT, None)],
        [onnx.numpy_helper.from_array(np.array(value), name) for name, value in arrays.items()],
    )  # fmt: skip
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    proto.ir_version = 8
    return proto


def check(proto: onnx.ModelProto, shapes: list[dict[str, tuple[int, ...]]]) -> list[str]:
    """The operators in MXNet, after comparing numbers at several sizes with ONNX Runtime."""
    symbol, params = serde.import_model(proto)
    session = open_session(proto.SerializeToString())
    generator = np.random.default_rng(2)
    for each in shapes:
        fed = {name: generator.random(shape, np.float32) for name, shape in each.items()}
        (wanted,) = session.run(None, fed)
        np.testing.assert_allclose(run_mxnet(symbol, params, fed)[0], wanted, rtol=1e-5)
    nodes = json.loads(symbol.tojson())["nodes"]
    return [each["op"] for each in nodes if each["op"] != "null"]


MODES = [
    ("asymmetric", "floor"),
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel", "round_prefer_ceil"),
]


@pytest.mark.parametrize(("mode", "rounding"), MODES)
@pytest.mark.parametrize("factor", [2, 3])
def test_nearest_resize_is_up_sampling(mode: str, rounding: str, factor: int) -> None:
    resize = node(
        "Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode=rounding,
        coordinate_transformation_mode=mode,
    )  # fmt: skip
    scales = np.float32([1, 1, factor, factor])
    proto = model([resize], {"x": ["N", 3, "H", "W"]}, s=scales)
    assert check(proto, [{"x": (1, 3, 4, 5)}, {"x": (2, 3, 7, 2)}]) == ["UpSampling"]


def test_nearest_resize_by_other_factors() -> None:
    resize = node(
        "Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )  # fmt: skip
    proto = model([resize], {"x": ["N", 3, "H", "W"]}, s=np.float32([1, 1, 2, 3]))
    assert check(proto, [{"x": (1, 3, 4, 5)}, {"x": (2, 3, 7, 2)}]) == ["repeat", "repeat"]


@pytest.mark.parametrize(
    ("mode", "rounding"), [("half_pixel", "floor"), ("align_corners", "floor")]
)
def test_another_resize_is_refused(mode: str, rounding: str) -> None:
    resize = node(
        "Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode=rounding,
        coordinate_transformation_mode=mode,
    )  # fmt: skip
    proto = model([resize], {"x": ["N", 3, "H", "W"]}, s=np.float32([1, 1, 2, 2]))
    with pytest.raises(serde.UnsupportedModelError, match="needs fixed lengths"):
        serde.import_model(proto)


CROP = [
    node("Shape", ["b"], ["shape"]),
    node("Slice", ["shape", "two", "four"], ["end"]),
    node("Slice", ["a", "start", "end", "axes"], ["y"]),
]


def test_a_slice_to_the_size_of_another_tensor() -> None:
    images = {"a": ["N", 3, "H", "W"], "b": ["N", 2, "A", "B"]}
    proto = model(CROP, images, two=[2], four=[4], start=[0, 0], axes=[2, 3])
    sizes = [{"a": (1, 3, 6, 7), "b": (1, 2, 5, 4)}, {"a": (2, 3, 4, 4), "b": (2, 2, 4, 1)}]
    assert check(proto, sizes) == ["slice_like"]


def test_two_tensors_cropped_alike() -> None:
    """Both to the size of a third; one to a fixed number of channels as well."""
    channels = node("Slice", ["a", "zero", "one", "one"], ["few"])
    third = [
        node("Shape", ["c"], ["shape"]),
        node("Gather", ["shape", "places"], ["end"]),
        node("Slice", ["few", "start", "end", "places"], ["left"]),
        node("Slice", ["b", "start", "end", "places"], ["right"]),
        node("Add", ["left", "right"], ["y"]),
    ]
    images = {"a": [1, 3, "H", "W"], "b": [1, 1, "P", "Q"], "c": [1, 2, "A", "B"]}
    proto = model([channels, *third], images, zero=[0], one=[1], start=[0, 0], places=[2, 3])
    sizes = [{"a": (1, 3, 6, 7), "b": (1, 1, 5, 9), "c": (1, 2, 5, 4)}]
    found = check(proto, sizes)
    assert found.count("slice_like") == 2


def test_a_slice_along_another_axis_is_refused() -> None:
    """The width of the one is the height of the other."""
    nodes = [
        node("Shape", ["b"], ["shape"]),
        node("Gather", ["shape", "three"], ["end"]),
        node("Slice", ["a", "zero", "end", "two"], ["y"]),
    ]
    images = {"a": [1, 3, "H", "W"], "b": [1, 2, "A", "B"]}
    with pytest.raises(serde.UnsupportedModelError, match="strided_slice"):
        serde.import_model(model(nodes, images, three=[3], zero=[0], two=[2]))


def test_a_pyramid_of_any_size(mx: Any) -> None:
    """Lateral convolutions, the coarser level doubled, cut and added: as gluoncv builds it."""

    def level(x: Any, name: str) -> Any:
        return mx.sym.Convolution(x, kernel=(1, 1), num_filter=4, name=name)

    fine = mx.sym.Activation(
        mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), stride=(2, 2), pad=(1, 1),
                           num_filter=4, name="c1"), act_type="relu")  # fmt: skip
    coarse = mx.sym.Pooling(fine, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max")
    top = level(coarse, "top")
    up = mx.sym.UpSampling(top, scale=2, sample_type="nearest", num_args=1)
    lateral = level(fine, "lateral")
    net = mx.sym.Group([top, mx.sym.slice_like(up, lateral, axes=(2, 3)) + lateral])
    shapes, _, _ = net.infer_shape(data=(1, 3, 32, 32))
    generator = np.random.default_rng(1)
    params = {
        name: mx.nd.array(generator.normal(size=shape))
        for name, shape in zip(net.list_arguments(), shapes, strict=True)
        if name != "data"
    }
    proto = serde.export_model(net, params, format="onnx", input_shapes={"data": (1, 3, "H", "W")})
    symbol, back = serde.import_model(proto)
    for side in (32, 35, 41):
        image = {"data": generator.random((1, 3, side, side + 6), np.float32)}
        wanted = run_mxnet(net, params, image)
        for one, two in zip(run_mxnet(symbol, back, image), wanted, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)
    operators = {each["op"] for each in json.loads(symbol.tojson())["nodes"]}
    assert {"UpSampling", "slice_like"} <= operators
