"""Suppression of overlapping boxes written as ONNX, against loops written out in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.onnx_export import OPSETS, run_exported

import serde.relay as relay


def overlap(a: np.ndarray, b: np.ndarray) -> np.float32:
    """Intersection over union of two boxes of float32."""
    (low_a, high_a), (low_b, high_b) = (
        (np.minimum(x[:2], x[2:]), np.maximum(x[:2], x[2:])) for x in (a, b)
    )
    common = np.maximum(np.minimum(high_a, high_b) - np.maximum(low_a, low_b), 0).prod()
    union = (high_a - low_a).prod() + (high_b - low_b).prod() - common
    return np.float32(common / union) if union > 0 else np.float32(0)


def suppressed(
    rows: np.ndarray,
    count: int,
    *,
    iou: float,
    limit: int = -1,
    top_k: int = -1,
    by_class: bool = True,
) -> np.ndarray:
    """Rows (class, score, corners) of one image in order of their scores, those that go -1."""
    out = np.full_like(rows, -1)
    order = sorted(range(count), key=lambda place: -rows[place, 1])
    kept: list[int] = []
    for rank, place in enumerate(order[: top_k if top_k > 0 else None]):
        if 0 <= limit <= len(kept):
            break
        row = rows[place]
        rivals = [rows[k] for k in kept if not by_class or rows[k, 0] == row[0]]
        if row[1] > 0:
            if any(overlap(each[2:6], row[2:6]) >= np.float32(iou) for each in rivals):
                continue
            kept.append(place)
        out[rank] = row
    return out


def detections(seed: int, batch: int = 2, number: int = 40) -> np.ndarray:
    """Rows of three classes; scores of one digit, so that many are equal, some not positive."""
    generator = np.random.default_rng(seed)
    corners = generator.integers(0, 12, (batch, number, 4)).astype(np.float32)
    classes = generator.integers(0, 3, (batch, number, 1)).astype(np.float32)
    scores = generator.integers(-2, 10, (batch, number, 1)).astype(np.float32) / 10
    return np.concatenate([classes, scores, corners], 2)


SETTINGS: dict[str, dict[str, Any]] = {
    "classes": {"iou": 0.4},
    "all": {"iou": 0.4, "by_class": False},
    "limit": {"iou": 0.5, "limit": 6},
    "limit-0": {"iou": 0.5, "limit": 0},
    "best": {"iou": 0.3, "top_k": 9},
    "touching": {"iou": 0.25, "by_class": False},
    "above-1": {"iou": 1.5},
}


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("name", SETTINGS)
def test_boxes_are_suppressed(name: str, symbolic: bool, opset: int) -> None:
    given = SETTINGS[name]
    data, counts = detections(5), np.array([40, 23], np.int32)
    places = np.tile(np.arange(40, dtype=np.int32), (2, 1))
    (found,) = run_exported(
        lambda d, c, p: relay.vision.non_max_suppression(
            d, c, p, given.get("limit", -1), given["iou"],
            force_suppress=not given.get("by_class", True), top_k=given.get("top_k", -1),
            return_indices=False,
        ),
        data, counts, places, opset=opset,
        symbolic=[(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)] if symbolic else [],
    )  # fmt: skip
    expected = [suppressed(rows, n, **given) for rows, n in zip(data, counts, strict=True)]
    np.testing.assert_array_equal(found, np.stack(expected))


@pytest.mark.parametrize("opset", OPSETS)
def test_places_of_what_stays_come_first(opset: int) -> None:
    data, counts = detections(6), np.array([40, 31], np.int32)
    places = np.tile(np.arange(40, dtype=np.int32), (2, 1)) + 7
    build = relay.vision.non_max_suppression
    found, numbers = run_exported(
        lambda d, c, p, limit, iou: build(d, c, p, limit, iou, force_suppress=True),
        data, counts, places, np.array(5, np.int32), np.array(0.4, np.float32), opset=opset,
    )  # fmt: skip
    for rows, count, image, number in zip(data, counts, found, numbers, strict=True):
        stays = suppressed(rows, count, iou=0.4, limit=5, by_class=False)
        order = np.argsort(-rows[:count, 1], kind="stable") + 7
        expected = order[: len(stays)][(stays[: len(order)] != -1).any(1)]
        assert image[: number[0]].tolist() == expected.tolist()
        assert (image[number[0] :] == -1).all()


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("iou", [0.0, -1.0])
def test_nothing_goes_without_a_threshold(iou: float, opset: int) -> None:
    data, counts = detections(7), np.array([12, 40], np.int32)
    places = np.zeros((2, 40), np.int32)
    (found,) = run_exported(
        lambda d, c, p: relay.vision.non_max_suppression(
            d, c, p, 3, iou, top_k=4, return_indices=False
        ),
        data, counts, places, opset=opset,
    )  # fmt: skip
    data[0, 12:] = -1
    np.testing.assert_array_equal(found, data)


def stays_of(corners: np.ndarray, marks: np.ndarray, iou: float, limit: int, strict: bool) -> list:
    kept: list[int] = []
    for place in sorted(range(len(marks)), key=lambda each: -marks[each]):
        if len(kept) >= limit:
            break
        found = [overlap(corners[k], corners[place]) for k in kept]
        if not any(f > np.float32(iou) if strict else f >= np.float32(iou) for f in found):
            kept.append(place)
    return kept


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("iou", [-1.0, 0.0, 0.25, 0.5, 1.0, 2.0])
def test_all_classes_one_after_another(iou: float, opset: int) -> None:
    generator = np.random.default_rng(11)
    corners = generator.integers(0, 9, (2, 15, 4)).astype(np.float32)
    marks = generator.integers(0, 10, (2, 3, 15)).astype(np.float32)
    places, scores, counts = run_exported(
        lambda b, s: relay.vision.all_class_non_max_suppression(b, s, 4, iou, -1.0, "tensorflow"),
        corners, marks, opset=opset, symbolic=[(0, 1), (1, 2)],
    )  # fmt: skip
    for image in range(2):
        rows = [
            (-marks[image, c, k], c, k)
            for c in range(3)
            for k in stays_of(corners[image], marks[image, c], iou, 4, strict=False)
        ]
        count = counts[image]
        assert count == len(rows)
        assert places[image, :count].tolist() == [[c, k] for _, c, k in rows]
        assert scores[image, :count].tolist() == [-score for score, _, _ in rows]
        assert not places[image, count:].any()
        assert not scores[image, count:].any()


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("iou", [-1.0, 0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("most", [7, 60])
def test_regular_suppression(most: int, iou: float, opset: int) -> None:
    generator = np.random.default_rng(12)
    corners = generator.integers(0, 9, (2, 15, 4)).astype(np.float32)
    marks = (generator.integers(0, 10, (2, 15, 3)) / 8).astype(np.float32)
    found, classes, scores, counts = run_exported(
        lambda b, s: relay.vision.regular_non_max_suppression(b, s, 4, most, 3, iou, 0.5),
        corners, marks, opset=opset,
    )  # fmt: skip
    for image in range(2):
        rows = []
        for class_ in range(3):
            good = np.flatnonzero(marks[image, :, class_] >= 0.5)
            kept = stays_of(corners[image, good], marks[image, good, class_], iou, 4, strict=True)
            rows += [(-marks[image, good[k], class_], class_, good[k]) for k in kept]
        rows = sorted(rows, key=lambda row: row[0])[:most]
        count = int(counts[image])
        assert count == len(rows)
        np.testing.assert_array_equal(found[image, :count], corners[image, [k for *_, k in rows]])
        assert classes[image, :count].tolist() == [c for _, c, _ in rows]
        assert scores[image, :count].tolist() == [-score for score, *_ in rows]
        assert not found[image, count:].any()
        assert not scores[image, count:].any()
