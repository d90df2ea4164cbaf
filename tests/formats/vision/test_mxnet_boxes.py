"""MXNet's operators on boxes against MXNet itself: overlaps, offsets, suppression, matching."""

from __future__ import annotations

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


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def corners(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    draw = np.random.default_rng(seed)
    low = draw.uniform(0, 1, (*shape, 2))
    return np.concatenate([low, low + draw.uniform(0.1, 1, (*shape, 2))], -1).astype(dtype)


def of_any_batch(symbol: Any, shapes: dict[str, Any], inputs: dict[str, np.ndarray]) -> None:
    """Compare a graph that was converted for any number of images."""
    model = serde.to_relay(symbol, input_shapes=shapes)
    expected = run_mxnet(symbol, {}, inputs)
    fed = {name: inputs[name] for name in model.meta.inputs}
    result = run(model.main, list(fed.values()), mod=model.mod)
    same(result if isinstance(result, tuple) else (result,), expected)
    proto = serde.from_relay(model, format="onnx")
    same(run_onnx(proto.SerializeToString(), fed)[1], expected)


def variables(mx: Any, inputs: dict[str, np.ndarray]) -> list[Any]:
    return [mx.sym.var(name) for name in inputs]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("form", ["corner", "center"])
@pytest.mark.parametrize(("left", "right"), [((3,), (4,)), ((2, 3), (5,)), ((3,), (2, 1, 4))])
def test_overlaps(mx: Any, left: Any, right: Any, form: str, dtype: str) -> None:
    """Also of boxes whose ends are swapped, of empty boxes, and of those that only touch."""
    inputs = {"l": corners(*left, dtype=dtype), "r": corners(*right, seed=1, dtype=dtype)}
    inputs["l"][..., 0, :] = inputs["l"][..., 0, [2, 3, 0, 1]]
    inputs["r"][..., 1, 2:] = inputs["r"][..., 1, :2]
    inputs["r"][..., 2, :] = inputs["r"][..., 3, [2, 1, 3, 3]]
    # MXNet rounds each step to float16, ONNX Runtime several at once
    bound = 4e-3 if dtype == "float16" else None
    agree(mx.sym.contrib.box_iou(*variables(mx, inputs), format=form), inputs, tolerance=bound)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("clip", [-1.0, 0.0, 0.5])
@pytest.mark.parametrize("form", ["corner", "center"])
def test_decoding(mx: Any, form: str, clip: float, dtype: str) -> None:
    draw = np.random.default_rng(3)
    inputs = {
        "data": draw.normal(size=(2, 6, 4)).astype(dtype),
        "anchors": corners(1, 6, dtype=dtype),
    }
    symbol = mx.sym.contrib.box_decode(
        *variables(mx, inputs), std0=0.1, std1=0.2, std2=0.3, std3=2.0, clip=clip, format=form
    )
    agree(symbol, inputs)


def test_decoding_of_any_batch(mx: Any) -> None:
    symbol = mx.sym.contrib.box_decode(mx.sym.var("data"), mx.sym.var("anchors"))
    inputs = {"data": corners(3, 6), "anchors": corners(1, 6, seed=1)}
    of_any_batch(symbol, {"data": ("n", 6, 4), "anchors": (1, 6, 4)}, inputs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_encoding(mx: Any, dtype: str) -> None:
    """Of samples that are not positive the match may name no box."""
    draw = np.random.default_rng(4)
    values = {
        "samples": np.array([[1, 0, -1, 1, 0.6], [0.5, 1, 1, 0, 1]]),
        "matches": np.array([[2, -1, -1, 0, 1], [0, 1, 2, 0, 1]]),
        "anchors": corners(2, 5),
        "refs": corners(2, 3, seed=1),
        "means": draw.normal(size=4),
        "stds": draw.uniform(0.1, 2, 4),
    }
    inputs = {name: value.astype(dtype) for name, value in values.items()}
    agree(mx.sym.Group(list(mx.sym.contrib.box_encode(*variables(mx, inputs)))), inputs)


def rows(order: str, seed: int, *batch: int) -> np.ndarray:
    """Rows of boxes, some with ends swapped, some with negative numbers, some scores equal."""
    draw = np.random.default_rng(seed)
    boxes = corners(*batch, 40, seed=seed) - 0.3
    boxes[..., 3, :] = boxes[..., 3, [2, 3, 0, 1]]
    parts = {
        "class": draw.integers(-1, 3, (*batch, 40, 1)),
        "score": np.round(draw.uniform(-1, 1, (*batch, 40, 1)), 1),
        "box": boxes,
        "more": draw.normal(size=(*batch, 40, 2)),
    }
    return np.concatenate([parts[name] for name in order.split()], -1).astype("float32")


FIRST = ("class score box", {"id_index": 0})
LAST = ("box score class more", {"coord_start": 0, "score_index": 4, "id_index": 5})
PLAIN = ("score box", {"score_index": 0, "coord_start": 1})


@pytest.mark.parametrize("attrs", [
    {},
    {"overlap_thresh": 0.0},
    {"overlap_thresh": 1.0, "topk": 7},
    {"overlap_thresh": 0.2, "valid_thresh": 0.3, "topk": 400},
    {"valid_thresh": -0.5, "topk": 9},
    {"valid_thresh": -2.0, "force_suppress": True},
    {"valid_thresh": 1.5},
    {"topk": 0},
    {"in_format": "center"},
    {"in_format": "center", "out_format": "center", "overlap_thresh": 0.3},
    {"out_format": "center"},
])  # fmt: skip
@pytest.mark.parametrize("form", [FIRST, LAST, PLAIN], ids=["first", "last", "plain"])
def test_suppression(mx: Any, form: Any, attrs: dict[str, Any]) -> None:
    order, places = form
    symbol = mx.sym.contrib.box_nms(mx.sym.var("x"), **places, **attrs)
    agree(symbol, {"x": rows(order, 5, 2)}, returns=True)


@pytest.mark.parametrize("background", [-1, 0, 2, 9])
@pytest.mark.parametrize("force", [False, True])
def test_suppression_and_the_background(mx: Any, background: int, force: bool) -> None:
    """A class of -1 is the background unless another is named."""
    symbol = mx.sym.contrib.box_nms(
        mx.sym.var("x"), id_index=0, background_id=background, force_suppress=force,
        valid_thresh=-1.0,
    )  # fmt: skip
    agree(symbol, {"x": rows("class score box", 6, 2)}, returns=True, opsets=[11, 17])


@pytest.mark.parametrize("batch", [(), (2, 2), (1, 2, 2)])
def test_suppression_of_other_ranks(mx: Any, batch: Any) -> None:
    symbol = mx.sym.contrib.box_nms(mx.sym.var("x"), id_index=0)
    agree(symbol, {"x": rows("class score box", 7, *batch)}, returns=True)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_suppression_of_other_floats(mx: Any, dtype: str) -> None:
    symbol = mx.sym.contrib.box_nms(mx.sym.var("x"), id_index=0, out_format="center")
    inputs = {"x": rows("class score box", 8, 2).astype(dtype)}
    agree(symbol, inputs, not_in_onnx=f"boxes of {dtype}")


def test_suppression_below_zero_overlap(mx: Any) -> None:
    """Only the best box of each class stays."""
    symbol = mx.sym.contrib.box_nms(mx.sym.var("x"), id_index=0, overlap_thresh=-0.5)
    agree(symbol, {"x": rows("class score box", 9, 2)}, not_in_onnx="iou_threshold")


@pytest.mark.parametrize("number", [40, "k"])
def test_suppression_of_any_batch(mx: Any, number: Any) -> None:
    symbol = mx.sym.contrib.box_nms(mx.sym.var("x"), id_index=0, topk=9, overlap_thresh=0.3)
    of_any_batch(symbol, {"x": ("n", number, 6)}, {"x": rows("class score box", 10, 3)})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5, 4), (2, 3, 4), (2, 5, 3), (2, 2, 3, 4)])
@pytest.mark.parametrize("attrs", [
    {"threshold": 0.1},
    {"threshold": 0.5},
    {"threshold": 2.0},
    {"threshold": 0.05, "topk": 1},
    {"threshold": 0.05, "topk": 9},
    {"threshold": 0.6, "is_ascend": True},
    {"threshold": 0.9, "is_ascend": True, "topk": 2},
])  # fmt: skip
def test_matching(mx: Any, attrs: dict[str, Any], shape: Any, dtype: str) -> None:
    """Of equal scores the first counts."""
    data = np.round(np.random.default_rng(7).uniform(size=shape), 1).astype(dtype)
    pairs = mx.sym.contrib.bipartite_matching(mx.sym.var("x"), **attrs)
    agree(mx.sym.Group(list(pairs)), {"x": data}, opsets=[13, 21])


def test_matching_of_any_batch(mx: Any) -> None:
    pairs = mx.sym.Group(list(mx.sym.contrib.bipartite_matching(mx.sym.var("x"), threshold=0.2)))
    data = np.random.default_rng(8).uniform(size=(3, 4, 5)).astype("float32")
    of_any_batch(pairs, {"x": ("n", 4, 5)}, {"x": data})
