"""Ordering, placing and cutting in ONNX where the samples do not reach: ties, ends, symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.onnx_export import OPSETS, export, run, var

import serde.relay as relay
from serde.errors import UnsupportedModelError
from serde.relay.ir.dims import symbol

N, M = symbol("n"), symbol("m")

Array = np.ndarray


def check(found: Array, expected: Any, dtype: str) -> None:
    wanted = np.array(expected, dtype)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("ascending", "order", "dtype"),
    [
        (True, [1, 3, 0, 4, 2], "int32"),
        (False, [2, 0, 4, 1, 3], "int32"),
        (False, [2, 0, 4, 1, 3], "uint8"),
        (True, [1, 3, 0, 4, 2], "uint16"),
        (True, [1, 3, 0, 4, 2], "float16"),
    ],
)
def test_equal_elements_keep_their_order(
    ascending: bool, order: list[int], dtype: str, opset: int
) -> None:
    x, data = var("x", N, dtype=dtype), np.array([2, 1, 3, 1, 2], dtype)
    places = run(relay.argsort(x, is_ascend=ascending, dtype="int64"), [x], [data], opset)[0]
    check(places, order, "int64")
    check(run(relay.sort(x, is_ascend=ascending), [x], [data], opset)[0], data[order], dtype)


@pytest.mark.parametrize("opset", OPSETS)
def test_topk_of_all_along_a_symbolic_axis(opset: int) -> None:
    x = var("x", M, N, dtype="bool")
    data = np.array([[0, 1, 1], [1, 0, 0]], bool)
    body = relay.topk(x, k=0, axis=1, dtype="float32").astuple()
    values, places = run(body, [x], [data], opset, 2)
    check(values, [[1, 1, 0], [1, 0, 0]], "bool")
    check(places, [[1, 2, 0], [0, 1, 2]], "float32")


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("add", [1 + 2 + 4, 2, 3 + 8]),
        ("mul", [1 * 2 * 4, 2, 3 * 8]),
        ("min", [1, 2, 3]),
        ("max", [4, 2, 8]),
        ("mean", [7 / 3, 2, 11 / 2]),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int8", "int64"])
def test_updates_that_meet_accumulate(
    how: str, expected: list[float], dtype: str, opset: int
) -> None:
    x, at, by = var("x", N, dtype=dtype), var("at", M, dtype="int32"), var("by", M, dtype=dtype)
    arrays = [
        np.array([1, 2, 3], dtype),
        np.array([0, -3, -1], np.int32),
        np.array([2, 4, 8], dtype),
    ]
    body = relay.scatter_elements(x, at, by, axis=0, reduction=how)
    check(run(body, [x, at, by], arrays, opset)[0], expected, dtype)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("how", "expected"),
    [("add", [[7, 8], [0, 0]]), ("mul", [[0, 0], [0, 0]]), ("max", [[5, 4], [0, 0]])],
)
def test_rows_that_meet_accumulate(how: str, expected: list[list[int]], opset: int) -> None:
    x, at, by = var("x", N, 2), var("at", 1, M, dtype="int64"), var("by", M, 2)
    rows = np.array([[5, 3], [2, 4], [0, 1]], np.float32)
    body = relay.scatter_nd(x, at, by, mode=how)
    arrays = [np.zeros((2, 2), np.float32), np.zeros((1, 3), np.int64), rows]
    check(run(body, [x, at, by], arrays, opset)[0], expected, "float32")


@pytest.mark.parametrize("opset", OPSETS)
def test_scattered_products_overflow_as_they_do_one_by_one(opset: int) -> None:
    x, at, by = var("x", 1, dtype="uint8"), var("at", 2, dtype="int64"), var("by", 2, dtype="uint8")
    arrays = [np.array([200], np.uint8), np.zeros(2, np.int64), np.array([3, 7], np.uint8)]
    body = relay.scatter_elements(x, at, by, axis=0, reduction="mul")
    check(run(body, [x, at, by], arrays, opset)[0], [200 * 21 % 256], "uint8")


BIG = 2**40


@pytest.mark.parametrize("opset", OPSETS)
def test_sign_beyond_32_bits(opset: int) -> None:
    x = var("x", N, dtype="int64")
    found = run(relay.sign(x), [x], [np.array([BIG, -BIG, 0, 5])], opset)[0]
    check(found, [1, -1, 0, 1], "int64")


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("dtype", "data", "places", "left", "right"),
    [
        ("int8", [-100, 100, -1, 7], [1, 2, 7, 9], [56, -112, -128, 0], [-50, 25, -1, 0]),
        ("int64", [-BIG, 2**62, -1, 1], [3, 62, 63, 64], [-(2**43), 0, -(2**63), 0],
         [-(2**37), 1, -1, 0]),
        ("int64", [-BIG, BIG], [-1, -1], [0, 0], [-1, 0]),
        ("uint32", [2**32 - 1, 5], [31, 32], [2**31, 0], [1, 0]),
        ("uint64", [2**64 - 1, 2**63], [63, 64], [2**63, 0], [1, 0]),
    ],
)  # fmt: skip
def test_shifts_beyond_all_bits(
    dtype: str, data: list[int], places: list[int], left: list[int], right: list[int], opset: int
) -> None:
    x, by = var("x", N, dtype=dtype), var("by", N, dtype=dtype)
    arrays = [np.array(data, dtype), np.array(places, dtype)]
    check(run(relay.left_shift(x, by), [x, by], arrays, opset)[0], left, dtype)
    check(run(relay.right_shift(x, by), [x, by], arrays, opset)[0], right, dtype)


def test_fixed_shift_of_unsigned_is_one_node() -> None:
    x = var("x", 4, dtype="uint32")
    body = relay.right_shift(x, relay.const(3, "uint32"))
    assert [node.op_type for node in export(body, [x], 11).graph.node] == ["BitShift"]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("right", "expected"), [(False, [0, 0, 1, 3, 4, 4]), (True, [0, 1, 3, 3, 4, 5])]
)
def test_searchsorted_among_equals_and_nan(right: bool, expected: list[int], opset: int) -> None:
    row, keys = var("row", N), var("keys", M)
    arrays = [
        np.array([0, 1, 1, 2, np.nan], np.float32),
        np.array([-1, 0, 1, 1.5, np.inf, np.nan], np.float32),
    ]
    body = relay.searchsorted(row, keys, right=right, dtype="int64")
    check(run(body, [row, keys], arrays, opset)[0], expected, "int64")


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16"])
def test_unique_in_order_of_appearance(dtype: str, opset: int) -> None:
    x = var("x", N, dtype=dtype)
    body = relay.unique(x, is_sorted=False, return_counts=True).astuple()
    found = run(body, [x], [np.array([5, 2, 5, 7, 2], dtype)], opset, 5)
    check(found[0], [5, 2, 7, 0, 0], dtype)
    rest = ([0, 1, 3, 0, 0], [0, 1, 0, 2, 1], [3], [2, 2, 1, 0, 0])
    for each, expected in zip(found[1:], rest, strict=True):
        check(each, expected, "int32")


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("truth", [False, True])
def test_argwhere_of_a_scalar(truth: bool, opset: int) -> None:
    x = var("x", dtype="bool")
    assert run(relay.argwhere(x), [x], [np.array(truth)], opset)[0].shape == (int(truth), 0)


@pytest.mark.parametrize("opset", OPSETS)
def test_running_product_in_order(opset: int) -> None:
    """The third product overflows, so that the order in which they are taken shows."""
    x = var("x", N)
    found = run(relay.cumprod(x, axis=0), [x], [np.array([1e30, 1e30, 1e-30], np.float32)], opset)[
        0
    ]
    np.testing.assert_allclose(found, np.array([1e30, np.inf, np.inf], np.float32))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("exclusive", "expected"), [(False, [20, 400 % 256, 0, 0]), (True, [1, 20, 144, 0])]
)
def test_running_product_wraps(exclusive: bool, expected: list[int], opset: int) -> None:
    x = var("x", N, dtype="uint8")
    body = relay.cumprod(x, axis=0, exclusive=exclusive)
    check(run(body, [x], [np.array([20, 20, 16, 3], np.uint8)], opset)[0], expected, "uint8")


@pytest.mark.parametrize("opset", OPSETS)
def test_floats_count_without_adding_up(opset: int) -> None:
    """A Range of float32 would be a thousandth off after ten thousand steps."""
    end = var("end")
    step = np.float32(0.1)
    body = relay.arange(relay.const(0.0), end, relay.const(step, "float32"))
    found = run(body, [end], [np.array(1000, np.float32)], opset)[0]
    check(found, (np.arange(10000) * float(step)).astype(np.float32), "float32")


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "int64"])
def test_empty_range(dtype: str, opset: int) -> None:
    end = var("end", dtype=dtype)
    body = relay.arange(relay.const(3, dtype), end, relay.const(2, dtype), dtype=dtype)
    check(run(body, [end], [np.array(3, dtype)], opset)[0], [], dtype)


@pytest.mark.parametrize("opset", OPSETS)
def test_region_from_the_end_backwards(opset: int) -> None:
    x, region = var("x", N, M), var("region", 1, 2)
    bounds = (relay.Constant(np.array(each)) for each in ([-1, 0], [-100, 9], [-1, 2]))
    body = relay.strided_set(x, region, *bounds)
    found = run(
        body, [x, region], [np.zeros((2, 3), np.float32), np.array([[1, 2]], np.float32)], opset
    )
    check(found[0], [[1, 0, 2], [1, 0, 2]], "float32")


@pytest.mark.parametrize("opset", OPSETS)
def test_negative_index_in_each_axis(opset: int) -> None:
    x, rows, columns = var("x", N, M), var("r", 2, 1, dtype="int32"), var("c", 2, dtype="int64")
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[-1], [0]], np.int32),
              np.array([-3, 2])]  # fmt: skip
    body = relay.adv_index([x, rows, columns])
    check(run(body, [x, rows, columns], arrays, opset)[0], [[3, 5], [0, 2]], "float32")


@pytest.mark.parametrize("opset", OPSETS)
def test_shape_of_an_unravelled_place_is_computed(opset: int) -> None:
    x, shape = var("x", N, dtype="int32"), var("shape", 3, dtype="int64")
    found = run(
        relay.unravel_index(x, shape),
        [x, shape],
        [np.array([0, 23, 7], np.int32), np.array([2, 3, 4])],
        opset,
    )
    check(found[0], [[0, 1, 0], [0, 2, 1], [0, 3, 3]], "int32")


@pytest.mark.parametrize("opset", [11, 17])
def test_bits_of_a_float_are_refused(opset: int) -> None:
    x = var("x", 4)
    with pytest.raises(UnsupportedModelError, match="bits of float32 as int32 need version 26"):
        export(relay.reinterpret(x, "int32"), [x], opset)


@pytest.mark.parametrize("opset", OPSETS)
def test_bits_of_an_integer(opset: int) -> None:
    x = var("x", N, dtype="int16")
    body = relay.reinterpret(x, "uint16")
    check(run(body, [x], [np.array([-1, 5], np.int16)], opset)[0], [65535, 5], "uint16")


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("length", [8, N])
@pytest.mark.parametrize(("begin", "end"), [(1, 2**31 - 1), (1, 2**40), (-1, -(2**31)), (5, 1)])
def test_slice_backwards(begin: int, end: int, length: Any, opset: int) -> None:
    """ONNX Runtime takes the greatest int32 or int64 as an end for the beginning."""
    data = np.arange(8, dtype=np.float32)
    x = var("x", length)
    sliced = relay.strided_slice(x, [begin], [end], [-1])
    check(run(sliced, [x], [data], opset)[0], data[begin:end:-1], "float32")
