"""MXNet's pooling of regions against MXNet itself."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree, run_under, same
from support.mxnet_written import run_built
from support.oracle import run_mxnet
from support.runtime import run_onnx

import serde
from serde.compat import import_mxnet
from serde.relay.ir.registry import call
from serde.relay.run.interpreter import run

RUN = [16, 21]
"""Versions whose RoiAlign and MaxRoiPool ONNX Runtime has; it lacks those of 22."""


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def regions(channels: int, dtype: str = "float32", seed: int = 6) -> dict[str, np.ndarray]:
    """Images and regions, some of which reach out of them."""
    draw = np.random.default_rng(seed)
    corners = np.sort(draw.uniform(-2, 14, (5, 2, 2)), axis=1).reshape(5, 4)
    rois = np.concatenate([draw.integers(0, 2, (5, 1)), corners], 1)
    values = {"data": draw.normal(size=(2, channels, 12, 10)), "rois": rois}
    return {name: value.astype(dtype) for name, value in values.items()}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ratio", [-1, 0, 2])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("own", [False, True], ids=["all", "own"])
def test_aligned_regions(mx: Any, own: bool, aligned: bool, ratio: int, dtype: str) -> None:
    symbol = mx.sym.contrib.ROIAlign(
        mx.sym.var("data"), mx.sym.var("rois"), pooled_size=(3, 2), spatial_scale=0.75,
        sample_ratio=ratio, position_sensitive=own, aligned=aligned,
    )  # fmt: skip
    # MXNet computes places in float32; ONNX Runtime rounds the weights of samples otherwise
    bound = 1e-5 if dtype == "float32" else 1e-6
    agree(symbol, regions(12, dtype), tolerance=bound, opsets=RUN, returns=True)


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("aligned", [False, True])
def test_aligned_regions_of_older_versions(mx: Any, aligned: bool, ratio: int, opset: int) -> None:
    symbol = mx.sym.contrib.ROIAlign(
        mx.sym.var("data"), mx.sym.var("rois"), pooled_size=(3, 2), spatial_scale=0.75,
        sample_ratio=ratio, aligned=aligned,
    )  # fmt: skip
    agree(symbol, regions(3), tolerance=1e-5, opsets=[opset])


@pytest.mark.parametrize("aligned", [False, True])
def test_regions_of_no_image(mx: Any, aligned: bool) -> None:
    """They are zero by MXNet's documentation; on a CPU it leaves what the memory holds."""
    inputs = regions(3)
    inputs["rois"][1] = -1
    inputs["rois"][3, 0] = -1
    symbol = mx.sym.contrib.ROIAlign(
        mx.sym.var("data"), mx.sym.var("rois"), pooled_size=(3, 2), spatial_scale=0.75,
        sample_ratio=2, aligned=aligned,
    )  # fmt: skip
    known = [0, 2, 4]
    chosen = {"data": inputs["data"], "rois": inputs["rois"][known]}
    expected = np.zeros((5, 3, 3, 2), np.float32)
    (expected[known],) = run_under(symbol, chosen, numpy=False)
    model = serde.to_relay(symbol, input_shapes={n: x.shape for n, x in inputs.items()})
    fed = [inputs[name] for name in model.meta.inputs]
    same([run(model.main, fed, mod=model.mod)], [expected], 1e-5)
    proto = serde.from_relay(model, format="onnx", opset=21).SerializeToString()
    same(run_onnx(proto, inputs)[1], [expected], 1e-5)


@pytest.mark.wide
@pytest.mark.parametrize("image", [0, -1])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_pooled_regions(mx: Any, scale: float, image: int) -> None:
    inputs = regions(3)
    inputs["rois"][2, 0] = image
    symbol = mx.sym.ROIPooling(
        mx.sym.var("data"), mx.sym.var("rois"), pooled_size=(3, 2), spatial_scale=scale
    )
    agree(symbol, inputs, opsets=[11, 17, 21], returns=True)


@pytest.mark.parametrize("name", ["contrib.ROIAlign", "ROIPooling"])
def test_any_number_of_regions(mx: Any, name: str) -> None:
    build = mx.sym
    for part in name.split("."):
        build = getattr(build, part)
    symbol = build(mx.sym.var("data"), mx.sym.var("rois"), pooled_size=(3, 2), spatial_scale=0.5)
    inputs = regions(3)
    shapes = {"data": ("n", 3, 12, 10), "rois": ("k", 5)}
    model = serde.to_relay(symbol, input_shapes=shapes)
    proto = serde.from_relay(model, format="onnx", opset=17).SerializeToString()
    same(run_onnx(proto, inputs)[1], run_under(symbol, inputs, numpy=False), 1e-5)


def heads(batch: int, anchors: int) -> dict[str, np.ndarray]:
    """Scores and offsets of anchors, and the sizes of images that do not fill the map."""
    draw = np.random.default_rng(8)
    return {
        "scores": draw.uniform(size=(batch, 2 * anchors, 4, 5)).astype("float32"),
        "offsets": draw.normal(size=(batch, 4 * anchors, 4, 5), scale=0.2).astype("float32"),
        "sizes": np.array([[64, 80, 1], [55, 70, 0.5]][:batch], "float32"),
    }


@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize(("name", "batch"), [("Proposal", 1), ("MultiProposal", 2)])
@pytest.mark.parametrize("attrs", [
    {"rpn_post_nms_top_n": 6, "rpn_pre_nms_top_n": 20},
    {"rpn_post_nms_top_n": 70, "rpn_pre_nms_top_n": 30, "threshold": 0.4},
    {"rpn_post_nms_top_n": 8, "rpn_min_size": 30, "feature_stride": 14},
    {"rpn_post_nms_top_n": 8, "iou_loss": True, "scales": (1.5, 3.0), "ratios": (0.5,)},
])  # fmt: skip
def test_proposals(mx: Any, attrs: dict[str, Any], name: str, batch: int, scored: bool) -> None:
    attrs = {"scales": (2.0,), "ratios": (0.5, 1.0, 2.0), "rpn_min_size": 4, **attrs}
    inputs = heads(batch, len(attrs["scales"]) * len(attrs["ratios"]))
    symbol = getattr(mx.sym.contrib, name)(
        *(mx.sym.var(each) for each in inputs), output_score=scored, **attrs
    )
    symbol = mx.sym.Group(list(symbol)) if scored else symbol
    # MXNet predicts boxes of up to 80 pixels in float32
    agree(symbol, inputs, tolerance=2e-5, returns=True, opsets=[13, 21])


@pytest.mark.wide
@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("ratio", [-1, 1, 2])
def test_turned_regions(mx: Any, ratio: int, scale: float) -> None:
    draw = np.random.default_rng(12)
    inputs = regions(3)
    centres, sizes = draw.uniform(0, 12, (7, 2)), draw.uniform(0.2, 9, (7, 2))
    parts = [draw.integers(0, 2, (7, 1)), centres, sizes, draw.uniform(-200, 200, (7, 1))]
    inputs["rois"] = np.concatenate(parts, 1).astype("float32")
    symbol = mx.sym.contrib.RROIAlign(
        mx.sym.var("data"), mx.sym.var("rois"), pooled_size=(3, 2), spatial_scale=scale,
        sampling_ratio=ratio,
    )  # fmt: skip
    # places are computed in float32: 1e-6 of 12 elements
    agree(symbol, inputs, tolerance=5e-5, opsets=[13, 21], returns=True)


@pytest.mark.wide
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("rows", [5, 1])
def test_any_number_of_turned_regions(mx: Any, rows: int, ratio: int) -> None:
    inputs = regions(3)
    angles = np.linspace(-100, 100, 5, dtype="float32")[:, None]
    inputs["rois"] = np.concatenate([np.abs(inputs["rois"]), angles], 1)[:rows]
    symbol = mx.sym.contrib.RROIAlign(
        mx.sym.var("data"), mx.sym.var("rois"), pooled_size=(3, 2), spatial_scale=0.5,
        sampling_ratio=ratio,
    )  # fmt: skip
    shapes = {"data": ("n", 3, 12, 10), "rois": ("k", 6)}
    agree(symbol, inputs, tolerance=5e-5, opsets=[13, 21], shapes=shapes)


@pytest.mark.wide
@pytest.mark.parametrize(("pooled", "group", "scale"), [(2, 0, 1.0), (3, 3, 0.5), (4, 2, 0.7)])
def test_position_sensitive_regions(mx: Any, pooled: int, group: int, scale: float) -> None:
    inputs = regions(2 * (group or pooled) ** 2)
    inputs["rois"][2, 1:] = [40, 40, 50, 50]
    symbol = mx.sym.contrib.PSROIPooling(
        mx.sym.var("data"), mx.sym.var("rois"), spatial_scale=scale, output_dim=2,
        pooled_size=pooled, group_size=group,
    )  # fmt: skip
    agree(symbol, inputs, returns=True, opsets=[13, 21])


@pytest.mark.parametrize("attrs", [
    {"pooled_size": 2, "group_size": 2, "no_trans": True, "trans_std": 0.1},
    {"pooled_size": 3, "group_size": 3, "trans_std": 0.2, "sample_per_part": 2},
    {"pooled_size": 3, "group_size": 2, "part_size": 2, "trans_std": 0.3, "sample_per_part": 3},
    {"pooled_size": 4, "group_size": 2, "part_size": 3, "trans_std": 0.5, "classes": 4},
])  # fmt: skip
@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_moved_bins(mx: Any, attrs: dict[str, Any], scale: float) -> None:
    attrs = dict(attrs)
    classes, parts = attrs.pop("classes", 1), attrs.get("part_size") or attrs["pooled_size"]
    inputs = regions(4 * attrs["group_size"] ** 2)
    if not attrs.get("no_trans"):
        draw = np.random.default_rng(13)
        inputs["trans"] = draw.normal(size=(5, 2 * classes, parts, parts)).astype("float32")
    symbol = mx.sym.contrib.DeformablePSROIPooling(
        *(mx.sym.var(name) for name in inputs), spatial_scale=scale, output_dim=4, **attrs
    )
    # places are computed in float32: 1e-6 of 12 elements
    agree(symbol, inputs, returns=True, opsets=[13, 21], tolerance=2e-5)


def _as_doubled(rois: np.ndarray) -> np.ndarray:
    """Regions that at scale 1 are what the given ones are at scale 2: edges are rounded first."""
    corners = np.sign(rois[:, 1:]) * np.floor(np.abs(rois[:, 1:]) + 0.5)
    return np.concatenate([rois[:, :1], 2 * corners + np.float32([0, 0, 1, 1])], 1)


@pytest.mark.parametrize("scale", [2.0, 1.0])
def test_position_sensitive_regions_of_a_greater_scale(mx: Any, scale: float) -> None:
    inputs = regions(8)
    attrs = {"output_dim": 2, "pooled_size": 2, "group_size": 2}
    found = run_built(
        lambda *x: call("serde.psroi_pool", *x, spatial_scale=scale, **attrs), *inputs.values()
    )
    if scale > 1:
        inputs["rois"] = _as_doubled(inputs["rois"])
    symbol = mx.sym.contrib.PSROIPooling(*map(mx.sym.var, inputs), spatial_scale=1.0, **attrs)
    np.testing.assert_allclose(found, run_mxnet(symbol, {}, inputs)[0], atol=1e-5)


@pytest.mark.wide
@pytest.mark.parametrize(("scale", "deviation"), [(2.0, 0.3), (1.0, 1.5), (2.0, 1.5)])
def test_moved_bins_of_greater_factors(mx: Any, scale: float, deviation: float) -> None:
    inputs = regions(8)
    inputs["trans"] = np.random.default_rng(13).normal(size=(5, 2, 2, 2)).astype("float32")
    attrs = {
        "output_dim": 2, "pooled_size": 2, "group_size": 2, "part_size": 2, "sample_per_part": 2,
    }  # fmt: skip
    factors = {"spatial_scale": scale, "trans_std": deviation}
    found = run_built(
        lambda *x: call("serde.deformable_psroi_pool", *x, **factors, **attrs), *inputs.values()
    )
    if scale > 1:
        inputs["rois"] = _as_doubled(inputs["rois"])
    inputs["trans"] *= 3
    symbol = mx.sym.contrib.DeformablePSROIPooling(
        *map(mx.sym.var, inputs), spatial_scale=1.0, trans_std=deviation / 3, **attrs
    )
    np.testing.assert_allclose(found, run_mxnet(symbol, {}, inputs)[0], atol=2e-5)
