"""Shapes in ONNX where the samples do not reach: symbols, empty tensors, dtypes of few kernels."""

from __future__ import annotations

import numpy as np
import pytest
from support.onnx_export import OPSETS, export, run, var

import serde.relay as relay
from serde.errors import LimitError
from serde.relay.ir.dims import symbol

N, M = symbol("n"), symbol("m")

Array = np.ndarray


def check(found: Array, expected: Array) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def numbers(*shape: int, dtype: str = "float32") -> Array:
    return (np.arange(np.prod(shape)) + 1).reshape(shape).astype(dtype)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "uint32"])
@pytest.mark.parametrize("k", [-1, 0, 2])
def test_triangle_of_a_computed_diagonal(k: int, dtype: str, opset: int) -> None:
    x, place, data = (
        var("x", N, M, dtype=dtype),
        var("k", dtype="int32"),
        numbers(3, 4, dtype=dtype),
    )
    feeds = [data, np.array(k, np.int32)]
    upper = run(relay.trilu(x, place), [x, place], feeds, opset)[0]
    check(upper, np.triu(data, k))
    check(run(relay.trilu(x, place, upper=False), [x, place], feeds, opset)[0], np.tril(data, k))


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize(
    ("align", "expected"),
    [
        ("LEFT_LEFT", [[3, 1, 0], [6, 4, 2], [0, 7, 5]]),
        ("RIGHT_LEFT", [[3, 1, 0], [6, 4, 2], [0, 7, 5]]),
        ("LEFT_RIGHT", [[3, 1, 0], [7, 4, 2], [0, 8, 5]]),
    ],
)
def test_diagonals_of_a_symbolic_matrix(align: str, expected: list[list[int]], opset: int) -> None:
    lines = np.array([[[1, 2, 9], [3, 4, 5], [6, 7, 8]]], np.float32)
    if align == "RIGHT_LEFT":
        lines[0, 0] = [9, 1, 2]
    x, diagonals = var("x", 1, N, N), var("d", 1, 3, M)
    body = relay.matrix_set_diag(x, diagonals, (-1, 1), align)
    found = run(body, [x, diagonals], [np.zeros((1, 3, 3), np.float32), lines], opset)[0]
    check(found, np.array([expected], np.float32))


@pytest.mark.parametrize("opset", [11, 17])
def test_grid_of_symbolic_axes(opset: int) -> None:
    a, b, c = var("a", N), var("b", M), var("c")
    arrays = [numbers(2), numbers(3), np.array(7, np.float32)]
    body = relay.meshgrid([a, b, c], indexing="xy").astuple()
    found = run(body, [a, b, c], arrays, opset, 3)
    for each, expected in zip(found, np.meshgrid(*arrays, indexing="xy"), strict=True):
        check(each, expected)


@pytest.mark.parametrize("opset", [11, 17])
def test_windows_of_a_symbolic_axis(opset: int) -> None:
    x, data = var("x", 2, N, M), numbers(2, 5, 4)
    body = relay.sliding_window(x, 1, (3, 2), (2, 1))
    windows = np.lib.stride_tricks.sliding_window_view(data, (3, 2), axis=(1, 2))[:, ::2]
    check(run(body, [x], [data], opset)[0], windows)


@pytest.mark.parametrize("opset", [11, 17])
def test_mirror_with_the_edge(opset: int) -> None:
    x, data = var("x", N, M), numbers(3, 2)
    body = relay.nn.mirror_pad(x, ((3, 1), (0, 2)))
    check(run(body, [x], [data], opset)[0], np.pad(data, ((3, 1), (0, 2)), "symmetric"))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_dilation_of_a_symbolic_axis(rows: int, opset: int) -> None:
    x, data = var("x", N, 2), numbers(rows, 2)
    expected = np.full((max(0, rows * 3 - 2), 3), -1, np.float32)
    expected[::3, ::2] = data
    check(run(relay.nn.dilate(x, (3, 2), -1.0), [x], [data], opset)[0], expected)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(("time", "batch"), [(0, 1), (1, 0), (2, 0), (0, 2), (1, 2)])
@pytest.mark.parametrize("given", [(0, 1, 3), (-2, 2, 9)], ids=["within", "beyond"])
def test_sequences_along_any_axes(
    time: int, batch: int, opset: int, given: tuple[int, ...]
) -> None:
    """Lengths beyond the axis, which ONNX Runtime refuses, are the whole of it in Relay."""
    counts = np.array(given, np.int32)
    x, lengths, data = var("x", 3, 3, 3), var("lengths", 3, dtype="int32"), numbers(3, 3, 3)
    expected = np.moveaxis(data.copy(), (batch, time), (0, 1))
    for row, count in zip(expected, counts, strict=True):
        row[: max(count, 0)] = row[: max(count, 0)][::-1].copy()
    body = relay.reverse_sequence(x, lengths, seq_axis=time, batch_axis=batch)
    found = run(body, [x, lengths], [data, counts], opset)[0]
    check(found, np.ascontiguousarray(np.moveaxis(expected, (0, 1), (batch, time))))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("shape", [(1, 4), (3, 1), (3, 4), (1, 1)])
def test_sum_down_to_a_computed_shape(shape: tuple[int, int], opset: int) -> None:
    x, wanted, data = var("x", 2, N, M), var("shape", 2, dtype="int64"), numbers(2, 3, 4)
    axes = (0, *(i + 1 for i, length in enumerate(shape) if length == 1))
    body = relay.collapse_sum_to(x, wanted)
    found = run(body, [x, wanted], [data, np.array(shape)], opset)[0]
    check(found, data.sum(axes).reshape(shape))


@pytest.mark.parametrize("opset", [11, 17])
def test_sum_of_bytes_wraps(opset: int) -> None:
    x, like = var("x", 3, N, dtype="uint8"), var("like", N, dtype="uint8")
    data = np.array([[200], [100], [7]], np.uint8)
    found = run(relay.collapse_sum_like(x, like), [x, like], [data, data[0]], opset)[0]
    check(found, np.array([307 % 256], np.uint8))


@pytest.mark.parametrize("opset", [11, 17])
def test_blocked_layout_of_a_symbolic_axis(opset: int) -> None:
    x, data = var("x", N, 4, M, 3), numbers(2, 4, 5, 3)
    blocked = data.reshape(2, 2, 2, 5, 3).transpose(0, 1, 3, 4, 2)
    body = relay.layout_transform(x, "NCHW", "NCHW2c")
    check(run(body, [x], [data], opset)[0], blocked)
    y = var("y", N, 2, M, 3, 2)
    back = relay.layout_transform(y, "NCHW2c", "NHWC")
    check(run(back, [y], [blocked], opset)[0], data.transpose(0, 2, 3, 1))


def test_layout_without_blocks_is_a_transposition() -> None:
    x = var("x", 1, 2, 3, 4)
    graph = export(relay.layout_transform(x, "NCHW", "HWNC"), [x], 17).graph
    assert [node.op_type for node in graph.node] == ["Transpose"]


@pytest.mark.parametrize("opset", [11, 17])
def test_blocks_of_a_symbolic_batch(opset: int) -> None:
    x, data = var("x", N, 4, 3), numbers(2, 4, 3)
    blocks = relay.nn.space_to_batch_nd(x, (2,), ((1, 1),), 9.0)
    expected = np.pad(data, ((0, 0), (1, 1), (0, 0)), constant_values=9)
    expected = np.concatenate([expected[:, 0::2], expected[:, 1::2]])
    check(run(blocks, [x], [data], opset)[0], expected)
    check(run(relay.nn.batch_to_space_nd(blocks, (2,), ((1, 1),)), [x], [data], opset)[0], data)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("place", [0, 1, -1])
def test_axis_at_a_computed_place(place: int, opset: int) -> None:
    x, axis, data = var("x", N, 3), var("axis", dtype="int64"), numbers(2, 3)
    body = relay.squeeze(relay.expand_dims(x, axis, 1), relay.reshape(axis, (1,)))
    check(run(body, [x, axis], [data, np.array(place)], opset)[0], data)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_last_of_equal_extremes(name: str, opset: int) -> None:
    x = var("x", N, 4, dtype="int32")
    data = np.array([[2, 5, 5, 2], [1, 1, 1, 1]], np.int32)
    body = getattr(relay, name)(x, axis=1, select_last_index=True)
    expected = {"argmax": [2, 3], "argmin": [3, 3]}[name]
    check(run(body, [x], [data], opset)[0], np.array(expected, np.int32))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_pooling_of_integers(dtype: str, ceil_mode: bool, opset: int) -> None:
    """Means are cut towards zero; padding is no data and less than all numbers."""
    x = var("x", 1, 1, N, dtype=dtype)
    data = np.array([[[100, 27, 7, 90, 3]]]).astype(dtype)
    if dtype.startswith("int"):
        data = -data
    attrs = dict(pool_size=2, strides=2, padding=(1, 0), ceil_mode=ceil_mode)
    groups = [data[..., :1], data[..., 1:3], data[..., 3:5]]
    most = np.stack([group.max(-1) for group in groups], -1)
    check(run(relay.nn.max_pool1d(x, **attrs), [x], [data], opset)[0], most)
    mean = np.stack([np.trunc(group.astype(np.float64).mean(-1)) for group in groups], -1)
    check(run(relay.nn.avg_pool1d(x, **attrs), [x], [data], opset)[0], mean.astype(dtype))


@pytest.mark.parametrize("opset", OPSETS)
def test_rounded_up_mean_of_a_symbolic_axis(opset: int) -> None:
    """The last window reaches past the padding and is divided by its whole size."""
    x, data = var("x", 1, 1, N), numbers(1, 1, 6)
    body = relay.nn.avg_pool1d(
        x, pool_size=3, strides=2, padding=(0, 0), ceil_mode=True, count_include_pad=True
    )
    expected = np.array([[[6 / 3, 12 / 3, 11 / 3]]], np.float32)
    np.testing.assert_allclose(run(body, [x], [data], opset)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("opset", [11, 18])
def test_dilated_mean_of_what_is_inside(opset: int) -> None:
    x, data = var("x", 1, 1, N), numbers(1, 1, 4)
    body = relay.nn.avg_pool1d(x, pool_size=2, dilation=3, padding=(2, 2))
    expected = np.array([[[2, 3, (1 + 4) / 2, 2, 3]]], np.float32)
    check(run(body, [x], [data], opset)[0], expected)


def test_unused_results_leave_no_nodes() -> None:
    x = var("x", 4)
    assert [node.op_type for node in export(relay.nn.dropout(x), [x], 17).graph.node] == [
        "Identity"
    ]


def test_tables_that_fill_memory_are_refused() -> None:
    x = var("x", 1, 1, N)
    body = relay.nn.avg_pool1d(x, pool_size=10**9, dilation=2)
    with pytest.raises(LimitError, match="8,000,000,000 constants"):
        export(body, [x], 11)
    y = var("y", 1, 1, 4, 4)
    body = relay.image.resize2d(
        y, (10**9, 4), roi=(0.0, 0.0, 1.0, 1.0),
        coordinate_transformation_mode="tf_crop_and_resize",
    )  # fmt: skip
    with pytest.raises(LimitError, match="32,000,000,000 constants"):
        export(body, [y], 17)
