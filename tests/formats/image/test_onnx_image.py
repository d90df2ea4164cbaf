"""Images sampled and resized as ONNX, against its own operators where it has them, and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from support.onnx_export import OPSETS, run_exported
from support.runtime import open_session

import serde.relay as relay

MODES = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}


def node(op: str, arrays: dict[str, np.ndarray], opset: int, **attrs: Any) -> onnx.ModelProto:
    """A model of one node, whose inputs are called as those of ONNX."""
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in arrays.items()
        if name
    ]
    out = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    made = helper.make_node(op, list(arrays), ["y"], **attrs)
    graph = helper.make_graph([made], "one", inputs, [out])
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = helper.find_min_ir_version_for(opsets)
    return model


def by_grid_sample(x: np.ndarray, grid: np.ndarray, **attrs: Any) -> np.ndarray:
    """ONNX Runtime's GridSample of version 20."""
    feeds = {"X": x, "grid": np.moveaxis(grid, 1, -1)}
    session = open_session(node("GridSample", feeds, 20, **attrs).SerializeToString())
    return session.run(None, feeds)[0]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("align", [False, True], ids=["edges", "centres"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("shape", "method"),
    [
        ((2, 3, 4, 7), "bilinear"),
        ((2, 3, 4, 7), "bicubic"),
        ((1, 2, 1, 5), "bilinear"),
        ((1, 2, 1, 5), "bicubic"),
        ((2, 1, 3, 4, 5), "bilinear"),
    ],
)
def test_grid_sample_is_that_of_onnx(
    shape: tuple[int, ...], method: str, padding: str, align: bool, opset: int
) -> None:
    generator = np.random.default_rng(7)
    x = generator.normal(size=shape).astype(np.float32)
    grid = generator.uniform(-2.3, 2.3, (shape[0], len(shape) - 2, *(3, 5, 2)[: len(shape) - 2]))
    grid = grid.astype(np.float32)
    expected = by_grid_sample(
        x, grid, mode=MODES[method], padding_mode=padding, align_corners=int(align)
    )
    (found,) = run_exported(
        lambda a, b: relay.image.grid_sample(
            a, b, method, "NCHW" if len(shape) == 4 else "NCDHW", padding, align
        ),
        x, grid, opset=opset, symbolic=[(0, 2), (0, 3), (1, 2)],
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("opset", OPSETS)
def test_halves_are_rounded_away_from_zero(opset: int) -> None:
    """On 5 pixels -1 to 1 is 0 to 4, so that these columns lie at 0.5, 1.5, 2.5, 3.5, 4.5, -0.5."""
    x = np.arange(5, dtype=np.float32).reshape(1, 1, 1, 5) + 1
    columns = np.array([-0.75, -0.25, 0.25, 0.75, 1.25, -1.25], np.float32)
    grid = np.stack([columns, np.zeros_like(columns)]).reshape(1, 2, 1, 6)
    (found,) = run_exported(
        lambda a, b: relay.image.grid_sample(a, b, "nearest"), x, grid, opset=opset
    )
    assert found.reshape(-1).tolist() == [2, 3, 4, 5, 0, 0]


@pytest.mark.parametrize("opset", OPSETS)
def test_affine_grid_is_that_of_onnx(opset: int) -> None:
    matrix = np.random.default_rng(8).normal(size=(2, 2, 3)).astype(np.float32)
    feeds = {"theta": matrix, "size": np.array([2, 1, 4, 6])}
    expected = ReferenceEvaluator(node("AffineGrid", feeds, 20, align_corners=1)).run(None, feeds)
    (found,) = run_exported(
        lambda a: relay.image.affine_grid(a, (4, 6)), matrix, opset=opset, symbolic=[(0, 0)]
    )
    np.testing.assert_allclose(found, np.moveaxis(expected[0], -1, 1), rtol=1e-5, atol=1e-6)


@pytest.mark.thin(2)
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize(("shape", "size"), [((1, 2, 5), (8,)), ((1, 2, 3, 4, 5), (5, 3, 7))])
@pytest.mark.parametrize("method", ["linear", "cubic", "nearest_neighbor"])
def test_resize_is_that_of_onnx(
    method: str, shape: tuple[int, ...], size: tuple[int, ...], coordinates: str, opset: int
) -> None:
    x = np.random.default_rng(9).normal(size=shape).astype(np.float32)
    attrs: dict[str, Any] = {"mode": {"nearest_neighbor": "nearest"}.get(method, method)}
    if method == "nearest_neighbor":
        attrs["nearest_mode"] = "round_prefer_floor"
    elif method == "cubic":
        attrs["cubic_coeff_a"] = -0.5
    feeds = {"X": x, "sizes": np.array([*shape[:2], *size])}
    model = node(
        "Resize",
        {"X": x, "": x, "sizes": feeds["sizes"]},
        19,
        coordinate_transformation_mode=coordinates,
        **attrs,
    )
    model.graph.node[0].input[:] = ["X", "", "", "sizes"]
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    build = getattr(relay.image, f"resize{len(size)}d")
    (found,) = run_exported(
        lambda a: build(
            a,
            size,
            method=method,
            coordinate_transformation_mode=coordinates,
            rounding_method="round_prefer_floor",
        ),
        x,
        opset=opset,
        symbolic=[(0, 0), *((0, axis) for axis in range(2, len(shape)))],
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
def test_upsampling_rounds_lengths(symbolic: bool, opset: int) -> None:
    """Lengths 3 and 5 times 1.5 are 4.5 and 7.5; the nearest is at the floor."""
    x = np.random.default_rng(1).normal(size=(1, 1, 3, 5)).astype(np.float32)
    (found,) = run_exported(
        lambda a: relay.nn.upsampling(a, 1.5, 1.5),
        x, opset=opset, symbolic=[(0, 2), (0, 3)] if symbolic else [],
    )  # fmt: skip
    rows, columns = np.arange(5) * 3 // 5, np.arange(8) * 5 // 8
    np.testing.assert_array_equal(found, x[:, :, rows][..., columns])


def cropped(
    image: np.ndarray, box: np.ndarray, size: tuple[int, int], outside: float
) -> np.ndarray:
    """A box of an image (channels last) read between pixels, point by point."""
    out = np.full((*size, image.shape[-1]), outside)
    lengths = np.array(image.shape[:2]) - 1
    for place in np.ndindex(size):
        parts = [p / (n - 1) if n > 1 else 0.5 for p, n in zip(place, size, strict=True)]
        at = (box[:2] + np.array(parts) * (box[2:] - box[:2])) * lengths
        if (at < 0).any() or (at > lengths).any():
            continue
        top, left = np.floor(at).astype(int)
        down, right = np.minimum([top + 1, left + 1], lengths)
        y, x = at - (top, left)
        upper = image[top, left] * (1 - x) + image[top, right] * x
        lower = image[down, left] * (1 - x) + image[down, right] * x
        out[place] = upper * (1 - y) + lower * y
    return out


@pytest.mark.wide
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("size", [(4, 3), (1, 5)])
def test_boxes_are_cut_out(size: tuple[int, int], opset: int) -> None:
    generator = np.random.default_rng(2)
    images = generator.normal(size=(2, 6, 5, 3)).astype(np.float32)
    boxes = generator.uniform(-0.3, 1.3, (5, 4)).astype(np.float32)
    index = np.array([1, 0, 1, 1, 0], np.int32)
    expected = [
        cropped(images[i], box.astype(np.float64), size, 0.25)
        for i, box in zip(index, boxes, strict=True)
    ]
    (found,) = run_exported(
        lambda a, b, c: relay.image.crop_and_resize(
            a, b, c, size, "NHWC", extrapolation_value=0.25
        ),
        images, boxes, index, opset=opset, symbolic=[(0, 1), (0, 2), (1, 0)],
    )  # fmt: skip
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-4, atol=1e-5)
