"""Convolutions, poolings, norms, images and boxes in TVM: what Relay's kernels compute.

Samples of the registry are judged elsewhere; these are attributes, dtypes and values beyond them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

from support.relax_run import run_function, write_function
from support.relax_samples import judge

import serde.relay as relay
from serde.errors import UnsupportedModelError
from serde.relay.ir.registry import call, sample, tensor

_WIDE = pytest.mark.wide


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes"),
    [
        ("nn.conv2d", [(1, 4, 6, 5), (6, 2, 3, 3)], {"groups": 2, "padding": (0, 1, 2, 0)}),
        pytest.param("nn.conv1d", [(2, 4, 9), (6, 2, 3)], {"groups": 2, "dilation": (2,)},
                     marks=_WIDE),
        pytest.param("nn.conv3d", [(1, 2, 4, 5, 6), (3, 2, 2, 2, 2)], {"strides": (2, 1, 2)},
                     marks=_WIDE),
        pytest.param("nn.conv2d", [(1, 2, 5, 5, 2), (6, 4, 3, 3)],
                     {"data_layout": "NCHW2c", "out_layout": "NCHW3c"}, marks=_WIDE),
        pytest.param("nn.conv2d_transpose", [(1, 4, 3, 4), (4, 2, 3, 3)],
                     {"groups": 2, "strides": (2, 2), "output_padding": (1, 1), "padding": (1, 1)},
                     marks=_WIDE),
        # Dilated, cut by more than the window, and longer than a stride behind: no TVM has these.
        ("nn.conv2d_transpose", [(1, 4, 3, 4), (4, 2, 2, 3)],
         {"dilation": (2, 1), "padding": (3, 0, 2, 1), "output_padding": (2, 1)}),
        pytest.param("nn.conv1d_transpose", [(1, 2, 5), (2, 3, 2)],
                     {"strides": (2,), "padding": (2, 0), "output_padding": (3,)}, marks=_WIDE),
        pytest.param("nn.conv3d_transpose", [(1, 2, 2, 3, 2), (2, 2, 2, 2, 2)],
                     {"strides": (2, 2, 1), "groups": 2}, marks=_WIDE),
        pytest.param("nn.deformable_conv2d", [(1, 4, 6, 5), (1, 36, 4, 3), (2, 2, 3, 3)],
                     {"groups": 2, "deformable_groups": 2}, marks=_WIDE),
    ],
)  # fmt: skip
def test_convolution(
    operator: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any]
) -> None:
    judge(operator, sample(*shapes, **attributes))


@_WIDE
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint8", "int32"])
@pytest.mark.parametrize("operator", ["nn.conv2d", "nn.conv2d_transpose"])
def test_convolution_of_a_dtype(operator: str, dtype: str) -> None:
    """Half precision is summed in float32; integers wrap."""
    bounds = {"low": 0, "high": 100} if "int" in dtype else {}
    operands = [tensor(shape, dtype, **bounds) for shape in ((1, 40, 4, 4), (40, 40, 3, 3))]
    judge(operator, sample(*operands))


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        # Windows that begin behind all data, which TVM leaves out, and what they count.
        ("nn.max_pool2d", {"strides": (3, 2), "padding": (0, 0, 2, 2)}),
        ("nn.avg_pool2d", {"strides": (2, 3), "padding": (1, 0, 2, 1)}),
        ("nn.avg_pool2d", {"strides": (2, 2), "padding": (1, 1), "count_include_pad": True}),
        pytest.param("nn.avg_pool2d", {"dilation": (2, 2), "padding": (2, 2)}, marks=_WIDE),
    ],
)
@pytest.mark.parametrize(
    ("dtype", "symbolic"),
    [
        ("float32", False),
        pytest.param("float32", True, marks=_WIDE),
        pytest.param("int32", False, marks=_WIDE),
        pytest.param("uint8", True, marks=_WIDE),
        pytest.param("float16", False, marks=_WIDE),
    ],
)
def test_pooling_that_rounds_up(
    operator: str, attributes: dict[str, Any], dtype: str, symbolic: bool
) -> None:
    bounds = {"low": 0, "high": 100} if "int" in dtype else {}
    data = tensor((1, 2, 6, 7), dtype, **bounds)
    judge(operator, sample(data, pool_size=(2, 2), ceil_mode=True, **attributes), symbolic=symbolic)


@_WIDE
@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "uint8", "int16"])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling_of_adaptive_parts(kind: str, dtype: str) -> None:
    bounds = {"low": 0, "high": 100} if "int" in dtype else {}
    judge(f"nn.adaptive_{kind}_pool2d", sample(tensor((1, 2, 5, 7), dtype, **bounds),
                                               output_size=(3, 9)))  # fmt: skip


@pytest.mark.parametrize(
    "operator",
    [
        "nn.layer_norm",
        *(pytest.param(each, marks=_WIDE) for each in ("nn.instance_norm", "nn.group_norm")),
    ],
)
def test_norm_of_a_large_mean(operator: str) -> None:
    """The mean of squares less the square of the mean would leave no digit of the variance."""
    rng = np.random.default_rng(5)
    x = (rng.normal(size=(2, 4, 64)) + 3000).astype(np.float32)
    data = relay.var("x", shape=x.shape)
    vectors = [relay.var(name, shape=(4,)) for name in ("gamma", "beta")]
    attributes = {"num_groups": 4} if operator == "nn.group_norm" else {}
    axes = (1,) if operator == "nn.layer_norm" else (2,)
    function = relay.Function(
        [data, *vectors], call(operator, data, *vectors, axis=1, **attributes)
    )
    (found,) = run_function(function, x, np.ones(4, np.float32), np.zeros(4, np.float32))
    wide = x.astype(np.float64)
    expected = wide - wide.mean(axes, keepdims=True)
    expected /= np.sqrt(np.square(expected).mean(axes, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found, expected, atol=3e-3)


@_WIDE
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("nn.layer_norm", {"axis": -2}),
        ("nn.instance_norm", {"axis": 1, "scale": False}),
        ("nn.instance_norm", {"axis": -1, "center": False}),
        ("nn.group_norm", {"axis": 1, "num_groups": 3}),
        ("nn.group_norm", {"axis": 2, "num_groups": 2, "center": False}),
    ],
)
def test_norm_of_a_dtype(operator: str, attributes: dict[str, Any], dtype: str) -> None:
    length = (2, 6, 6)[attributes["axis"]]
    operands = [tensor(shape, dtype) for shape in ((2, 6, 6), (length,), (length,))]
    judge(operator, sample(*operands, **attributes))


def test_layer_norm_is_whole() -> None:
    """What nothing uses of its mean and deviation is not written."""
    x, gamma = relay.var("x", shape=(2, 3, 8)), relay.var("gamma", shape=(8,))
    body = relay.TupleGetItem(call("serde.layer_norm", x, gamma, None), 0)
    text = write_function(relay.Function([x, gamma], body)).module.script()
    assert text.count("R.nn.layer_norm(") == 1
    assert "R.rsqrt" not in text


_RESIZE = [
    ("linear", "half_pixel", "round"),
    ("cubic", "align_corners", "round"),
    ("nearest_neighbor", "half_pixel", "round_prefer_ceil"),
    ("nearest_neighbor", "half_pixel", "round_prefer_floor"),
    ("nearest_neighbor", "asymmetric", "floor"),
    ("nearest_neighbor", "align_corners", ""),
    ("cubic", "asymmetric", "round"),
    ("linear", "pytorch_half_pixel", "round"),
]


@pytest.mark.parametrize(
    ("method", "mode", "rounding"),
    [_RESIZE[2], *(pytest.param(*each, marks=_WIDE) for each in _RESIZE if each is not _RESIZE[2])],
)
@pytest.mark.parametrize("symbolic", [pytest.param(True, marks=_WIDE), False],
                         ids=["symbols", "lengths"])  # fmt: skip
def test_resized_image(method: str, mode: str, rounding: str, symbolic: bool) -> None:
    """Halves fall where the kernel has them, which TVM's places in float32 do not do."""
    given = sample((1, 2, 6, 5), size=(9, 10), method=method, rounding_method=rounding,
                   coordinate_transformation_mode=mode, cubic_exclude=1)  # fmt: skip
    judge("image.resize2d", given, symbolic=symbolic)


@_WIDE
@pytest.mark.parametrize(
    ("method", "padding_mode", "align_corners"),
    [
        ("bilinear", "reflection", False),
        ("bilinear", "border", True),
        ("nearest", "zeros", True),
        ("nearest", "reflection", True),
        ("bicubic", "zeros", False),
        ("bicubic", "border", True),
        pytest.param("bicubic", "reflection", True, marks=pytest.mark.slow),
    ],
)
def test_image_at_a_grid(method: str, padding_mode: str, align_corners: bool) -> None:
    grid = tensor((2, 2, 5, 6), low=-2.5, high=2.5)
    judge("image.grid_sample", sample((2, 3, 4, 7), grid, method=method, padding_mode=padding_mode,
                                      align_corners=align_corners))  # fmt: skip


@_WIDE
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("half_pixel", [False, True])
@pytest.mark.parametrize("ratio", [0, 2])
def test_regions(mode: str, half_pixel: bool, ratio: int) -> None:
    """The greatest weighted neighbour has no decomposition."""
    operands = (2, 3, 12, 10), tensor((3, 4), low=-2, high=11), np.array([0, 1, 1], np.int64)
    attributes = {"sample_ratio": ratio, "mode": mode, "half_pixel": half_pixel}
    judge("serde.roi_align", sample(*operands, pooled_size=(3, 2), **attributes))


def _boxes(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    corners = rng.integers(0, 12, (2, count, 2, 2)).astype(np.float32)
    return corners.reshape(2, count, 4), rng.integers(0, 5, (2, 3, count)).astype(np.float32)


@pytest.mark.parametrize("limit", [2, pytest.param(0, marks=_WIDE), pytest.param(9, marks=_WIDE)])
def test_boxes_of_equal_scores_stay_in_order(limit: int) -> None:
    corners, scores = _boxes(20)
    function = _suppression(limit, "onnx")
    expected = relay.create_executor("graph", mod=relay.IRModule.from_expr(function))
    wanted = expected.evaluate()(corners, scores)
    for found, each in zip(run_function(function, corners, scores), wanted, strict=True):
        np.testing.assert_array_equal(found, each)


def _suppression(limit: int, form: str) -> relay.Function:
    boxes, scores = relay.var("boxes", shape=(2, 20, 4)), relay.var("scores", shape=(2, 3, 20))
    return relay.Function(
        [boxes, scores],
        relay.vision.all_class_non_max_suppression(boxes, scores, limit, 0.25, 0.5, form).astuple(),
    )


@pytest.mark.sparse(2)
@_WIDE
@pytest.mark.parametrize(
    ("top_k", "limit", "force"), [(-1, 3, False), (7, -1, True), (12, 0, True)]
)
@pytest.mark.parametrize(("indices", "bottom"), [(True, False), (False, True), (False, False)])
def test_rows_of_boxes_that_stay(
    force: bool, top_k: int, limit: int, indices: bool, bottom: bool
) -> None:
    corners, scores = _boxes(20)
    classes = np.arange(40).reshape(2, 20, 1) % 3
    marks = scores[:, 0, :, None] - 1  # Some are not positive, and take no part.
    rows = np.concatenate([classes, marks, corners], 2).astype(np.float32)
    counts, places = np.array([20, 13], np.int32), np.tile(np.arange(20, dtype=np.int32), (2, 1))
    given = [relay.var("rows", shape=(2, 20, 6)), relay.var("counts", shape=(2,), dtype="int32"),
             relay.var("places", shape=(2, 20), dtype="int32")]  # fmt: skip
    result = relay.vision.non_max_suppression(
        *given, limit, 0.25, force_suppress=force, top_k=top_k, return_indices=indices,
        invalid_to_bottom=bottom,
    )  # fmt: skip
    function = relay.Function(given, result.astuple() if indices else result)
    mod = relay.IRModule.from_expr(function)
    expected = relay.create_executor("graph", mod=mod).evaluate()(rows, counts, places)
    wanted = list(expected) if indices else [expected]
    for found, each in zip(run_function(function, rows, counts, places), wanted, strict=True):
        np.testing.assert_array_equal(found, np.asarray(each))


def test_grouped_weight_of_unknown_channels_is_refused() -> None:
    """With as many groups as channels it would make several outputs of each."""
    x = relay.var("x", shape=(1, 4, 9))
    weight = relay.var("w", shape=(relay.Any(), 2, 3))
    body = relay.nn.conv1d(x, weight, groups=4, kernel_size=3)
    with pytest.raises(UnsupportedModelError, match="channels in 4 groups"):
        write_function(relay.Function([x, weight], body))


@pytest.mark.parametrize(
    ("given", "method"),
    [
        (np.array([1, 1, 2, 1.5], np.float32), "nearest"),
        pytest.param(np.array([2, 3, 7, 9]), "linear", marks=_WIDE),
        pytest.param(np.array([1, 1, 0.5, 2.5], np.float32), "cubic", marks=_WIDE),
    ],
)
def test_image_resized_to_lengths_that_are_computed(given: np.ndarray, method: str) -> None:
    data = relay.var("x", shape=(relay.Any(), 3, 4, 5))
    told = relay.var("told", shape=(4,), dtype=given.dtype.name)
    operands = [told, None] if given.dtype.kind == "f" else [None, told]
    body = call("serde.resize", data, None, *operands, method=method)
    function = relay.Function([data, told], body)
    x = np.random.default_rng(3).normal(size=(2, 3, 4, 5)).astype(np.float32)
    wanted = relay.create_executor("graph", mod=relay.IRModule.from_expr(function)).evaluate()
    (found,) = run_function(function, x, given)
    np.testing.assert_allclose(found, np.asarray(wanted(x, given)), rtol=1e-6, atol=1e-6)
