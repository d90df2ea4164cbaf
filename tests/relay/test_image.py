"""Resizing, sampling, padding and rearranging against ONNX Runtime and MXNet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.kernels import infer, run_kernel, run_node, run_reference
from support.mxnet_operators import run_mxnet_operator

import serde.relay as relay
from serde.errors import TypeInferenceError

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
METHODS = {"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic"}


def _normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _resized(x: np.ndarray, size: tuple[int, ...], **attrs: Any) -> np.ndarray:
    sizes = np.array((*x.shape[:2], *size), np.int64)
    return run_node("Resize", x, None, None, sizes, opset=19, **attrs)


@pytest.mark.parametrize("size", [(14, 18), (10, 9), (3, 5), (7, 9), (1, 4)])
@pytest.mark.parametrize(
    "mode", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]
)
@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_resize_is_onnx(method: str, mode: str, size: tuple[int, int]) -> None:
    x = _normal(1, 2, 3, 7, 9)
    expected = _resized(
        x, size, mode=method, coordinate_transformation_mode=mode, cubic_coeff_a=-0.5
    )
    found = run_kernel(
        "image.resize2d",
        x.transpose(0, 2, 3, 1),
        size=size,
        layout="NHWC",
        method=method,
        coordinate_transformation_mode=mode,
    )
    np.testing.assert_allclose(found.transpose(0, 3, 1, 2), expected, **CLOSE)


@pytest.mark.parametrize("size", [(14, 18), (21, 3), (4, 5)])
@pytest.mark.parametrize("mode", ["half_pixel", "asymmetric"])
@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_nearest_is_onnx(rounding: str, mode: str, size: tuple[int, int]) -> None:
    x = _normal(1, 1, 2, 7, 9)
    sizes = np.array((*x.shape[:2], *size), np.int64)
    # The reference: ONNX Runtime 1.23 misses some of the halves that round_prefer_ceil meets.
    expected = run_reference(
        "Resize",
        x,
        None,
        None,
        sizes,
        opset=19,
        mode="nearest",
        coordinate_transformation_mode=mode,
        nearest_mode=rounding,
    )
    found = run_kernel(
        "image.resize2d",
        x,
        size=size,
        method="nearest_neighbor",
        coordinate_transformation_mode=mode,
        rounding_method=rounding,
    )
    np.testing.assert_array_equal(found, expected)


def test_nearest_without_rounding_goes_by_mode() -> None:
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
    attrs = {"size": (7,), "method": "nearest_neighbor", "rounding_method": ""}
    corners = run_kernel(
        "image.resize1d", x, coordinate_transformation_mode="align_corners", **attrs
    )
    np.testing.assert_array_equal(corners[0, 0], [0, 1, 1, 2, 2, 3, 3])
    other = run_kernel("image.resize1d", x, coordinate_transformation_mode="asymmetric", **attrs)
    np.testing.assert_array_equal(other[0, 0], [0, 0, 1, 1, 2, 2, 3])


@pytest.mark.parametrize("alpha", [-0.5, -0.75])
def test_cubic_may_exclude_what_is_outside(alpha: float) -> None:
    x = _normal(1, 1, 2, 6, 5)
    expected = _resized(x, (11, 3), mode="cubic", exclude_outside=1, cubic_coeff_a=alpha)
    found = run_kernel(
        "image.resize2d", x, size=(11, 3), method="cubic", cubic_exclude=1, cubic_alpha=alpha
    )
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_region_of_interest_is_onnx() -> None:
    x = _normal(1, 1, 2, 6, 5)
    roi = np.array([0, 0, 0.1, -0.3, 1, 1, 0.9, 0.8], np.float32)
    expected = run_node(
        "Resize",
        x,
        roi,
        None,
        np.array([1, 2, 4, 7], np.int64),
        opset=19,
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=2.5,
    )
    found = run_kernel(
        "image.resize2d",
        x,
        size=(4, 7),
        roi=(0.1, -0.3, 0.9, 0.8),
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=2.5,
    )
    np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("mode", ["half_pixel", "align_corners"])
def test_resize_over_other_ranks_is_onnx(rank: int, mode: str) -> None:
    x, size = _normal(1, 1, 2, *(4, 5, 6)[:rank]), (7, 3, 9)[:rank]
    expected = _resized(x, size, mode="linear", coordinate_transformation_mode=mode)
    name = f"image.resize{rank}d"
    found = run_kernel(name, x, size=size, coordinate_transformation_mode=mode)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_resized_integers_are_truncated() -> None:
    x = np.array([[[0, 255]]], np.uint8)
    found = run_kernel("image.resize1d", x, size=(4,))
    np.testing.assert_array_equal(found, np.array([[[0, 63, 191, 255]]], np.uint8))


def test_upsampling_is_mxnet() -> None:
    x = _normal(1, 1, 2, 4, 5)
    expected = run_mxnet_operator("UpSampling", x, scale=3, sample_type="nearest", num_args=1)
    found = run_kernel("nn.upsampling", x, scale_h=3.0, scale_w=3.0)
    np.testing.assert_array_equal(found, expected)


def test_bilinear_upsampling_is_mxnet() -> None:
    x = _normal(1, 1, 2, 4, 5)
    expected = run_mxnet_operator("contrib.BilinearResize2D", x, height=8, width=15)
    found = run_kernel(
        "nn.upsampling", x, scale_h=2.0, scale_w=3.0, method="bilinear", align_corners=True
    )
    np.testing.assert_allclose(found, expected, **CLOSE)


def _crops(x: np.ndarray, boxes: np.ndarray, indices: np.ndarray, size: tuple[int, int]) -> Any:
    """Each box by the resizing of ONNX Runtime with that region of interest."""
    parts = []
    for (top, left, bottom, right), index in zip(boxes, indices, strict=True):
        roi = np.array([0, 0, top, left, 1, 1, bottom, right], np.float32)
        sizes = np.array([1, x.shape[1], *size], np.int64)
        parts.append(
            run_node(
                "Resize",
                x[index : index + 1],
                roi,
                None,
                sizes,
                opset=19,
                mode="linear",
                coordinate_transformation_mode="tf_crop_and_resize",
                extrapolation_value=-1.0,
            )
        )
    return np.concatenate(parts)


def test_crop_and_resize_is_onnx() -> None:
    x = _normal(1, 2, 3, 6, 7)
    boxes = np.array([[0.1, 0.2, 0.9, 0.7], [-0.2, 0.0, 0.5, 1.3], [1, 1, 0, 0]], np.float32)
    indices = np.array([1, 0, 1], np.int32)
    found = run_kernel(
        "image.crop_and_resize", x, boxes, indices, crop_size=(4, 5), extrapolation_value=-1.0
    )
    np.testing.assert_allclose(found, _crops(x, boxes, indices, (4, 5)), **CLOSE)


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("method", "mode"), [("bilinear", "bilinear"), ("nearest", "nearest"), ("bicubic", "bicubic")]
)
def test_grid_sample_is_onnx(method: str, mode: str, padding: str, corners: bool) -> None:
    x = _normal(1, 2, 3, 6, 7)
    grid = np.random.default_rng(2).uniform(-1.6, 1.6, (2, 4, 5, 2)).astype(np.float32)
    expected = run_node(
        "GridSample", x, grid, opset=16, mode=mode, padding_mode=padding, align_corners=int(corners)
    )
    found = run_kernel(
        "image.grid_sample",
        x.transpose(0, 2, 3, 1),
        grid.transpose(0, 3, 1, 2),
        method=method,
        layout="NHWC",
        padding_mode=padding,
        align_corners=corners,
    )
    np.testing.assert_allclose(found.transpose(0, 3, 1, 2), expected, **CLOSE)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_of_volumes_is_onnx(padding: str) -> None:
    x = _normal(1, 1, 2, 4, 5, 6)
    grid = np.random.default_rng(2).uniform(-1.4, 1.4, (1, 3, 4, 5, 3)).astype(np.float32)
    expected = run_node("GridSample", x, grid, opset=20, mode="linear", padding_mode=padding)
    found = run_kernel(
        "image.grid_sample",
        x,
        np.moveaxis(grid, -1, 1),
        layout="NCDHW",
        padding_mode=padding,
        align_corners=False,
    )
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_affine_grid_is_mxnet() -> None:
    theta = _normal(1, 2, 2, 3)
    expected = run_mxnet_operator(
        "GridGenerator", theta.reshape(2, 6), transform_type="affine", target_shape=(4, 6)
    )
    found = run_kernel("image.affine_grid", theta, target_shape=(4, 6))
    np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space_is_onnx(mode: str) -> None:
    x = _normal(1, 2, 18, 3, 4)
    expected = run_node("DepthToSpace", x, blocksize=3, mode=mode)
    found = run_kernel("nn.depth_to_space", x, block_size=3, mode=mode)
    np.testing.assert_array_equal(found, expected)


def test_space_to_depth_is_onnx() -> None:
    x = _normal(1, 2, 3, 4, 6)
    expected = run_node("SpaceToDepth", x, blocksize=2)
    found = run_kernel("nn.space_to_depth", x.transpose(0, 2, 3, 1), block_size=2, layout="NHWC")
    np.testing.assert_array_equal(found.transpose(0, 3, 1, 2), expected)


def test_space_to_batch_by_index() -> None:
    x = _normal(1, 2, 5, 4, 3)
    found = run_kernel(
        "nn.space_to_batch_nd", x, block_shape=(3, 2), paddings=((1, 0), (0, 2)), pad_value=7.0
    )
    padded = np.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)), constant_values=7)
    expected = [padded[n, i::3, j::2] for i in range(3) for j in range(2) for n in range(2)]
    np.testing.assert_array_equal(found, np.stack(expected))
    back = run_kernel("nn.batch_to_space_nd", found, block_shape=(3, 2), crops=((1, 0), (0, 2)))
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pad_is_onnx(mode: str) -> None:
    x = _normal(1, 3, 4, 5)
    width = ((0, 2), (3, 1), (1, 4))
    pads = np.array([0, 3, 1, 2, 1, 4], np.int64)
    value = np.array(1.5, np.float32)
    expected = run_node("Pad", x, pads, value, mode=mode)
    found = run_kernel("nn.pad", x, value, pad_width=width, pad_mode=mode)
    np.testing.assert_array_equal(found, expected)


def test_mirror_pad_by_index() -> None:
    x = np.arange(3, dtype=np.int32)
    whole = run_kernel("nn.mirror_pad", x, pad_width=((3, 2),))
    np.testing.assert_array_equal(whole, [2, 1, 0, 0, 1, 2, 2, 1])
    inner = run_kernel("nn.mirror_pad", x, mode="REFLECT", pad_width=((2, 1),))
    np.testing.assert_array_equal(inner, [2, 1, 0, 1, 2, 1])


def test_dilate_by_index() -> None:
    x = np.arange(1, 5, dtype=np.float32).reshape(2, 2)
    found = run_kernel("nn.dilate", x, strides=(1, 3), dilation_value=9.0)
    np.testing.assert_array_equal(found, [[1, 9, 9, 2], [3, 9, 9, 4]])


def test_pad_builder_takes_a_number() -> None:
    x = relay.var("x", shape=("n", 3))
    node = relay.nn.pad(x, ((0, 0), (1, 2)), 0.5)
    assert repr(node.type) == "Tensor[(n, 6), float32]"
    assert node.args[1].data.dtype == np.float32


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "message"),
    [
        ("image.resize2d", [(1, 3, 4, 4)], {}, "expected 2 positive numbers"),
        ("image.resize2d", [(1, 3, 4)], {"size": (2, 2)}, "layout NCHW"),
        ("image.resize2d", [(1, 3, 4, 4)], {"size": (2, 2), "method": "area"}, "attribute method"),
        ("image.grid_sample", [(1, 3, 4, 4), (1, 3, 5, 5)], {}, "expected 2 coordinates"),
        ("image.affine_grid", [(1, 3, 2)], {"target_shape": (4, 4)}, "shape"),
        ("nn.depth_to_space", [(1, 6, 4, 4)], {"block_size": 2}, "does not divide by 4"),
        ("nn.space_to_depth", [(1, 6, 5, 4)], {"block_size": 2}, "height of 5"),
        ("nn.pad", [(3, 4), ()], {"pad_width": ((0, 1),)}, "expected 2 pairs"),
        ("nn.pad", [(3,), ()], {"pad_width": ((0, 3),), "pad_mode": "reflect"}, "mirrors more"),
        ("nn.mirror_pad", [(3,)], {"pad_width": ((4, 0),)}, "mirrors more"),
        ("nn.upsampling", [(1, 2, 3, 3)], {"scale_h": 0.0, "scale_w": 1.0}, "positive scale"),
        ("nn.batch_to_space_nd", [(3, 2, 2)], {"block_shape": (2,), "crops": ((0, 0),)}, "batch"),
    ],
)
def test_refusals(name: str, shapes: Any, attrs: Any, message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        infer(name, *shapes, **attrs)
