"""Suppression of boxes and detection as TFLite has them, judged by LiteRT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

from flatbuffers import flexbuffers
from support.tflite_models import T, make_model, run_litert, schema

import serde
from serde.engine.interpreter import RelayEngine
from serde.errors import UnsupportedModelError

BOXES = np.array([[0, 0, 1, 1], [0, 0, 1, 0.5], [0, 0, 0.5, 0.5], [2, 2, 3, 3]], np.float32)
SCORES = np.array([0.9, 0.8, 0.7, 0.3], np.float32)


def read(data: bytes, feeds: Sequence[np.ndarray], path: Path) -> list[np.ndarray]:
    path.write_bytes(data)
    model = serde.to_relay(path)
    return RelayEngine(model).run(dict(zip(model.meta.inputs, feeds, strict=True)))


def suppression(version: int, limit: int, overlap: float, least: float, boxes: np.ndarray) -> bytes:
    scalars = [T((), "int32", limit), T((), data=overlap), T((), data=least)]
    scalars += [T((), data=0.0)] if version == 5 else []
    given = [T(boxes.shape), T(boxes.shape[:1]), *scalars]
    scores = [T((limit,))] if version == 5 else []
    made = [T((limit,), "int32"), *scores, T((), "int32")]
    op = f"NON_MAX_SUPPRESSION_V{version}"
    return make_model(op, given, made, f"NonMaxSuppressionV{version}Options")


# A box of the overlap itself goes, and so does one of the score.
LIMITS = [(4, 0.5, 0.0), (4, 0.9, 0.3), (6, 0.1, 0.0), (2, 0.99, 0.0), (3, 0.5, 0.95)]


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("limits", LIMITS)
def test_suppression(tmp_path: Path, version: int, limits: tuple[int, float, float]) -> None:
    data = suppression(version, *limits, BOXES)
    expected = run_litert(data, [BOXES, SCORES])
    for found, wanted in zip(
        read(data, [BOXES, SCORES], tmp_path / "net.tflite"), expected, strict=True
    ):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("seed", range(4))
def test_suppression_of_many(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    corners = rng.uniform(0, 1, (50, 4)).astype(np.float32)
    scores = rng.uniform(0, 1, 50).astype(np.float32)
    data = suppression(5, 20, 0.3, 0.2, corners)
    found = read(data, [corners, scores], tmp_path / "net.tflite")
    for ours, wanted in zip(found, run_litert(data, [corners, scores]), strict=True):
        np.testing.assert_array_equal(ours, wanted)


def test_soft_suppression_is_refused(tmp_path: Path) -> None:
    given = [T((4, 4)), T((4,)), T((), "int32", 4), *(T((), data=x) for x in (0.5, 0.0, 0.5))]
    made = [T((4,), "int32"), T((4,)), T((), "int32")]
    data = make_model("NON_MAX_SUPPRESSION_V5", given, made, "NonMaxSuppressionV5Options")
    with pytest.raises(UnsupportedModelError, match="soft suppression"):
        read(data, [BOXES, SCORES], tmp_path / "net.tflite")


COUNT, CLASSES = 40, 5
OPTIONS: dict[str, Any] = {
    "max_detections": 10, "max_classes_per_detection": 1, "num_classes": CLASSES - 1,
    "nms_iou_threshold": 0.4, "nms_score_threshold": 0.3, "y_scale": 10.0, "x_scale": 10.0,
    "h_scale": 5.0, "w_scale": 5.0, "use_regular_nms": False,
}  # fmt: skip


def detection(options: bytes | Mapping[str, Any], dtype: str = "float32") -> bytes:
    """Return a file of the custom operator, of classes of which the first is the background."""
    rng = np.random.default_rng(1)
    anchors = np.c_[rng.uniform(0, 1, (COUNT, 2)), rng.uniform(0.1, 0.4, (COUNT, 2))]
    limit = options.get("max_detections", 1) if isinstance(options, Mapping) else 1
    coded = {} if dtype == "float32" else {"scale": 0.05, "zero": 128}
    score = {} if dtype == "float32" else {"scale": 1 / 256, "zero": 0}
    anchor = {} if dtype == "float32" else {"scale": 1 / 200, "zero": 0}
    given = [
        T((1, COUNT, 4), dtype, **coded),
        T((1, COUNT, CLASSES), dtype, **score),
        T((COUNT, 4), dtype, anchors if dtype == "float32" else anchors * 200, **anchor),
    ]
    made = [T((1, limit, 4)), T((1, limit)), T((1, limit)), T((1,))]
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(make_model("CUSTOM", given, made), 0))
    model.operatorCodes[0].customCode = "TFLite_Detection_PostProcess"
    packed = options if isinstance(options, bytes) else flexbuffers.Dumps(dict(options))
    model.subgraphs[0].operators[0].customOptions = list(packed)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def feeds(dtype: str, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = (1, COUNT, 4), (1, COUNT, CLASSES)
    if dtype == "uint8":
        return [rng.integers(0, 256, shape).astype(np.uint8) for shape in shapes]
    return [
        rng.normal(size=shapes[0]).astype("f4"), rng.uniform(0, 1, shapes[1]).astype("f4")
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("more", [{}, {"max_detections": 60}, {"nms_score_threshold": 0.97}])
def test_detection(tmp_path: Path, dtype: str, more: dict[str, Any]) -> None:
    """Behind the last detection LiteRT leaves what was in its memory."""
    data, given = detection({**OPTIONS, **more}, dtype), feeds(dtype, 3)
    expected = run_litert(data, given)
    found = read(data, given, tmp_path / "net.tflite")
    assert found[3] == expected[3] > 0
    for ours, wanted in zip(found[:3], expected[:3], strict=True):
        assert ours.shape == wanted.shape
        count = int(expected[3].item())
        np.testing.assert_allclose(ours[:, :count], wanted[:, :count], atol=1e-6)


def test_detection_in_another_format(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    (tmp_path / "net.tflite").write_bytes(detection(OPTIONS))
    serde.convert(tmp_path / "net.tflite", tmp_path / "net.onnx")
    from support.runtime import run_onnx

    given = feeds("float32", 5)
    model = serde.to_relay(tmp_path / "net.tflite")
    named = dict(zip(model.meta.inputs, given, strict=True))
    found = run_onnx(tmp_path / "net.onnx", named)[1]
    for ours, wanted in zip(found, RelayEngine(model).run(named), strict=True):
        np.testing.assert_allclose(ours, wanted, atol=1e-6)


REFUSED = {
    "each class": ({**OPTIONS, "use_regular_nms": True}, "class by class"),
    "several classes": ({**OPTIONS, "max_classes_per_detection": 2}, "several classes"),
    "none": ({"num_classes": 3}, "0 detections"),
    "empty": (b"", "no map"),
    "a list": (bytes(flexbuffers.Dumps([1, 2])), "no map"),
    "no end": (b"\x00\xff\xff\xff", "no map|0 detections"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_are_refused(tmp_path: Path, name: str) -> None:
    options, message = REFUSED[name]
    (tmp_path / "net.tflite").write_bytes(detection(options))
    with pytest.raises(UnsupportedModelError, match=message):
        serde.to_relay(tmp_path / "net.tflite")


@pytest.mark.parametrize("seed", range(60))
def test_damaged_options(tmp_path: Path, seed: int) -> None:
    """No claimed size is believed; what is no map is refused."""
    packed = bytearray(flexbuffers.Dumps(OPTIONS))
    rng = np.random.default_rng(seed)
    for place in rng.integers(0, len(packed), 4):
        packed[place] = rng.choice([0, 1, 127, 255, rng.integers(256)])
    (tmp_path / "net.tflite").write_bytes(detection(bytes(packed)))
    try:
        serde.to_relay(tmp_path / "net.tflite")
    except UnsupportedModelError:
        return
