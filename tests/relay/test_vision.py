"""Detection operators against values worked out by hand and loops written here."""

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay.ir.expr import astuple
from serde.relay.run.interpreter import run

ROWS = np.array(
    [
        [0, 0.8, 1, 20, 25, 45],
        [1, 0.7, 30, 60, 50, 80],
        [0, 0.4, 4, 21, 19, 40],
        [2, 0.9, 35, 61, 52, 79],
        [1, 0.5, 100, 60, 70, 110],
    ],
    np.float32,
)[None]
GONE = [-1.0] * 6


def _nms(count: int, **attrs: object) -> object:
    x = relay.var("x", shape=(1, 5, 6))
    n = relay.const(np.array([count], np.int32))
    places = relay.const(np.arange(5, dtype=np.int32)[None])
    built = relay.vision.non_max_suppression(x, n, places, **attrs)
    return run(relay.Function([x], astuple(built)), [ROWS])


def test_boxes_of_any_class_suppress_each_other() -> None:
    found = _nms(4, iou_threshold=0.7, force_suppress=True, top_k=2, return_indices=False)
    np.testing.assert_array_equal(found[0], [ROWS[0, 3], ROWS[0, 0], GONE, GONE, GONE])


def test_places_of_what_stays() -> None:
    places, count = _nms(4, iou_threshold=0.4)
    np.testing.assert_array_equal(places, [[3, 0, 1, -1, -1]])
    np.testing.assert_array_equal(count, [[3]])


def test_no_more_than_asked_stay() -> None:
    found = _nms(5, iou_threshold=0.4, max_output_size=2, return_indices=False)
    np.testing.assert_array_equal(found[0], [ROWS[0, 3], ROWS[0, 0], GONE, GONE, GONE])


def test_what_stays_comes_first() -> None:
    found = _nms(
        5, iou_threshold=0.4, force_suppress=True, return_indices=False, invalid_to_bottom=True
    )
    np.testing.assert_array_equal(found[0], [ROWS[0, 3], ROWS[0, 0], ROWS[0, 4], GONE, GONE])


def test_without_a_threshold_nothing_moves() -> None:
    found = _nms(3, iou_threshold=0.0, return_indices=False)
    np.testing.assert_array_equal(found[0], [*ROWS[0, :3], GONE, GONE])


SQUARES = np.array(
    [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1],
      [0, 100, 1, 101]]], np.float32)  # fmt: skip
MARKS = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], np.float32)


@pytest.mark.parametrize("turned", [False, True])
def test_all_classes(turned: bool) -> None:
    """The example of ONNX's NonMaxSuppression; corners may be told in any order."""
    boxes = SQUARES[..., [2, 3, 0, 1]] if turned else SQUARES
    b, s = relay.var("b", shape=(1, 6, 4)), relay.var("s", shape=(1, 2, 6))
    built = relay.vision.all_class_non_max_suppression(b, s, 3, 0.5, 0.4)
    scores = np.stack([MARKS, MARKS[::-1]])[None]
    selected, count = run(relay.Function([b, s], built.astuple()), [boxes, scores])
    want = [[0, 0, 3], [0, 0, 0], [0, 1, 2], [0, 1, 5], [0, 1, 4]]
    assert count.tolist() == [5]
    np.testing.assert_array_equal(selected, want + [[0, 0, 0]] * 7)


def test_all_classes_of_each_image() -> None:
    """In TVM's form of TensorFlow's, rows are sorted within each class, not across classes."""
    b, s = relay.var("b", shape=(2, 6, 4)), relay.var("s", shape=(2, 2, 6))
    built = relay.vision.all_class_non_max_suppression(b, s, 3, 0.5, 0.4, "tensorflow")
    scores = np.stack([np.stack([MARKS, MARKS[::-1]]), np.stack([MARKS - 0.5, MARKS])])
    found = run(relay.Function([b, s], built.astuple()), [np.repeat(SQUARES, 2, 0), scores])
    first = [[0, 3], [0, 0], [1, 2], [1, 5], [1, 4]]
    second = [[0, 3], [1, 3], [1, 0]]
    marks = [MARKS[3], MARKS[0], MARKS[::-1][2], MARKS[::-1][5], MARKS[::-1][4]]
    assert found[2].tolist() == [5, 3]
    np.testing.assert_array_equal(found[0][0], first + [[0, 0]] * 7)
    np.testing.assert_array_equal(found[0][1], second + [[0, 0]] * 9)
    np.testing.assert_array_equal(found[1][0], marks + [0] * 7)
    np.testing.assert_array_equal(found[1][1, :3], [MARKS[3] - np.float32(0.5), MARKS[3], MARKS[0]])


def test_detections_of_all_classes_in_one_order() -> None:
    """The example of TFLite's DetectionPostProcess in its regular form."""
    b, s = relay.var("b", shape=(1, 6, 4)), relay.var("s", shape=(1, 6, 2))
    scores = np.array([[0.9, 0.8], [0.75, 0.72], [0.6, 0.5], [0.93, 0.95], [0.5, 0.4], [0.3, 0.2]])
    built = relay.vision.regular_non_max_suppression(b, s, 1, 3, 2, 0.5, 0.0)
    boxes, classes, marks, count = run(
        relay.Function([b, s], built.astuple()), [SQUARES, scores[None].astype(np.float32)]
    )
    np.testing.assert_array_equal(boxes[0], [SQUARES[0, 3], SQUARES[0, 3], [0, 0, 0, 0]])
    np.testing.assert_array_equal(classes, [[1, 0, 0]])
    np.testing.assert_allclose(marks, [[0.95, 0.93, 0]])
    np.testing.assert_array_equal(count, [2])


def test_darknets_order() -> None:
    batch, channels, height, width, stride = 2, 8, 4, 6, 2
    data = np.arange(batch * channels * height * width, dtype=np.float32)
    want = np.empty_like(data)
    fewer = channels // stride**2
    for number, (b, k, j, i) in enumerate(np.ndindex(batch, channels, height, width)):
        offset, channel = divmod(k, fewer)
        row, column = j * stride + offset // stride, i * stride + offset % stride
        image = channel + fewer * b
        want[number] = data[column + width * stride * (row + height * stride * image)]
    x = relay.var("x", shape=(batch, channels, height, width))
    found = run(
        relay.Function([x], relay.vision.yolo_reorg(x, stride)),
        [data.reshape(batch, channels, height, width)],
    )
    np.testing.assert_array_equal(found, want.reshape(2, 32, 2, 3))


def test_the_greatest_sample_of_a_bin() -> None:
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    x, r = relay.var("x", shape=(1, 1, 4, 4)), relay.var("r", shape=(1, 5))
    built = relay.vision.roi_align(x, r, (1, 1), 1.0, 2, mode="max")
    found = run(relay.Function([x, r], built), [image, np.array([[0, 0, 0, 2, 2]], np.float32)])
    np.testing.assert_array_equal(found, [[[[1.5 + 4 * 1.5]]]])


def test_what_does_not_fit_is_refused() -> None:
    x = relay.var("x", shape=(1, 6, 4, 4))
    with pytest.raises(TypeInferenceError, match="multiple"):
        relay.vision.yolo_reorg(x, 2)
    with pytest.raises(TypeInferenceError, match="regions"):
        relay.vision.roi_pool(x, relay.var("r", shape=(2, 4)), (2, 2), 1.0)
    with pytest.raises(TypeInferenceError, match="score_index 6"):
        relay.vision.get_valid_counts(relay.var("d", shape=(1, 5, 6)), 0.5, score_index=6)
