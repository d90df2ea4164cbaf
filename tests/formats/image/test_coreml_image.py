"""MIL's resizing, cropping and sampling of images in Relay.

Expected values are the places that coremltools documents, read linearly in NumPy; those of its
own tests, which Apple's runtime gave; and ONNX Runtime's where both mean the same.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support.coreml_layers import evaluate
from support.mil import check_import, program_of
from support.mil_layers import linear
from support.one_node import onnx_values

import serde
from serde.errors import UnsupportedModelError


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(11).uniform(-1, 1, shape).astype(np.float32)


MODES = ["STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "UNALIGN_CORNERS", "DEFAULT", "OFFSET_CORNERS"]


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 4, 5)])
@pytest.mark.parametrize("size", [(7, 9), (3, 2), (1, 6)])
@pytest.mark.parametrize("mode", MODES)
def test_resize_bilinear(mode: str, size: tuple[int, int], shape: tuple[int, ...]) -> None:
    x = draw(*shape)
    attrs = {"target_size_height": size[0], "target_size_width": size[1], "sampling_mode": mode}
    wanted = linear(x, size, mode)
    check_import("resize_bilinear", {"x": x}, attrs, expected=[wanted], tolerance=1e-5)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("STRICT_ALIGN_CORNERS", [0, 0.25, 0.5, 0.75, 1]),
        ("DEFAULT", [0, 0.4, 0.8, 1, 1]),
        ("OFFSET_CORNERS", [0.1, 0.3, 0.5, 0.7, 0.9]),
        ("UNALIGN_CORNERS", [0, 0.1, 0.5, 0.9, 1]),
    ],
)
def test_resize_as_the_runtime_has_it(mode: str, expected: list[float]) -> None:
    x = np.array([[[0, 1]]], np.float32)
    attrs = {"target_size_height": 1, "target_size_width": 5, "sampling_mode": mode}
    wanted = np.array([[expected]], np.float32)
    check_import("resize_bilinear", {"x": x}, attrs, expected=[wanted], tolerance=1e-6)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 4, 5)])
@pytest.mark.parametrize("size", [(8, 10), (7, 3), (2, 13)])
def test_resize_nearest_neighbor(size: tuple[int, int], shape: tuple[int, ...]) -> None:
    """As TensorFlow resizes to the nearest neighbour by centres of pixels."""
    x = draw(*shape)
    places = [(2 * np.arange(a) + 1) * b // (2 * a) for a, b in zip(size, (4, 5), strict=True)]
    wanted = x.take(places[0], -2).take(places[1], -1)
    attrs = {"target_size_height": size[0], "target_size_width": size[1]}
    check_import("resize_nearest_neighbor", {"x": x}, attrs, expected=[wanted])


@pytest.mark.parametrize("scales", [(2, 3), (3.17, 0.67), (2.0, 1.12), (1.5, 1.0)])
def test_upsample_nearest_neighbor(scales: tuple[float, float]) -> None:
    x = draw(1, 2, 4, 6)
    size = [int(np.floor(n * s)) for n, s in zip((4, 6), scales, strict=True)]
    places = [np.arange(a) * b // a for a, b in zip(size, (4, 6), strict=True)]
    wanted = x.take(places[0], 2).take(places[1], 3)
    kind = np.int32 if all(isinstance(s, int) for s in scales) else np.float32
    attrs = {"scale_factor_height": kind(scales[0]), "scale_factor_width": kind(scales[1])}
    check_import("upsample_nearest_neighbor", {"x": x}, attrs, expected=[wanted])


@pytest.mark.parametrize("scales", [(2, 3), (2.6, 1.0), (0.5, 0.75)])
@pytest.mark.parametrize(
    ("attrs", "mode", "target"),
    [
        ({}, "STRICT_ALIGN_CORNERS", "iOS15"),
        ({"align_corners": True}, "STRICT_ALIGN_CORNERS", "iOS15"),
        ({"align_corners": False}, "UNALIGN_CORNERS", "iOS15"),
        ({"align_corners": False, "half_pixel_centers": False}, "DEFAULT", "iOS16"),
    ],
)
def test_upsample_bilinear(
    attrs: dict[str, Any], mode: str, target: str, scales: tuple[float, float]
) -> None:
    x = draw(1, 2, 4, 6)
    size = tuple(int(np.floor(n * s)) for n, s in zip((4, 6), scales, strict=True))
    kind = np.int32 if all(isinstance(s, int) for s in scales) else np.float32
    given = {"scale_factor_height": kind(scales[0]), "scale_factor_width": kind(scales[1])}
    wanted = linear(x, size, mode)
    check_import(
        "upsample_bilinear", {"x": x}, given | attrs, target=target, expected=[wanted],
        tolerance=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize("scales", [(2, 3), (4, 1)])
@pytest.mark.parametrize(
    ("op", "attrs", "mode"),
    [
        ("upsample_nearest_neighbor", {}, "NEAREST"),
        ("upsample_bilinear", {"align_corners": True}, "STRICT_ALIGN_CORNERS"),
        ("upsample_bilinear", {"align_corners": False}, "UNALIGN_CORNERS"),
    ],
)
def test_upsample_of_open_lengths(
    op: str, attrs: dict[str, Any], mode: str, scales: tuple[int, int]
) -> None:
    given = {"scale_factor_height": np.int32(scales[0]), "scale_factor_width": np.int32(scales[1])}
    program = program_of(op, {"x": draw(1, 2, 4, 6)}, given | attrs)
    model = serde.to_relay(program, input_shapes={"x": (1, 2, "height", "width")})
    x = draw(1, 2, 5, 3)
    (found,) = evaluate(model, {"x": x})
    size = 5 * scales[0], 3 * scales[1]
    nearest = x.repeat(scales[0], 2).repeat(scales[1], 3)
    wanted = nearest if mode == "NEAREST" else linear(x, size, mode)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


RESIZED: dict[str, tuple[tuple[int, ...], list[int], int]] = {
    "image": ((2, 3, 4, 5), [7, 3], 2),
    "whole_shape": ((2, 3, 4, 5), [2, 3, 7, 3], 2),
    "kept": ((2, 3, 4, 5), [1, 0, 8], 2),
    "line": ((2, 3, 5), [9], 1),
    "volume": ((2, 3, 4, 5), [5, 6, 7], 3),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", RESIZED)
def test_resize(name: str, mode: str) -> None:
    shape, given, count = RESIZED[name]
    x = draw(*shape)
    size = tuple(n or own for n, own in zip(given[-count:], shape[-count:], strict=True))
    attrs = {"shape": np.array(given, np.int32), "resized_dims": np.uint32(count)}
    wanted = linear(x, size, mode)
    check_import(
        "resize", {"x": x}, {**attrs, "sampling_mode": mode}, target="iOS17", expected=[wanted],
        tolerance=1e-5,
    )  # fmt: skip


def test_resize_to_the_nearest_as_the_runtime_has_it() -> None:
    x = np.array([-6.174, 9.371], np.float32).reshape(1, 1, 2, 1)
    attrs = {"shape": np.array([1, 1, 3, 2], np.int32), "resized_dims": np.uint32(2)}
    attrs["interpolation_mode"] = "NEAREST_NEIGHBOR"
    wanted = np.array([-6.174] * 2 + [9.371] * 4, np.float32).reshape(1, 1, 3, 2)
    check_import("resize", {"x": x}, attrs, target="iOS17", expected=[wanted])


@pytest.mark.parametrize("shape", [(1, 2, 6, 7), (2, 6, 7)])
@pytest.mark.parametrize(("height", "width"), [([1, 2], [0, 3]), ([0, 0], [2, 0])])
def test_crop(height: list[int], width: list[int], shape: tuple[int, ...]) -> None:
    x = draw(*shape)
    wanted = x[..., height[0] : 6 - height[1], width[0] : 7 - width[1]]
    attrs = {"crop_height": height, "crop_width": width}
    check_import("crop", {"x": x}, attrs, expected=[wanted])


SQUARE = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
THIRDS = np.linspace(0, 1, 4, dtype=np.float32)
CROPS: dict[str, tuple[list[float], tuple[int, int], bool, Any]] = {
    "box": ([1, 1, 2, 2], (2, 2), False, [6, 7, 10, 11]),
    "grown": ([1, 1, 2, 2], (4, 4), False, (6 + 4 * THIRDS[:, None] + THIRDS).reshape(-1)),
    "point": ([1, 1, 2, 2], (1, 1), False, [8.5]),
    "normalized": ([0, 0, 1 / 3, 1 / 3], (2, 2), True, [1, 2, 5, 6]),
    "turned": ([2, 2, 1, 1], (2, 2), False, [11, 10, 7, 6]),
}


@pytest.mark.parametrize("target", ["iOS15", "iOS16", "iOS17"])
@pytest.mark.parametrize("name", CROPS)
def test_crop_resize_as_the_runtime_has_it(name: str, target: str) -> None:
    box, size, normalized, expected = CROPS[name]
    attrs: dict[str, Any] = {
        "target_height": size[0],
        "target_width": size[1],
        "normalized_coordinates": normalized,
        "sampling_mode": "ALIGN_CORNERS",
    }
    boxes = np.array(box, np.float32)
    wanted = np.array(expected, np.float32).reshape(1, 1, 1, *size)
    if target == "iOS17":
        attrs["boxes"], wanted = boxes.reshape(1, 4), wanted[0]
    else:
        attrs["roi"] = boxes.reshape(1, 1, 4, 1, 1)
    check_import("crop_resize", {"x": SQUARE}, attrs, target=target, expected=[wanted])


def test_crop_resize_beyond_the_image_as_the_runtime_has_it() -> None:
    boxes = np.array([[0.1, 0.3, 1.3, 1], [0.5, 1.8, 1, 0.3], [0, 0.4, 0.6, 0.7]], np.float32)
    attrs = {
        "boxes": boxes,
        "box_indices": np.zeros(3, np.int32),
        "target_height": 2,
        "target_width": 2,
        "normalized_coordinates": True,
        "sampling_mode": "ALIGN_CORNERS",
        "pad_value": np.float32(10),
    }
    expected = [3.1, 5.2, 10, 10, 10, 7.899, 10, 13.9, 2.2, 3.1, 9.4, 10.3]
    wanted = np.array(expected, np.float32).reshape(3, 1, 2, 2)
    check_import(
        "crop_resize", {"x": SQUARE}, attrs, target="iOS17", expected=[wanted], tolerance=2e-4
    )


def box_values(
    x: np.ndarray, box: list[float], size: tuple[int, int], mode: str, pad: float = 0.0
) -> np.ndarray:
    """One image read between the corners of a box in pixels, `pad` beyond the image."""
    rows, columns = (
        places(first, last, count, mode)
        for first, last, count in zip(box[:2], box[2:], size, strict=True)
    )
    found = np.full((len(x), *size), pad, np.float32)
    for (i, row), (j, column) in itertools.product(enumerate(rows), enumerate(columns)):
        if 0 <= row <= x.shape[1] - 1 and 0 <= column <= x.shape[2] - 1:
            found[:, i, j] = pixel(x, row, column)
    return found


def places(first: float, last: float, count: int, mode: str) -> list[float]:
    if mode == "OFFSET_CORNERS":
        return [first + (i + 0.5) * max(1, last - first) / count for i in range(count)]
    if count == 1:
        return [(first + last) / 2 if mode == "ALIGN_CORNERS" else first]
    return [first + i * (last - first) / (count - 1) for i in range(count)]


def pixel(x: np.ndarray, row: float, column: float) -> np.ndarray:
    top, left = int(row), int(column)
    down, right = min(top + 1, x.shape[1] - 1), min(left + 1, x.shape[2] - 1)
    above = x[:, top, left] * (left + 1 - column) + x[:, top, right] * (column - left)
    below = x[:, down, left] * (left + 1 - column) + x[:, down, right] * (column - left)
    return above * (top + 1 - row) + below * (row - top)


ORDERS = {
    "CORNERS_HEIGHT_FIRST": lambda t, l, b, r: [t, l, b, r],  # noqa: E741
    "CORNERS_WIDTH_FIRST": lambda t, l, b, r: [l, t, r, b],  # noqa: E741
    "CENTER_SIZE_HEIGHT_FIRST": lambda t, l, b, r: [(t + b) / 2, (l + r) / 2, b - t, r - l],  # noqa: E741
    "CENTER_SIZE_WIDTH_FIRST": lambda t, l, b, r: [(l + r) / 2, (t + b) / 2, r - l, b - t],  # noqa: E741
}
BOXES = [[0.5, 1.0, 3.0, 4.5], [-1.0, 0.0, 2.0, 7.0], [1.0, 2.0, 1.5, 2.5]]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [(3, 2), (1, 4)])
@pytest.mark.parametrize("mode", ["STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "OFFSET_CORNERS"])
def test_crop_resize(mode: str, size: tuple[int, int], order: str) -> None:
    x, numbers = draw(2, 3, 5, 6), [1, 0, 1]
    wanted = np.stack(
        [box_values(x[n], box, size, mode, 2.5) for n, box in zip(numbers, BOXES, strict=True)]
    )
    boxes = np.array([ORDERS[order](*box) for box in BOXES], np.float32)
    attrs = {
        "target_height": size[0],
        "target_width": size[1],
        "box_coordinate_mode": order,
        "sampling_mode": mode,
        "spatial_scale": np.float32(0.5),
        "pad_value": np.float32(2.5),
        "boxes": boxes * 2,
        "box_indices": np.array(numbers, np.int32),
    }
    check_import("crop_resize", {"x": x}, attrs, target="iOS17", expected=[wanted], tolerance=1e-5)


def test_crop_resize_of_the_image_that_a_box_names() -> None:
    """One image: of more, coremltools infers another shape than it documents."""
    x, roi = draw(1, 3, 5, 6), np.array([[0, *BOXES[0]], [0, *BOXES[2]]], np.float32)
    attrs = {"target_height": 2, "target_width": 3, "sampling_mode": "ALIGN_CORNERS"}
    wanted = np.stack([box_values(x[0], row[1:], (2, 3), "ALIGN_CORNERS")[None] for row in roi])
    roi = roi.reshape(2, 1, 5, 1, 1)
    check_import("crop_resize", {"x": x}, attrs | {"roi": roi}, expected=[wanted], tolerance=1e-5)


def test_crop_resize_of_all_images() -> None:
    x, roi = draw(2, 3, 5, 6), np.array([BOXES[0], BOXES[2]], np.float32)
    attrs = {"target_height": 2, "target_width": 3, "sampling_mode": "ALIGN_CORNERS"}
    wanted = np.stack(
        [[box_values(image, row, (2, 3), "ALIGN_CORNERS") for image in x] for row in roi]
    )
    roi = roi.reshape(2, 1, 4, 1, 1)
    check_import("crop_resize", {"x": x}, attrs | {"roi": roi}, expected=[wanted], tolerance=1e-5)


@pytest.mark.parametrize("mode", ["DEFAULT", "UNALIGN_CORNERS"])
def test_crop_resize_whose_ends_are_not_told_is_refused(mode: str) -> None:
    attrs = {"boxes": np.ones((1, 4), np.float32), "sampling_mode": mode}
    with pytest.raises(UnsupportedModelError, match=mode):
        serde.to_relay(program_of("crop_resize", {"x": SQUARE}, attrs, "iOS17"))


GRID = np.random.default_rng(3).uniform(-1.4, 1.4, (2, 3, 4, 2)).astype(np.float32)


@pytest.mark.thin(2)
@pytest.mark.parametrize("target", ["iOS15", "iOS16", "iOS17"])
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("sampling", ["bilinear", "nearest"])
@pytest.mark.parametrize("fill", ["constant", "border", "reflected"])
def test_resample(fill: str, sampling: str, align: bool, target: str) -> None:
    x = draw(2, 3, 5, 6)
    onnx = {"constant": "zeros", "border": "border", "reflected": "reflection"}[fill]
    method = {"bilinear": "linear", "nearest": "nearest"}[sampling]
    wanted = onnx_values(
        "GridSample", x, GRID, mode=method, padding_mode=onnx, align_corners=int(align)
    )
    names = {"reflected": "reflection" if align else "symmetric"}
    attrs = {
        "sampling_mode": sampling,
        "padding_mode": names.get(fill, fill),
        "padding_value": np.float32(0),
        "coordinates_mode": "normalized_minus_one_to_one",
        "align_corners": align,
    }
    tensors = {"x": x, "coordinates": GRID}
    check_import("resample", tensors, attrs, target=target, expected=[wanted], tolerance=1e-5)


PIXELS = np.array([11, 22, 33, 44], np.float32).reshape(1, 1, 2, 2)
PLACES = np.array([-1, -2, -3.7, -1, 0, 0, 3.5, 1.2], np.float32).reshape(1, 2, 2, 2)
SAMPLES: dict[str, tuple[tuple[Any, ...], list[float]]] = {
    "constant": (("bilinear", "constant", 6.17, "normalized_minus_one_to_one", True),
                 [8.585, 6.17, 27.5, 6.17]),
    "border": (("nearest", "border", -1, "unnormalized", False), [11, 11, 11, 44]),
    "reflection": (("bilinear", "reflection", -1, "normalized_zero_to_one", True),
                   [22, 36.3, 11, 34.1]),
    "symmetric": (("nearest", "symmetric", -1, "normalized_zero_to_one", False),
                  [22, 33, 11, 33]),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_resample_as_the_runtime_has_it(name: str) -> None:
    (sampling, fill, value, coordinates, align), expected = SAMPLES[name]
    attrs = {
        "sampling_mode": sampling,
        "padding_mode": fill,
        "padding_value": np.float32(value),
        "coordinates_mode": coordinates,
        "align_corners": align,
    }
    wanted = np.array(expected, np.float32).reshape(1, 1, 2, 2)
    tensors = {"x": PIXELS, "coordinates": PLACES}
    check_import("resample", tensors, attrs, expected=[wanted], tolerance=1e-5)


def test_resample_at_whole_numbers() -> None:
    attrs = {
        "sampling_mode": "bilinear",
        "padding_mode": "border",
        "padding_value": np.float32(0),
        "coordinates_mode": "unnormalized",
        "align_corners": True,
    }
    places = np.array([0, 0, 1, 1, 0, 1, 1, 0], np.int32).reshape(1, 2, 2, 2)
    wanted = np.array([11, 44, 33, 22], np.float32).reshape(1, 1, 2, 2)
    tensors = {"x": PIXELS, "coordinates": places}
    check_import("resample", tensors, attrs, expected=[wanted], tolerance=1e-6)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((3, 3), [10.752501, 2.5025, 0, 1.98, 0, 0, 0, 0, 0]),
        ((2, 5), [10.752501, 5.94, 2.5025, 0.44, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_affine_as_the_runtime_has_it(size: tuple[int, int], expected: list[float]) -> None:
    attrs = {
        "output_height": size[0],
        "output_width": size[1],
        "sampling_mode": "bilinear",
        "padding_mode": "constant",
        "padding_value": np.float32(0),
        "coordinates_mode": "normalized_minus_one_to_one",
        "align_corners": True,
    }
    matrix = np.array([[-1, -2, -3.7, -1, 3.5, 1.2]], np.float32)
    wanted = np.array(expected, np.float32).reshape(1, 1, *size)
    tensors = {"x": PIXELS, "transform_matrix": matrix}
    check_import("affine", tensors, attrs, expected=[wanted], tolerance=1e-5)


def test_affine_of_one_matrix_for_all() -> None:
    attrs = {
        "output_height": 4,
        "output_width": 5,
        "sampling_mode": "bilinear",
        "padding_mode": "constant",
        "padding_value": np.float32(0),
        "coordinates_mode": "normalized_minus_one_to_one",
        "align_corners": False,
    }
    x, matrix = draw(2, 3, 5, 6), np.array([[0.5, 0.1, 0.2, -0.1, 0.7, 0]], np.float32)
    size = np.array([2, 3, 4, 5], np.int64)
    grid = onnx_values("AffineGrid", matrix.reshape(1, 2, 3).repeat(2, 0), size)
    wanted = onnx_values("GridSample", x, grid)
    tensors = {"x": x, "transform_matrix": matrix}
    check_import("affine", tensors, attrs, expected=[wanted], tolerance=1e-5)
