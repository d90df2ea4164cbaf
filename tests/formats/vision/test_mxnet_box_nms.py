"""Suppressions that come back from ONNX are MXNet's ``box_nms`` again; ONNX Runtime judges."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.oracle import run_mxnet
from support.runtime import open_session

import serde
from serde.compat import import_mxnet

GOLDEN = Path(__file__).parents[2] / "golden" / "mx2onnx"
SHAPE = (2, 12, 6)


def rows(start: int, score: int, class_: int, form: str) -> np.ndarray:
    """Boxes in disorder: some overlap, some have their ends swapped, no two score alike."""
    generator = np.random.default_rng(5)
    batch, number, _ = SHAPE
    place = generator.random((batch, number, 2)) * 2
    size = generator.random((batch, number, 2)) + 0.3
    sign = 1 if form == "center" else np.where(generator.random((batch, number, 2)) < 0.2, -1, 1)
    second = size if form == "center" else place + size * sign
    found = np.zeros(SHAPE, np.float32)
    found[..., start : start + 4] = np.concatenate([place, second], 2)
    marks = generator.permutation(batch * number).reshape(batch, number)
    found[..., score] = marks / (batch * number)
    found[..., class_] = generator.integers(-1, 3, (batch, number))
    return found


def check(proto: Any, data: np.ndarray, operators: Sequence[str]) -> None:
    session = open_session(proto.SerializeToString())
    (wanted,) = session.run(None, {session.get_inputs()[0].name: data})
    symbol, params = serde.import_model(proto)
    nodes = json.loads(symbol.tojson())["nodes"]
    assert [node["op"] for node in nodes if node["op"] != "null"] == operators
    found = run_mxnet(symbol, params, {symbol.list_inputs()[0]: data})[0]
    assert (wanted[..., 0] == -1).any()
    np.testing.assert_array_equal(found, wanted)


CLASSES = [{}, {"id_index": 0}, {"id_index": 0, "background_id": 2, "force_suppress": True}]
SETTINGS = [*itertools.product([-1, 4, 40], CLASSES, ["corner", "center"], [2, "N"])]


@pytest.mark.parametrize(
    ("top_k", "classes", "form", "batch"),
    [
        pytest.param(*each, marks=[pytest.mark.wide] if place % 5 else [])
        for place, each in enumerate(SETTINGS)
    ],
)
def test_of_serde(top_k: int, classes: dict[str, Any], form: str, batch: Any) -> None:
    mx = import_mxnet()
    symbol = mx.sym.contrib.box_nms(
        mx.sym.var("data"), overlap_thresh=0.45, valid_thresh=0.1, topk=top_k, coord_start=2,
        score_index=1, in_format=form, out_format=form, **classes,
    )  # fmt: skip
    shapes = {"data": (batch, *SHAPE[1:])}
    proto = serde.export_model(symbol, {}, format="onnx", input_shapes=shapes)
    check(proto, rows(2, 1, 0, form), ["_contrib_box_nms"])


def test_centres_become_corners_that_nothing_follows() -> None:
    """Without an empty part, which MXNet has under NumPy's shapes alone."""
    mx = import_mxnet()
    symbol = mx.sym.contrib.box_nms(
        mx.sym.var("data"), coord_start=2, score_index=1, in_format="center", out_format="corner"
    )
    data = rows(2, 1, 0, "center")
    proto = serde.export_model(symbol, format="onnx", input_shapes={"data": SHAPE})
    expected = mx.nd.contrib.box_nms(
        mx.nd.array(data), coord_start=2, score_index=1, in_format="center", out_format="corner"
    )
    found = serde.import_to_gluon(proto)(mx.nd.array(data))
    np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-6)


@pytest.mark.parametrize("opset", [11, 12, 13, 18, 21, 23])
@pytest.mark.parametrize("top_k", [-1, 4])
def test_at_every_version(top_k: int, opset: int) -> None:
    mx = import_mxnet()
    symbol = mx.sym.contrib.box_nms(
        mx.sym.var("data"), overlap_thresh=0.45, valid_thresh=0.1, topk=top_k, id_index=0
    )
    shapes = {"data": SHAPE}
    proto = serde.export_model(symbol, {}, format="onnx", input_shapes=shapes, opset=opset)
    check(proto, rows(2, 1, 0, "corner"), ["_contrib_box_nms"])


@pytest.mark.parametrize("negative", [True, False])
def test_other_places_and_numbers(negative: bool) -> None:
    mx = import_mxnet()
    symbol = mx.sym.contrib.box_nms(
        mx.sym.var("data"), overlap_thresh=0.3, valid_thresh=0.25 * (not negative), topk=5,
        coord_start=0, score_index=4, id_index=5, background_id=-1,
    )  # fmt: skip
    proto = serde.export_model(symbol, {}, format="onnx", input_shapes={"data": SHAPE})
    check(proto, rows(0, 4, 5, "corner"), ["_contrib_box_nms"])


def test_of_mxnets_exporter() -> None:
    """ONNX puts corners in order before boxes are compared, and leaves them as they are."""
    ordered = ["slice", "slice", "broadcast_minimum", "broadcast_maximum", "Concat"]
    data = rows(2, 1, 0, "corner")
    proto = onnx.load(GOLDEN / "box_nms_corner.onnx")
    check(proto, data, [*ordered, "_contrib_box_nms", "slice"])


def test_of_mxnets_exporter_with_a_limit() -> None:
    """In ONNX it is one of boxes that stay: MXNet itself would take the best beforehand."""
    data = rows(2, 1, 0, "corner")
    session = open_session(str(GOLDEN / "box_nms_corner_few.onnx"))
    (wanted,) = session.run(None, {"data": data})
    symbol, params = serde.import_model(GOLDEN / "box_nms_corner_few.onnx")
    np.testing.assert_array_equal(run_mxnet(symbol, params, {"data": data})[0], wanted)
    assert (wanted[:, 2] >= 0).any()
    assert (wanted[:, 3:] == -1).all()


def test_of_mxnets_exporter_with_centres() -> None:
    check(onnx.load(GOLDEN / "box_nms_center.onnx"), rows(0, 5, 4, "center"), ["_contrib_box_nms"])


@pytest.mark.parametrize("change", ["threshold", "columns", "order"])
def test_what_is_a_little_different_is_left_alone(change: str) -> None:
    """Nothing is raised that does not mean the same; a selection by itself MXNet cannot say."""
    symbol = import_mxnet().sym.contrib.box_nms(import_mxnet().sym.var("data"), topk=4)
    proto = serde.export_model(symbol, {}, format="onnx", input_shapes={"data": SHAPE})
    for node in proto.graph.node:
        if change == "threshold" and node.op_type == "Greater":
            tensor = onnx.numpy_helper.from_array(np.array(0.5, np.float32), "other")
            proto.graph.initializer.append(tensor)
            node.input[1] = "other"
        elif change == "order" and node.op_type == "TopK":
            node.attribute.append(onnx.helper.make_attribute("largest", 0))
    if change == "columns":
        for tensor in proto.graph.initializer:
            array = onnx.numpy_helper.to_array(tensor)
            if array.tolist() == [0, 2]:
                tensor.CopyFrom(onnx.numpy_helper.from_array(np.array([0, 0]), tensor.name))
    with pytest.raises(serde.UnsupportedModelError):
        serde.import_model(proto)
