"""MXNet's detection operators: in the Relay interpreter and back in MXNet, against MXNet itself."""

from __future__ import annotations

import json
import types
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree, same
from support.oracle import run_mxnet
from support.runtime import run_onnx

import serde
from serde.compat import import_mxnet
from serde.relay.run.interpreter import run

TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def check(symbol: Any, inputs: dict[str, np.ndarray]) -> list[str]:
    """Compare a symbol with its Relay and with what comes back; return the operators of that."""
    expected = run_mxnet(symbol, {}, inputs)
    shapes = {name: value.shape for name, value in inputs.items()}
    model = serde.to_relay(symbol, input_shapes=shapes)
    result = run(model.main, [inputs[param.name_hint] for param in model.main.params])
    computed = list(result) if isinstance(result, tuple) else [result]
    returned, params = serde.import_model(symbol, input_shapes=shapes)
    found = run_mxnet(returned, params, inputs)
    for theirs, ours, again in zip(expected, computed, found, strict=True):
        np.testing.assert_allclose(ours, theirs, **TOLERANCE)
        np.testing.assert_allclose(again, theirs, **TOLERANCE)
    names = [node["op"] for node in json.loads(returned.tojson())["nodes"]]
    return [name for name in names if name != "null"]


def _heads(anchors: int = 30, classes: int = 3) -> dict[str, np.ndarray]:
    """Scores, offsets and anchors as a detector has them."""
    draw = np.random.default_rng(2)
    scores = draw.uniform(size=(2, classes, anchors))
    corners = np.sort(draw.uniform(size=(1, anchors, 2, 2)), axis=2)
    values = {
        "scores": scores / scores.sum(1, keepdims=True),
        "offsets": draw.normal(size=(2, 4 * anchors), scale=0.5),
        "anchors": corners.reshape(1, anchors, 4),
    }
    return {name: value.astype("float32") for name, value in values.items()}


def _rows(columns: str) -> np.ndarray:
    draw = np.random.default_rng(4)
    corners = np.sort(draw.uniform(size=(2, 40, 2, 2)), axis=2).reshape(2, 40, 4)
    classes, marks = draw.integers(0, 3, (2, 40, 1)), draw.uniform(size=(2, 40, 1))
    parts = {"class": classes, "score": marks, "box": corners}
    return np.concatenate([parts[name] for name in columns.split()], 2).astype("float32")


@pytest.mark.parametrize("attrs", [
    {},
    {"sizes": (0.5, 0.25), "ratios": (1, 2, 0.5), "clip": True},
    {"sizes": (0.3,), "steps": (0.2, 0.1), "offsets": (0.0, 0.25)},
])  # fmt: skip
def test_prior_boxes(mx: Any, attrs: dict[str, Any]) -> None:
    symbol = mx.sym.contrib.MultiBoxPrior(mx.sym.Variable("data"), **attrs)
    assert check(symbol, {"data": np.zeros((1, 2, 4, 6), "float32")}) == ["_contrib_MultiBoxPrior"]


@pytest.mark.parametrize("ratios", [(2.0,), (2.0, 0.5), (0.5, 1.0, 3.0)])
@pytest.mark.parametrize("sizes", [(0.3,), (0.3, 0.5, 0.2)])
def test_prior_boxes_of_another_first_ratio(mx: Any, sizes: Any, ratios: Any) -> None:
    symbol = mx.sym.contrib.MultiBoxPrior(mx.sym.Variable("data"), sizes=sizes, ratios=ratios)
    agree(symbol, {"data": np.zeros((1, 2, 4, 6), "float32")}, returns=True)


@pytest.mark.parametrize("attrs", [
    {"max_displacement": 4, "stride2": 2, "pad_size": 4},
    {"kernel_size": 5, "max_displacement": 3, "stride2": 2, "pad_size": 4},
    {"kernel_size": 3, "max_displacement": 2, "stride1": 2, "stride2": 3, "pad_size": 3},
    {"max_displacement": 0},
    {"kernel_size": 3, "max_displacement": 2, "stride1": 3, "pad_size": 3, "is_multiply": False},
])  # fmt: skip
def test_correlation_of_patches(mx: Any, attrs: dict[str, Any]) -> None:
    draw = np.random.default_rng(9)
    inputs = {name: draw.normal(size=(2, 3, 11, 9)).astype("float32") for name in ("a", "b")}
    symbol = mx.sym.Correlation(mx.sym.Variable("a"), mx.sym.Variable("b"), **attrs)
    agree(symbol, inputs, tolerance=1e-5, opsets=[13, 21])


@pytest.mark.parametrize("size", [(6, 7), (1, 1), (9, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sampling_outside(mx: Any, size: Any, dtype: str) -> None:
    """At the edges, between them and far outside."""
    draw = np.random.default_rng(14)
    grid = draw.uniform(-1.4, 1.4, (2, 2, 5, 4)).astype(dtype)
    grid[0, 0, 0, :2] = [-1, 1]
    inputs = {"data": draw.normal(size=(2, 3, *size)).astype(dtype), "grid": grid}
    symbol = mx.sym.BilinearSampler(mx.sym.Variable("data"), mx.sym.Variable("grid"))
    agree(symbol, inputs, tolerance=1e-5, returns=True)


@pytest.mark.parametrize("attrs", [
    {"nms_threshold": 0.3},
    {"nms_threshold": 0.3, "force_suppress": True, "threshold": 0.4},
    {"nms_threshold": 0.3, "nms_topk": 7},
    {"nms_threshold": 0.3, "nms_topk": 400, "clip": False},
    {"nms_threshold": -1.0, "variances": (0.2, 0.1, 0.3, 0.4)},
    {"nms_threshold": 0.3, "threshold": 0.0, "background_id": 2},
    {"nms_threshold": 0.3, "threshold": -2.0, "nms_topk": 9},
    {"nms_threshold": 1.0, "threshold": -0.4},
    {"nms_threshold": 2.0, "threshold": -0.4},
])  # fmt: skip
def test_detection(mx: Any, attrs: dict[str, Any]) -> None:
    """Of what is suppressed MXNet keeps score and box; scores may be negative."""
    inputs = _heads()
    inputs["scores"] -= 0.3 if attrs.get("threshold", 1) <= 0 else 0
    operands = [mx.sym.Variable(name) for name in inputs]
    symbol = mx.sym.contrib.MultiBoxDetection(*operands, **attrs)
    agree(symbol, inputs, opsets=[13, 21])
    assert check(symbol, inputs) == ["_contrib_MultiBoxDetection"]


def test_detection_of_any_batch(mx: Any) -> None:
    inputs = _heads()
    symbol = mx.sym.contrib.MultiBoxDetection(*(mx.sym.Variable(n) for n in inputs), threshold=0.4)
    shapes = {"scores": ("n", 3, 30), "offsets": ("n", 120), "anchors": (1, 30, 4)}
    model = serde.to_relay(symbol, input_shapes=shapes)
    proto = serde.from_relay(model, format="onnx").SerializeToString()
    same(run_onnx(proto, inputs)[1], run_mxnet(symbol, {}, inputs))


@pytest.mark.parametrize(("columns", "attrs"), [
    ("class score box", {"id_index": 0, "valid_thresh": 0.1, "overlap_thresh": 0.4}),
    ("class score box", {"id_index": 0, "topk": 9, "force_suppress": True}),
    ("class score box", {"id_index": 0, "overlap_thresh": 0.2, "valid_thresh": 0.7}),
    ("score box", {"score_index": 0, "coord_start": 1, "topk": 20}),
])  # fmt: skip
def test_suppression(mx: Any, columns: str, attrs: dict[str, Any]) -> None:
    symbol = mx.sym.contrib.box_nms(mx.sym.Variable("data"), **attrs)
    assert check(symbol, {"data": _rows(columns)}) == ["_contrib_box_nms"]


def _regions() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(6)
    corners = np.sort(draw.uniform(-2, 14, (5, 2, 2)), axis=1).reshape(5, 4)
    rois = np.concatenate([draw.integers(0, 2, (5, 1)), corners], 1)
    images = draw.normal(size=(2, 3, 12, 10))
    return {"data": images.astype("float32"), "rois": rois.astype("float32")}


@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize(("name", "attrs"), [
    ("ROIPooling", {}),
    ("contrib.ROIAlign", {}),
    ("contrib.ROIAlign", {"sample_ratio": 2}),
])  # fmt: skip
def test_pooled_regions(mx: Any, name: str, attrs: dict[str, Any], scale: float) -> None:
    build = mx.sym
    for part in name.split("."):
        build = getattr(build, part)
    operands = mx.sym.Variable("data"), mx.sym.Variable("rois")
    symbol = build(*operands, pooled_size=(3, 2), spatial_scale=scale, **attrs)
    kinds = check(symbol, _regions())
    assert sum(kind.endswith(("ROIPooling", "ROIAlign")) for kind in kinds) == 1


@pytest.mark.parametrize(("name", "batch"), [("Proposal", 1), ("MultiProposal", 2)])
def test_proposals(mx: Any, name: str, batch: int) -> None:
    draw = np.random.default_rng(8)
    inputs = {
        "scores": draw.uniform(size=(batch, 6, 4, 5)).astype("float32"),
        "offsets": draw.normal(size=(batch, 12, 4, 5), scale=0.2).astype("float32"),
        "sizes": np.array([[64, 80, 1], [60, 70, 1]][:batch], "float32"),
    }
    symbol = getattr(mx.sym.contrib, name)(
        *(mx.sym.Variable(each) for each in inputs), scales=(2.0,), rpn_post_nms_top_n=6,
        rpn_pre_nms_top_n=20, rpn_min_size=4,
    )  # fmt: skip
    assert check(symbol, inputs) == [f"_contrib_{name}"]


@pytest.mark.parametrize("attrs", [
    {"max_displacement": 2, "pad_size": 2},
    {"kernel_size": 3, "max_displacement": 2, "stride1": 2, "stride2": 2, "pad_size": 3,
     "is_multiply": False},
])  # fmt: skip
def test_correlation(mx: Any, attrs: dict[str, Any]) -> None:
    draw = np.random.default_rng(9)
    inputs = {name: draw.normal(size=(2, 3, 9, 8)).astype("float32") for name in ("a", "b")}
    symbol = mx.sym.Correlation(mx.sym.Variable("a"), mx.sym.Variable("b"), **attrs)
    assert check(symbol, inputs) == ["Correlation"]


def test_sampling_at_a_grid(mx: Any) -> None:
    draw = np.random.default_rng(10)
    inputs = {
        "data": draw.normal(size=(2, 3, 6, 7)).astype("float32"),
        "matrix": draw.normal(size=(2, 6), scale=0.5).astype("float32"),
    }
    data, matrix = mx.sym.Variable("data"), mx.sym.Variable("matrix")
    grid = mx.sym.GridGenerator(matrix, transform_type="affine", target_shape=(4, 5))
    sampled = mx.sym.BilinearSampler(data, grid)
    kinds = check(mx.sym.Group([sampled, grid]), inputs)
    assert sorted(set(kinds) - {"_copy", "Reshape"}) == ["BilinearSampler", "GridGenerator"]
    whole = mx.sym.SpatialTransformer(
        data, matrix, target_shape=(4, 5), transform_type="affine", sampler_type="bilinear"
    )
    check(whole, inputs)


def test_flow_of_pixels(mx: Any) -> None:
    draw = np.random.default_rng(11)
    inputs = {"flow": draw.normal(size=(2, 2, 4, 6)).astype("float32")}
    check(mx.sym.GridGenerator(mx.sym.Variable("flow"), transform_type="warp"), inputs)


def test_a_detector_of_several_scales(mx: Any) -> None:
    """Heads of two feature maps, their anchors, and the boxes of both."""
    data = mx.sym.Variable("data")
    scores, offsets, anchors = [], [], []
    for level, size in enumerate((0.3, 0.6)):
        data = mx.sym.Pooling(data, kernel=(2, 2), stride=(2, 2), pool_type="max")
        prior = mx.sym.contrib.MultiBoxPrior(data, sizes=(size,), ratios=(1.0, 2.0))
        marks = mx.sym.slice_axis(data, axis=1, begin=0, end=6, name=f"marks{level}")
        marks = mx.sym.transpose(marks, axes=(0, 2, 3, 1))
        scores.append(mx.sym.Flatten(marks))
        moved = mx.sym.slice_axis(data, axis=1, begin=6, end=14)
        offsets.append(mx.sym.Flatten(mx.sym.transpose(moved, axes=(0, 2, 3, 1))))
        anchors.append(prior)
    marks = mx.sym.reshape(mx.sym.concat(*scores, dim=1), shape=(0, -1, 3))
    marks = mx.sym.SoftmaxActivation(mx.sym.transpose(marks, axes=(0, 2, 1)), mode="channel")
    boxes = mx.sym.contrib.MultiBoxDetection(
        marks, mx.sym.concat(*offsets, dim=1), mx.sym.concat(*anchors, dim=1),
        nms_threshold=0.45, threshold=0.3,
    )  # fmt: skip
    draw = np.random.default_rng(12)
    check(boxes, {"data": draw.normal(size=(2, 14, 16, 20)).astype("float32")})
