"""Suppression in the tests' executor of ML Programs, against ONNX Runtime: PyTorch has none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.mil_executor import run_kernel
from support.one_node import onnx_values


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
def test_suppression(threshold: float, record_property: Callable[[str, object], None]) -> None:
    rng = np.random.default_rng(7)
    boxes = np.concatenate([rng.uniform(2, 8, (1, 40, 2)), rng.uniform(1, 5, (1, 40, 2))], -1)
    scores = rng.permutation(40).reshape(1, 40, 1) / 40
    given = {"boxes": boxes.astype(np.float32), "scores": scores.astype(np.float32)}
    limits = {"iou_threshold": np.float32(threshold), "score_threshold": np.float32(0.3)}
    _, _, places, (count,) = run_kernel(
        "non_maximum_suppression", {**given, **limits, "max_boxes": 12}
    )
    wanted = onnx_values(
        "NonMaxSuppression",
        given["boxes"], given["scores"].transpose(0, 2, 1), np.array([12], np.int64),
        np.array([threshold], np.float32), np.array([0.3], np.float32),
        center_point_box=1,
    )  # fmt: skip
    assert places[0, :count].tolist() == wanted[:, 2].tolist()
    record_property("mil_judged", ["non_maximum_suppression"])
