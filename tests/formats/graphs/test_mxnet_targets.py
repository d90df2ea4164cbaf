"""MXNet's targets of single-shot detectors against MXNet itself."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree
from support.tiers import first_of

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def boxes(draw: np.random.Generator, *shape: int) -> np.ndarray:
    low = draw.uniform(0, 0.7, (*shape, 2))
    return np.concatenate([low, low + draw.uniform(0.05, 0.5, (*shape, 2))], -1)


def scene(
    anchors: int, counts: list[int], seed: int = 0, *, grid: int | None = None, classes: int = 4
) -> dict[str, np.ndarray]:
    """Anchors, some objects in each image, and scores; boxes on a grid overlap alike."""
    draw = np.random.default_rng(seed)
    batch, most = len(counts), max(*counts, 1)
    values = {
        "anchor": boxes(draw, 1, anchors),
        "label": np.concatenate(
            [draw.integers(0, classes - 1, (batch, most, 1)), boxes(draw, batch, most)], -1
        ),
        "cls_pred": draw.normal(size=(batch, classes, anchors)),
    }
    if grid is not None:
        values["anchor"] = np.round(values["anchor"] * grid) / grid
        values["label"][..., 1:] = np.round(values["label"][..., 1:] * grid) / grid
    for label, count in zip(values["label"], counts, strict=True):
        label[count:] = -1
    return {name: value.astype("float32") for name, value in values.items()}


def target(mx: Any, **attrs: Any) -> Any:
    operands = [mx.sym.var(name) for name in ("anchor", "label", "cls_pred")]
    return mx.sym.Group(list(mx.sym.contrib.MultiBoxTarget(*operands, **attrs)))


@pytest.mark.wide
@pytest.mark.parametrize("grid", first_of([None, 6], [6]), ids=["any", "grid"])
@pytest.mark.parametrize("counts", first_of([[3], [4, 0, 1], [0, 0], [2, 5]], [[4, 0, 1]]), ids=str)
@pytest.mark.parametrize("attrs", [
    {},
    {"overlap_threshold": 0.0},
    {"overlap_threshold": -1.0, "ignore_label": 7.0},
    {"overlap_threshold": 0.3, "variances": (1.0, 0.5, 0.25, 2.0)},
    {"negative_mining_ratio": 0.0, "negative_mining_thresh": 0.1},
    {"negative_mining_ratio": 3.0, "ignore_label": -2.0},
    {"negative_mining_ratio": 1.4, "negative_mining_thresh": 0.3, "overlap_threshold": 0.0},
    {"negative_mining_ratio": 0.3, "minimum_negative_samples": 9},
])  # fmt: skip
def test_targets(mx: Any, attrs: dict[str, Any], counts: list[int], grid: int | None) -> None:
    agree(target(mx, **attrs), scene(40, counts, 1, grid=grid), opsets=[13, 21], returns=True)


@pytest.mark.wide
@pytest.mark.parametrize("seed", range(4))
def test_more_objects_than_anchors(mx: Any, seed: int) -> None:
    """An object that no anchor is left for goes without."""
    agree(target(mx), scene(3, [6, 4], seed, grid=4), returns=True)


@pytest.mark.wide
@pytest.mark.parametrize("classes", [1, 2, 9])
def test_numbers_of_classes(mx: Any, classes: int) -> None:
    inputs = scene(30, [3, 2], 3, classes=max(classes, 2))
    inputs["cls_pred"] = inputs["cls_pred"][:, :classes]
    agree(target(mx, negative_mining_ratio=2.0), inputs, returns=True)


def test_equal_scores(mx: Any) -> None:
    """Of anchors that are background as probably the first are chosen."""
    inputs = scene(50, [3, 1], 4)
    inputs["cls_pred"] = np.tile(inputs["cls_pred"][..., :5], (1, 1, 10))
    agree(target(mx, negative_mining_ratio=3.0), inputs, returns=True)


def test_no_box_is_close(mx: Any) -> None:
    """Objects beside all anchors, a point, swapped ends, and an overlap of less than 1e-6."""
    inputs = scene(4, [3, 3], 5)
    inputs["anchor"][0] = [0.1, 0.1, 0.5, 0.5]
    inputs["label"][..., 1:] = [
        [[0.6, 0.6, 0.9, 0.9], [0.2, 0.2, 0.2, 0.2], [0.4, 0.4, 0.2, 0.2]],
        [[0.4999, 0.4999, 0.5001, 0.5001], [0.4, 0.2, 0.2, 0.4], [0.5, 0.1, 0.9, 0.5]],
    ]
    agree(target(mx, overlap_threshold=1e-3), inputs, returns=True)


def test_wide_labels_and_classes_that_are_no_number(mx: Any) -> None:
    """What stands behind a box is not read; of the classes only -1 ends the objects."""
    inputs = scene(20, [4, 2], 6)
    inputs["label"] = np.concatenate([inputs["label"], inputs["label"][..., :2]], -1)
    inputs["label"][0, :3, 0] = [-2, 0.5, 1e6]
    agree(target(mx, overlap_threshold=0.2), inputs, returns=True)


@pytest.mark.wide
@pytest.mark.parametrize("ratio", [-1.0, 3.0])
@pytest.mark.parametrize(("anchors", "objects"), [(40, 5), ("a", 5), (40, "k"), ("a", "k")])
def test_any_batch(mx: Any, anchors: Any, objects: Any, ratio: float) -> None:
    """Also any number of anchors and of objects."""
    shapes = {
        "anchor": (1, anchors, 4), "label": ("n", objects, 5), "cls_pred": ("n", 4, anchors),
    }  # fmt: skip
    symbol = target(mx, negative_mining_ratio=ratio)
    model = agree(symbol, scene(40, [2, 5, 0], 7), shapes=shapes)
    assert [str(each) for each in model.main.body.type.fields[2].shape] == ["n", str(anchors)]


@pytest.mark.parametrize("shapes", [
    {"anchor": (2, 8, 4), "label": (2, 3, 5), "cls_pred": (2, 4, 8)},
    {"anchor": (1, 8, 4), "label": (2, 3, 4), "cls_pred": (2, 4, 8)},
    {"anchor": (1, 8, 4), "label": (2, 3, 5), "cls_pred": (2, 4, 7)},
], ids=["anchors of two", "no class", "other anchors"])  # fmt: skip
def test_shapes_that_do_not_fit(mx: Any, shapes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModelError, match="_contrib_MultiBoxTarget"):
        serde.to_relay(target(mx), input_shapes=shapes)
