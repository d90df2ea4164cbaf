"""MXNet's operators that pick, mask, insert, write and count by index, against MXNet itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.mxnet_invoke import agree_on, operator_graph

import serde
from serde.errors import UnsupportedModelError

Attrs = dict[str, Any]

IN_PLACE = ("_npi_boolean_mask_assign_scalar", "_npi_boolean_mask_assign_tensor", "_scatter_set_nd")
AT_ONCE = (
    "fill_element_0index", "_npx_nonzero", "_npi_nonzero", "_npi_unique",
    "_npi_boolean_mask", "_contrib_boolean_mask", "_npi_delete", "_npi_insert_scalar",
    "_npi_insert_slice", "_npi_insert_tensor", "_npi_bincount",
)  # fmt: skip


def f32(*shape: int) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype="float32").reshape(shape)


def array(values: Any, dtype: str = "float32") -> np.ndarray:
    return np.array(values, dtype)


def check(
    op: str,
    arrays: Sequence[np.ndarray],
    attrs: Attrs,
    outputs: int = 1,
    *,
    numpy: bool = True,
    **options: Any,
) -> None:
    alone, writes = op in AT_ONCE, op in IN_PLACE
    agree_on(op, arrays, attrs, outputs, numpy=numpy, at_once=alone, in_place=writes, **options)


INDEX_DTYPES = ("float32", "int32", "int64", "uint8")


@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize("dtype", INDEX_DTYPES)
def test_pick_outside(mode: str, dtype: str) -> None:
    places = array([0, 9, -2]).astype("int32").astype(dtype)
    check("pick", [f32(3, 4), places], {"mode": mode}, numpy=False)


PICKED: list[tuple[np.ndarray, np.ndarray, Attrs]] = [
    (f32(3, 4), array([0, 1, 2, 2]), {"axis": 0}),
    (f32(3, 4), array([0, 1, 2, 2]), {"axis": 0, "keepdims": True}),
    (f32(3, 4), array([[0, 1, 2, 2]]), {"axis": 0}),
    (f32(3, 4), array([[1.7], [-0.5], [2]]), {"axis": 1}),
    (f32(3, 4), array([[1], [0], [2]]), {"axis": -1, "keepdims": True}),
    (f32(3), array([1]), {"axis": 0}),
    (f32(2, 3, 4), f32(2, 3) % 4, {}),
    (f32(2, 3, 4), f32(2, 4) % 3, {"axis": 1}),
    (f32(2, 3, 4), f32(2, 1, 4) % 3, {"axis": 1, "keepdims": True}),
    (f32(2, 3, 4), f32(3, 4) % 2, {"axis": -3, "mode": "wrap"}),
    (f32(2, 3, 4).astype("float16"), f32(2, 3) % 4, {}),
    (f32(2, 3, 4).astype("int64"), f32(2, 3) % 4, {}),
]


@pytest.mark.wide
@pytest.mark.thin(2)
@pytest.mark.parametrize(("data", "index", "attrs"), PICKED)
def test_pick(data: np.ndarray, index: np.ndarray, attrs: Attrs) -> None:
    check("pick", [data, index], attrs, numpy=False, returns=True)


def test_pick_of_a_vector_by_a_scalar() -> None:
    check("pick", [f32(3), array(1)], {"axis": 0})


@pytest.mark.parametrize("axis", [0, 1])
def test_pick_with_open_lengths(axis: int) -> None:
    shapes = {"x0": ("N", "C"), "x1": ("C" if axis == 0 else "N",)}
    index = array([7, 1, 2, 0][: 4 - axis])
    check("pick", [f32(3, 4), index], {"axis": axis}, numpy=False, shapes=shapes)


@pytest.mark.parametrize(
    ("data", "index"),
    [
        (f32(3, 4), array([0, 9, -2], "int32")), (f32(3, 4), array([[0, 1, 2]], "int32")),
        (f32(6, 2), array([[0, 1, 2], [-1, 0, 1]], "int32")),
    ],
)  # fmt: skip
def test_batch_take(data: np.ndarray, index: np.ndarray) -> None:
    check("batch_take", [data, index], {}, numpy=False)


@pytest.mark.parametrize("places", [[0, 1, 2], [0, 5, -2], [0, 1.7, 2.9]])
def test_fill_element(places: list[float]) -> None:
    check("fill_element_0index", [f32(3, 4), array([10, 20, 30]), array(places)], {}, numpy=False)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
@pytest.mark.parametrize("places", [[2, 0], [2, 2]])
def test_index_copy(places: list[int], dtype: str) -> None:
    arrays = [f32(3, 2), array(places, dtype), -1 - f32(2, 2)]
    check("_contrib_index_copy", arrays, {}, numpy=False)


@pytest.mark.parametrize(
    ("shape", "attrs"),
    [((2, 3), {}), ((2, 3), {"axes": "(1,)"}), ((2, 3, 2), {"axes": "(-1,0)"}), ((0, 3), {})],
)
def test_index_array(shape: tuple[int, ...], attrs: Attrs) -> None:
    check("_contrib_index_array", [f32(*shape)], attrs)


def test_index_array_of_a_scalar() -> None:
    check("_contrib_index_array", [array(3)], {})


def test_index_array_with_open_lengths() -> None:
    check("_contrib_index_array", [f32(2, 3)], {}, numpy=False, shapes={"x0": ("N", "T")})


SCATTERED: list[tuple[np.ndarray, np.ndarray]] = [
    (array([10, 20, 30]), array([[0, 2, 0], [1, 3, 1]])),
    (1 + f32(3, 4), array([[1, 2, 1]])),
    (array([10, 20, 30], "int32"), array([[0, 2, 0], [1, 3, 1]], "int64")),
    (1 + f32(2, 1), array([[[0], [2]], [[1], [0]]], "int32")),
    (array([10, 20, 30], "float16"), array([[0, 2, 1], [1, 3, 1]])),
]


@pytest.mark.parametrize(("data", "places"), SCATTERED)
def test_scatter_nd(data: np.ndarray, places: np.ndarray) -> None:
    check("scatter_nd", [data, places], {"shape": "(3,4)"}, numpy=False)


@pytest.mark.parametrize(("data", "places"), SCATTERED)
def test_scatter_set_nd(data: np.ndarray, places: np.ndarray) -> None:
    arrays = [f32(3, 4).astype(data.dtype), data, places]
    check("_scatter_set_nd", arrays, {"shape": "(3,4)"}, numpy=False)


REGIONS: list[tuple[tuple[int, ...], Attrs]] = [
    ((2, 2), {"begin": "(0,1)", "end": "(2,3)"}),
    ((2, 4), {"begin": "(0,)", "end": "(3,)", "step": "(2,)"}),
    ((3, 2), {"begin": "(None,-1)", "end": "(None,0)", "step": "(None,-2)"}),
    ((3, 4), {"begin": "(None,-1)", "end": "(None,None)", "step": "(-1,-1)"}),
    ((0, 4), {"begin": "(2,)", "end": "(2,)"}),
]


@pytest.mark.parametrize("op", ["_slice_assign", "_npi_slice_assign", "_crop_assign"])
@pytest.mark.parametrize(("shape", "attrs"), REGIONS)
def test_slice_assign(op: str, shape: tuple[int, ...], attrs: Attrs) -> None:
    check(op, [f32(3, 4), -1 - f32(*shape)], attrs)


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
@pytest.mark.parametrize(("shape", "attrs"), REGIONS)
def test_slice_assign_scalar(shape: tuple[int, ...], attrs: Attrs, dtype: str) -> None:
    check("_slice_assign_scalar", [f32(3, 4).astype(dtype)], {"scalar": 9.5, **attrs})


def test_slice_assign_scalar_with_open_lengths() -> None:
    shapes = {"x0": (3, "T")}
    attrs = {"scalar": 9.5, "begin": "(1,)", "end": "(3,)"}
    check("_slice_assign_scalar", [f32(3, 4)], attrs, numpy=False, shapes=shapes)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
@pytest.mark.parametrize(
    ("data", "shape"),
    [([[0, 1, 2], [3, 0, 1]], "(3,4)"), ([[0, 1, 5], [3, 7, 1]], "(3,4)"),
     ([[0, 1], [3, 2], [1, 1]], "(-1,4,2)"), ([[4, 2]], "(5,)")],
)  # fmt: skip
def test_ravel_multi_index(data: list[list[int]], shape: str, dtype: str) -> None:
    check("_ravel_multi_index", [array(data, dtype)], {"shape": shape}, numpy=False)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
@pytest.mark.parametrize("shape", ["(3,4)", "(-1,4)", "(2,2,4)", "(30,)"])
def test_unravel_index(shape: str, dtype: str) -> None:
    check("_unravel_index", [array([0, 5, 13, 25, -1], dtype)], {"shape": shape}, numpy=False)


MASKS = [[0, 1, 1], [0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("numpy", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("mask", MASKS)
def test_boolean_mask(mask: list[int], dtype: str, numpy: bool) -> None:
    check("_contrib_boolean_mask", [f32(3, 2), array(mask, dtype)], {}, numpy=numpy)


@pytest.mark.parametrize("data", [f32(3), f32(3, 2, 2), f32(3, 2).astype("int8")])
def test_boolean_mask_of(data: np.ndarray) -> None:
    check("_npi_boolean_mask", [data, array([0, 1, 1], "bool")], {})


def test_boolean_mask_with_open_lengths() -> None:
    shapes = {"x0": ("N", "C"), "x1": ("N",)}
    check("_npi_boolean_mask", [f32(3, 2), array([0, 1, 1])], {}, shapes=shapes)


@pytest.mark.parametrize("op", ["_npx_nonzero", "_npi_nonzero"])
@pytest.mark.parametrize(
    "data",
    [array([[0, 1], [2, 0]]), array([[0, 0], [0, 0]]), array(1), array(0), f32(0), f32(0, 2),
     array([0, 1], "bool"), array([[[0, 3]], [[4, 5]]], "int64")],
)  # fmt: skip
def test_nonzero(op: str, data: np.ndarray) -> None:
    check(op, [data], {})


FLAGS = ("return_index", "return_inverse", "return_counts")


@pytest.mark.parametrize("wanted", [(), (0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_unique_outputs(wanted: tuple[int, ...]) -> None:
    attrs = {FLAGS[place]: True for place in wanted}
    check("_npi_unique", [array([3, 1, 2, 3, 1])], attrs, 1 + len(wanted))


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int8", "uint8"])
def test_unique(axis: int | None, dtype: str) -> None:
    attrs: Attrs = dict.fromkeys(FLAGS, True)
    check("_npi_unique", [array([[3, 1], [2, 2], [3, 1]], dtype)], {**attrs, "axis": axis}, 4)


@pytest.mark.parametrize("data", [array(3), f32(1), array([2, 1, 2], "float16")])
def test_unique_of(data: np.ndarray) -> None:
    check("_npi_unique", [data], dict.fromkeys(FLAGS, True), 4)


SCALAR_MASKS: list[tuple[np.ndarray, int]] = [
    (array([[0, 1], [1, 0], [1, 1]], "bool"), 0), (array([0, 1, 1], "bool"), 0),
    (array([0, 0, 0], "bool"), 0), (array([0, 1], "bool"), 1), (array([0, 1]), 1),
    (array(True, "bool"), 0),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
@pytest.mark.parametrize(("mask", "axis"), SCALAR_MASKS)
def test_boolean_mask_assign_scalar(mask: np.ndarray, axis: int, dtype: str) -> None:
    attrs = {"value": 9.5, "start_axis": axis}
    check("_npi_boolean_mask_assign_scalar", [f32(3, 2).astype(dtype), mask], attrs)


WHOLE, ROWS = array([[0, 1], [1, 0], [1, 1]], "bool"), array([0, 1, 1], "bool")

TENSOR_MASKS: list[tuple[np.ndarray, np.ndarray, np.ndarray, int]] = [
    (f32(3, 2), WHOLE, array([7, 8, 9, 10]), 0),
    (f32(3, 2), WHOLE, array([7]), 0),
    (f32(3, 2), WHOLE, array(7), 0),
    (f32(3, 2), ROWS, array([[7, 8], [9, 10]]), 0),
    (f32(3, 2), ROWS, array([7, 8]), 0),
    (f32(3, 2), ROWS, array([[7, 8]]), 0),
    (f32(3, 2), array([0, 1, 1]), array([7, 8]), 0),
    (f32(2, 3), ROWS, array([[7, 8], [9, 10]]), 1),
    (f32(2, 3), ROWS, array([7, 8]), 1),
    (f32(2, 3), array([0, 0, 0], "bool"), np.zeros((2, 0), "float32"), 1),
    (f32(2, 3, 2), ROWS, 100 * f32(2, 2, 2), 1),
    (f32(2, 3, 2), ROWS, 100 * f32(2, 2), 1),
    (f32(2, 3, 2), WHOLE, 100 * f32(2, 4), 1),
    (f32(2, 3, 2), WHOLE, 100 * f32(2, 1), 1),
    (f32(3, 3, 2), ROWS, 100 * f32(3, 2), 0),
]


@pytest.mark.parametrize(("data", "mask", "value", "axis"), TENSOR_MASKS)
def test_boolean_mask_assign_tensor(
    data: np.ndarray, mask: np.ndarray, value: np.ndarray, axis: int
) -> None:
    check("_npi_boolean_mask_assign_tensor", [data, mask, value], {"start_axis": axis})


DELETED: list[tuple[np.ndarray, list[np.ndarray], Attrs]] = [
    (f32(5), [], {"int_ind": 1}),
    (f32(5), [], {"int_ind": -1, "axis": 0}),
    (f32(2, 4), [], {"int_ind": 1}),
    (f32(2, 4), [], {"int_ind": -2, "axis": 1}),
    (f32(2, 4), [], {"start": 1, "step": 2, "axis": -1}),
    (f32(2, 4), [], {"start": None, "stop": None, "step": -2, "axis": 1}),
    (f32(2, 4), [], {"start": 3, "stop": 0, "step": -1, "axis": 1}),
    (f32(2, 4), [], {"start": 3, "stop": 3, "step": 1, "axis": 1}),
    (f32(2, 4), [], {"start": 0, "stop": 2, "step": 1, "axis": 0}),
    (f32(2, 4), [array([0, 2], "int64")], {"axis": 1}),
    (f32(2, 4), [array([0, 0, -1], "int64")], {"axis": 1}),
    (f32(2, 4), [array([0, 9], "int64")], {"axis": 1}),
    (f32(2, 4), [array([1], "int64")], {}),
    (f32(2, 4), [array([], "int64")], {"axis": 1}),
    (f32(2, 4), [array(1, "int64")], {"axis": 1}),
    (f32(2, 4), [array([[1.0, 2.0]])], {"axis": 1}),
    (f32(2, 4), [array([0, 2], "int32")], {"axis": 1}),
    (array(1), [], {"int_ind": 0}),
]


@pytest.mark.parametrize(("data", "obj", "attrs"), DELETED)
def test_delete(data: np.ndarray, obj: list[np.ndarray], attrs: Attrs) -> None:
    check("_npi_delete", [data, *obj], attrs)


BY_INDEX: list[tuple[np.ndarray, list[np.ndarray], Attrs]] = [
    *((f32(2, 4), [array(9)], {"int_ind": i, "axis": 1}) for i in (1, -1, 0, 4)),
    (f32(2, 4), [array(9)], {"int_ind": 1}),
    (f32(2, 4), [], {"val": 9.5, "int_ind": 1}),
    (f32(4).astype("int32"), [], {"val": 9.5, "int_ind": 1, "axis": 0}),
    (f32(2, 4), [10 * f32(4)], {"int_ind": 1, "axis": 0}),
    (f32(2, 4), [10 * f32(2)], {"int_ind": 1, "axis": 1}),
    (f32(2, 4), [10 * f32(2, 2)], {"int_ind": 1, "axis": 1}),
    (f32(2, 4), [10 * f32(3, 4)], {"int_ind": 1, "axis": 0}),
    (f32(2, 4), [10 * f32(3)], {"int_ind": 1}),
    (f32(4), [10 * f32(3)], {"int_ind": -1, "axis": 0}),
    (f32(4), [10 * f32(3).astype("int32")], {"int_ind": -1, "axis": 0}),
    (f32(2, 2, 3), [10 * f32(2, 1, 3)], {"int_ind": 1, "axis": 1}),
    (f32(2, 2, 3), [10 * f32(2, 3)], {"int_ind": 1, "axis": 1}),
    (f32(2, 2, 3), [10 * f32(2, 2, 3)], {"int_ind": 0, "axis": 1}),
]


@pytest.mark.thin(2)
@pytest.mark.parametrize(("data", "values", "attrs"), BY_INDEX)
def test_insert_at_an_index(data: np.ndarray, values: list[np.ndarray], attrs: Attrs) -> None:
    check("_npi_insert_scalar", [data, *values], attrs)


BY_SLICE: list[tuple[list[np.ndarray], Attrs]] = [
    ([array(9)], {"start": 1, "stop": 3, "step": 1, "axis": 1}),
    ([], {"val": 9.5, "start": 1, "stop": 2, "step": 1}),
    ([10 * f32(2)], {"start": 1, "stop": 3, "step": 1, "axis": 1}),
    ([10 * f32(2, 2)], {"start": 1, "stop": 3, "step": 1, "axis": 1}),
    ([10 * f32(2, 1)], {"start": 1, "stop": 3, "step": 1, "axis": 1}),
    ([10 * f32(2, 4)], {"start": None, "stop": None, "step": -1, "axis": 0}),
    ([10 * f32(4)], {"start": None, "stop": None, "step": -1, "axis": 1}),
    ([10 * f32(2)], {"start": 4, "stop": 0, "step": -2, "axis": 1}),
    ([10 * f32(2, 3)], {"start": 1, "stop": 2, "step": 1, "axis": 1}),
    ([10 * f32(2)], {"start": 1, "stop": 6, "step": 3}),
]


@pytest.mark.parametrize(("values", "attrs"), BY_SLICE)
def test_insert_at_a_slice(values: list[np.ndarray], attrs: Attrs) -> None:
    check("_npi_insert_slice", [f32(2, 4), *values], attrs)


BY_TENSOR: list[tuple[np.ndarray, np.ndarray, list[int], Attrs]] = [
    (f32(2, 4), 10 * f32(2), [1, 3], {"axis": 1}),
    (f32(2, 4), 10 * f32(2, 2), [3, 1], {"axis": 1}),
    (f32(2, 4), 10 * f32(2, 2), [-1, 1], {"axis": 1}),
    (f32(2, 4), 10 * f32(2, 3), [3, 1, 1], {"axis": 1}),
    (f32(2, 4), array(7), [3, 1, 1], {"axis": 1}),
    (f32(2, 4), 10 * f32(3), [4, 0, 0], {}),
    (f32(2, 4), 10 * f32(2, 1), [4, 0, 0], {"axis": 1}),
    (f32(2, 4), 10 * f32(2, 3), [1], {"axis": 1}),
    (f32(2, 4), 10 * f32(4), [0, 2], {"axis": 0}),
    (f32(2, 2, 3), 10 * f32(2, 2, 3), [2, 0], {"axis": 1}),
    (f32(2, 2, 3), 10 * f32(2, 3), [2, 0], {"axis": 1}),
]


@pytest.mark.wide
@pytest.mark.parametrize(("data", "values", "obj", "attrs"), BY_TENSOR)
def test_insert_at_a_tensor(
    data: np.ndarray, values: np.ndarray, obj: list[int], attrs: Attrs
) -> None:
    check("_npi_insert_tensor", [data, values, array(obj, "int64")], attrs)


def test_insert_a_number_at_a_tensor() -> None:
    arrays = [f32(4).astype("int32"), array([-1], "int64")]
    check("_npi_insert_tensor", arrays, {"val": 7.5, "axis": 0})


EVEN_BINS: list[tuple[np.ndarray, int, str]] = [
    (f32(6), 3, "(0,5)"), (f32(6), 3, "(1.0,4.0)"), (f32(6).astype("float64"), 3, "(1,4)"),
    (f32(2, 3).astype("int32"), 3, "(1,4)"), (f32(6).astype("int32"), 3, "(0,5)"),
    (f32(6).astype("int64"), 5, "(0,2)"), (array([np.nan, 1, 2, -5, 9]), 2, "(0,5)"),
    (array([0.1, 0.9, 0.5, 0.3]), 2, "(0.1,0.9)"), (array(1), 3, "(0,5)"), (f32(0), 3, "(0,5)"),
    (np.random.default_rng(3).random(500, np.float32), 7, "(0.1,0.7)"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "count", "bounds"), EVEN_BINS)
def test_histogram_of_even_bins(data: np.ndarray, count: int, bounds: str) -> None:
    check("_histogram", [data], {"bin_cnt": count, "range": bounds}, 2)


GIVEN_BINS: list[tuple[np.ndarray, np.ndarray]] = [
    (f32(6), array([0, 1, 2.5, 5])), (f32(6), array([0.5, 1, 2.5, 4])), (f32(6), array([1, 4])),
    (f32(6).astype("int32"), array([0, 2, 5], "int32")),
    (array([np.nan, 1, 2, -5, 9]), array([0, 2, 5])),
]  # fmt: skip


@pytest.mark.parametrize(("data", "bins"), GIVEN_BINS)
def test_histogram_of_given_bins(data: np.ndarray, bins: np.ndarray) -> None:
    check("_npi_histogram", [data, bins], {}, 2)


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int8"])
@pytest.mark.parametrize("least", [0, 2, 6])
@pytest.mark.parametrize("data", [[0, 3, 1, 3], []])
def test_bincount(data: list[int], least: int, dtype: str) -> None:
    check("_npi_bincount", [array(data, dtype)], {"minlength": least})


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
@pytest.mark.parametrize("least", [0, 6])
def test_weighted_bincount(least: int, dtype: str) -> None:
    arrays = [array([0, 3, 1, 3], "int32"), array([1, 2, 3, 0.5], dtype)]
    check("_npi_bincount", arrays, {"minlength": least, "has_weights": True})


OPEN: list[tuple[str, list[np.ndarray], dict[str, tuple[int | str, ...]], Attrs]] = [
    ("_npi_insert_scalar", [f32(2, 4), 10 * f32(2)], {"x0": ("N", 4), "x1": ("N",)},
     {"int_ind": 1, "axis": 1}),
    ("_npi_insert_slice", [f32(2, 4), array(9)], {"x0": ("N", 4)},
     {"start": 1, "stop": 3, "step": 1, "axis": 1}),
    ("_npi_insert_tensor", [f32(2, 4), array(9), array([3, 1], "int64")], {"x0": ("N", 4)},
     {"axis": 1}),
    ("_npi_delete", [f32(2, 4)], {"x0": ("N", 4)}, {"int_ind": 1, "axis": 1}),
    ("_npi_delete", [f32(2, 4), array([3, 1], "int64")], {"x0": ("N", 4), "x1": ("K",)},
     {"axis": 1}),
    ("_npi_boolean_mask_assign_scalar", [f32(3, 2), array([0, 1, 1], "bool")],
     {"x0": ("N", "C"), "x1": ("N",)}, {"value": 2.5}),
    ("_npi_boolean_mask_assign_tensor", [f32(3, 2), ROWS, array([7, 8])],
     {"x0": ("N", 2), "x1": ("N",)}, {}),
    ("_npi_boolean_mask_assign_tensor", [f32(3, 2), WHOLE, array([7, 8, 9, 10])],
     {"x0": ("N", 2), "x1": ("N", 2)}, {}),
    ("_npx_nonzero", [array([[0, 1], [2, 0]])], {"x0": ("N", "C")}, {}),
    ("_npi_unique", [array([3, 1, 3])], {"x0": ("N",)}, {}),
    ("_npi_bincount", [array([3, 1, 3], "int32")], {"x0": ("N",)}, {"minlength": 5}),
    ("_histogram", [f32(2, 3)], {"x0": ("N", "T")}, {"bin_cnt": 2, "range": "(0,4)"}),
    ("batch_take", [f32(3, 4), array([0, 3, 1], "int32")], {"x0": ("N", "C"), "x1": ("N",)}, {}),
    ("fill_element_0index", [f32(3, 4), array([1, 2, 3]), array([0, 3, 1])],
     {"x0": ("N", 4), "x1": ("N",), "x2": ("N",)}, {}),
    ("_contrib_index_copy", [f32(3, 2), array([2, 0], "int32"), -1 - f32(2, 2)],
     {"x0": ("N", 2), "x1": ("K",), "x2": ("K", 2)}, {}),
    ("scatter_nd", [array([1, 2]), array([[0, 2], [1, 3]])], {"x0": ("K",), "x1": (2, "K")},
     {"shape": "(3,4)"}),
    ("_ravel_multi_index", [array([[0, 2], [1, 3]])], {"x0": (2, "K")}, {"shape": "(3,4)"}),
    ("_unravel_index", [array([0, 7])], {"x0": ("K",)}, {"shape": "(3,4)"}),
    ("_slice_assign", [f32(3, 4), -1 - f32(3, 2)], {"x0": ("N", 4), "x1": ("N", 2)},
     {"begin": "(None,1)", "end": "(None,3)"}),
    ("_slice_assign_scalar", [f32(3, 4)], {"x0": ("N", 4)},
     {"begin": "(None,1)", "end": "(None,3)", "scalar": 2.0}),
]  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize(("op", "arrays", "shapes", "attrs"), OPEN)
def test_open_lengths(
    op: str, arrays: list[np.ndarray], shapes: dict[str, tuple[int | str, ...]], attrs: Attrs
) -> None:
    check(op, arrays, attrs, 2 if op == "_histogram" else 1, shapes=shapes)


REFUSED: list[tuple[str, list[tuple[int, ...]], Attrs, str]] = [
    ("pick", [(3, 4), (1,)], {"axis": None}, "axis=None"),
    ("batch_take", [(2, 3, 4), (2, 3)], {}, "no matrix"),
    ("_unravel_index", [(2, 2)], {"shape": "(2,3)"}, "a vector alone"),
    ("_contrib_boolean_mask", [(3, 2), (2,)], {"axis": 1}, "axis 0 alone"),
    ("_npi_delete", [(2, 4)], {"int_ind": 5, "axis": 1}, "outside"),
    ("_npi_insert_scalar", [(2, 4), ()], {"int_ind": 5, "axis": 1}, "outside"),
    ("_npi_insert_scalar", [(2, 4)], {"int_ind": 1, "axis": 1}, "neither values nor val"),
    ("_npi_insert_tensor", [(2, 4), (2,), ()], {"axis": 1}, "past the end"),
    ("_histogram", [(6,)], {"bin_cnt": 3}, "neither bounds"),
]


@pytest.mark.parametrize(("op", "lengths", "attrs", "reason"), REFUSED)
def test_refused(op: str, lengths: list[tuple[int, ...]], attrs: Attrs, reason: str) -> None:
    shapes = {f"x{place}": shape for place, shape in enumerate(lengths)}
    dtypes = {"x2": "int64"} if len(lengths) == 3 else {}
    graph = operator_graph(op, list(shapes), attrs)
    with pytest.raises(UnsupportedModelError, match=reason):
        serde.to_relay(graph, input_shapes=shapes, input_dtypes=dtypes)
