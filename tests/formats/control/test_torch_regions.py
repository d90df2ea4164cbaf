"""Torchvision's operators on regions against loops over every bin; nothing here needs PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.core.report import Report
from serde.engine.interpreter import RelayEngine
from serde.torch.importer import to_relay
from serde.torch.model import Graph, Input, Node, Ref, TorchModel
from serde.torch.options import TorchImportOptions

ROIS = np.array(
    [[0, 1.5, 2.25, 9.0, 7.5], [1, 0, 0, 4, 3], [1, 6.5, 1.0, 6.75, 12.5], [0, -3, 8.5, 2.5, 19],
     [0, 2, 2, 2, 2], [1, 7.3, 0.4, 30.0, 5.0]], np.float32)  # fmt: skip


def run(op: str, arrays: dict[str, np.ndarray], **attributes: Any) -> list[np.ndarray]:
    """Return what an operator gives, its tensors and its attributes by the schema's names."""
    arguments = [*((name, Ref(name)) for name in arrays), *attributes.items()]
    outputs = ["one"] if op in ("nms", "roi_align", "deform_conv2d") else ["one", "two"]
    node = Node(f"torchvision::{op}", op, arguments, outputs)
    graph = Graph(list(arrays), [node], [Ref(each) for each in outputs])
    inputs = [Input(name, name, each.shape, each.dtype.name) for name, each in arrays.items()]
    model = TorchModel(graph, inputs, outputs, {}, "module")
    found = RelayEngine(to_relay(model, TorchImportOptions(), Report())).run(arrays)
    assert len(found) == len(outputs)
    return list(found)


def images(channels: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.standard_normal((2, channels, 12, 10)).astype(np.float32)


def between(plane: np.ndarray, y: float, x: float) -> float:
    """Return a plane read between its elements; 0 more than one element outside."""
    height, width = plane.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = min(max(y, 0.0), height - 1), min(max(x, 0.0), width - 1)
    top, left = int(y), int(x)
    low, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, across = y - top, x - left
    upper = plane[top, left] * (1 - across) + plane[top, right] * across
    return (
        upper * (1 - down) + (plane[low, left] * (1 - across) + plane[low, right] * across) * down
    )


def sampled(plane: np.ndarray, start: list[float], size: list[float], ratio: int) -> float:
    """Return the mean of samples in a bin."""
    counts = [ratio if ratio > 0 else int(np.ceil(each)) for each in size]
    total = 0.0
    for i, j in np.ndindex(*counts):
        y = start[0] + (i + 0.5) * size[0] / counts[0]
        x = start[1] + (j + 0.5) * size[1] / counts[1]
        total += between(plane, y, x)
    return total / max(counts[0] * counts[1], 1)


def aligned_bins(roi: np.ndarray, size: tuple[int, int], scale: float, shift: float, least: float):
    """Return the first place and the lengths of the bins of a region."""
    left, top, right, bottom = roi[1:].astype(np.float64) * scale - shift
    spans = [bottom - top, right - left]
    if least:
        spans = [max(each, least) for each in spans]
    return [top, left], [span / count for span, count in zip(spans, size, strict=True)]


@pytest.mark.parametrize("ratio", [2, -1])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_align(ratio: int, aligned: bool, scale: float) -> None:
    x, size = images(3), (3, 2)
    expected = np.zeros((len(ROIS), 3, *size), np.float32)
    for roi, pooled in zip(ROIS, expected, strict=True):
        start, step = aligned_bins(roi, size, scale, 0.5 * aligned, 0.0 if aligned else 1.0)
        for c, i, j in np.ndindex(pooled.shape):
            place = [start[0] + i * step[0], start[1] + j * step[1]]
            pooled[c, i, j] = sampled(x[int(roi[0]), c], place, step, ratio)
    (found,) = run(
        "roi_align", {"input": x, "rois": ROIS}, spatial_scale=scale, pooled_height=3,
        pooled_width=2, sampling_ratio=ratio, aligned=aligned,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ratio", [2, -1])
def test_ps_roi_align(ratio: int) -> None:
    x, size, depth = images(12), (3, 2), 2
    rois = ROIS[[0, 1, 2, 3, 5]]
    expected = np.zeros((len(rois), depth, *size), np.float32)
    for roi, pooled in zip(rois, expected, strict=True):
        start, step = aligned_bins(roi, size, 0.5, 0.5, 0.0)
        for c, i, j in np.ndindex(pooled.shape):
            plane = x[int(roi[0]), (c * size[0] + i) * size[1] + j]
            place = [start[0] + i * step[0], start[1] + j * step[1]]
            pooled[c, i, j] = sampled(plane, place, step, ratio)
    found, mapping = run(
        "ps_roi_align", {"input": x, "rois": rois}, spatial_scale=0.5, pooled_height=3,
        pooled_width=2, sampling_ratio=ratio,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(
        mapping, np.broadcast_to(np.arange(12).reshape(2, 3, 2), mapping.shape)
    )
    assert mapping.dtype == np.int32


def whole_bins(
    roi: np.ndarray, size: tuple[int, int], scale: float, extra: int, lengths: tuple[int, int]
) -> list[list[range]]:
    """Return the elements of the bins of a region with whole edges, of each axis."""
    scaled = roi[1:] * np.float32(scale)
    edges = (np.sign(scaled) * np.floor(np.abs(scaled) + 0.5)).astype(int)
    found = []
    for axis, (count, length) in enumerate(zip(size, lengths, strict=True)):
        first, last = edges[1 - axis], edges[3 - axis]
        step = np.float32(max(last - first + extra, 1)) / np.float32(count)
        most = length if extra else length - 1
        bounds = [
            (
                int(np.floor(np.float32(i) * step)) + first,
                int(np.ceil(np.float32(i + 1) * step)) + first,
            )
            for i in range(count)
        ]
        found.append([range(min(max(a, 0), most), min(max(b, 0), most)) for a, b in bounds])
    return found


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_roi_pool(scale: float) -> None:
    x, size = images(2), (3, 4)
    expected = np.zeros((len(ROIS), 2, *size), np.float32)
    places = np.full(expected.shape, -1, np.int32)
    for n, roi in enumerate(ROIS):
        rows, columns = whole_bins(roi, size, scale, 1, (12, 10))
        for c, i, j in np.ndindex(2, *size):
            inside = [(h, w) for h in rows[i] for w in columns[j]]
            if inside:
                plane = x[int(roi[0]), c]
                h, w = max(inside, key=lambda place, plane=plane: plane[place])
                expected[n, c, i, j], places[n, c, i, j] = plane[h, w], h * 10 + w
    found = run(
        "roi_pool", {"input": x, "rois": ROIS}, spatial_scale=scale, pooled_height=3, pooled_width=4
    )
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(found[1], places)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_ps_roi_pool(scale: float) -> None:
    x, size = images(12), (2, 3)
    expected = np.zeros((len(ROIS), 2, *size), np.float32)
    for n, roi in enumerate(ROIS):
        rows, columns = whole_bins(roi, size, scale, 0, (12, 10))
        for c, i, j in np.ndindex(2, *size):
            plane = x[int(roi[0]), (c * 2 + i) * 3 + j]
            part = plane[rows[i].start : rows[i].stop, columns[j].start : columns[j].stop]
            if len(rows[i]) and len(columns[j]):
                expected[n, c, i, j] = part.mean()
    found, mapping = run(
        "ps_roi_pool", {"input": x, "rois": ROIS}, spatial_scale=scale, pooled_height=2,
        pooled_width=3,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert mapping.shape == expected.shape


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_nms(threshold: float) -> None:
    random = np.random.default_rng(1)
    corners = random.uniform(0, 8, (40, 2))
    boxes = np.concatenate([corners, corners + random.uniform(0, 6, (40, 2))], 1).astype(np.float32)
    scores = random.uniform(0, 1, 40).astype(np.float32)
    scores[5] = scores[17]
    kept: list[int] = []
    for index in np.argsort(-scores, kind="stable"):
        one = boxes[index]
        overlaps = []
        for other in boxes[kept]:
            low, high = np.maximum(one[:2], other[:2]), np.minimum(one[2:], other[2:])
            common = np.maximum(high - low, 0).prod()
            union = (one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod() - common
            overlaps.append(common / union)
        if not overlaps or max(overlaps) <= threshold:
            kept.append(int(index))
    (found,) = run("nms", {"dets": boxes, "scores": scores}, iou_threshold=threshold)
    assert found.tolist() == kept
    assert found.dtype == np.int64


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("groups", [1, 2])
def test_deform_conv2d(masked: bool, groups: int) -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal((2, 4, 6, 5)).astype(np.float32)
    weight = random.standard_normal((6, 4 // groups, 3, 2)).astype(np.float32)
    rows, columns, taps = 3, 6, 6
    offset = random.standard_normal((2, 2 * 2 * taps, rows, columns)).astype(np.float32)
    mask = random.uniform(0, 1, (2, 2 * taps, rows, columns)).astype(np.float32)
    bias = random.standard_normal(6).astype(np.float32)
    expected = np.zeros((2, 6, rows, columns)) + bias[:, None, None]
    for n, o, i, j in np.ndindex(expected.shape):
        for c, k, m in np.ndindex(weight.shape[1:]):
            channel = o // (6 // groups) * (4 // groups) + c
            tap = channel // 2 * taps + k * 2 + m
            y = 2 * i - 1 + k + offset[n, 2 * tap, i, j]
            z = j - 1 + m + offset[n, 2 * tap + 1, i, j]
            part = faded(x[n, channel], y, z) * weight[o, c, k, m]
            expected[n, o, i, j] += part * (mask[n, tap, i, j] if masked else 1)
    (found,) = run(
        "deform_conv2d",
        {"input": x, "weight": weight, "offset": offset, "mask": mask, "bias": bias},
        stride_h=2, stride_w=1, pad_h=1, pad_w=1, dilation_h=1, dilation_w=1, groups=groups,
        offset_groups=2, use_mask=masked,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def faded(plane: np.ndarray, y: float, x: float) -> float:
    """Return a plane read between its elements, which are zero outside."""
    top, left = int(np.floor(y)), int(np.floor(x))
    total = 0.0
    for i, j in np.ndindex(2, 2):
        h, w = top + i, left + j
        if 0 <= h < plane.shape[0] and 0 <= w < plane.shape[1]:
            total += plane[h, w] * (1 - abs(y - h)) * (1 - abs(x - w))
    return total
