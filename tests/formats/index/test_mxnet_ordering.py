"""MXNet's sort, argsort and topk, and operators reached under NumPy's names, against MXNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.mxnet_invoke import agree_on, operator_graph

import serde
from serde.errors import UnsupportedModelError

Attrs = dict[str, Any]

RNG = np.random.default_rng(7)

TABLE = RNG.permutation(60).reshape(3, 4, 5).astype("float32")


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
    numpy: bool = False,
    **options: Any,
) -> None:
    agree_on(op, arrays, attrs, outputs, numpy=numpy, **options)


RETURNED = [("value", 1), ("indices", 1), ("mask", 1), ("both", 2)]


@pytest.mark.wide
@pytest.mark.parametrize(("kind", "outputs"), RETURNED)
@pytest.mark.parametrize(
    "attrs",
    [
        {"k": 2}, {"k": 2, "axis": None}, {"k": 1, "axis": 0, "is_ascend": True}, {},
        {"k": 0, "axis": 1}, {"k": -3, "axis": -2}, {"k": 4, "axis": None, "is_ascend": True},
    ],
)  # fmt: skip
def test_topk(attrs: Attrs, kind: str, outputs: int) -> None:
    check("topk", [TABLE], {**attrs, "ret_typ": kind}, outputs, returns=True)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int64", "int8", "uint8"])
@pytest.mark.parametrize(("kind", "outputs"), RETURNED)
def test_topk_of(dtype: str, kind: str, outputs: int) -> None:
    check("topk", [TABLE.astype(dtype)], {"k": 2, "ret_typ": kind}, outputs)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int64", "uint8"])
def test_topk_in(dtype: str) -> None:
    check("topk", [TABLE], {"k": 2, "ret_typ": "both", "dtype": dtype}, 2)


def test_topk_of_equals() -> None:
    check("topk", [array([1, 1, 1, 1, 2, 2])], {"k": 3, "ret_typ": "both"}, 2)


@pytest.mark.parametrize(("kind", "outputs"), RETURNED)
def test_topk_of_nothing(kind: str, outputs: int) -> None:
    check("topk", [f32(0, 3)], {"ret_typ": kind}, outputs, numpy=True)


@pytest.mark.parametrize(("kind", "outputs"), RETURNED)
def test_topk_with_open_lengths(kind: str, outputs: int) -> None:
    attrs = {"k": 2, "ret_typ": kind}
    check("topk", [TABLE], attrs, outputs, shapes={"x0": ("N", "T", 5)})


SORTED: list[tuple[np.ndarray, Attrs]] = [
    (TABLE, {}), (TABLE, {"axis": None}), (TABLE, {"axis": 0, "is_ascend": False}),
    (TABLE.astype("int32"), {"axis": None, "is_ascend": False}), (TABLE.astype("uint8"), {}),
    (TABLE.astype("int64"), {"axis": -2}), (TABLE.astype("float64"), {}),
    (array([2, 1, 2, 1, 1, 2]), {}), (array([2, 1, 2, 1, 1, 2]), {"is_ascend": False}),
]  # fmt: skip


@pytest.mark.wide
@pytest.mark.parametrize("op", ["sort", "argsort"])
@pytest.mark.parametrize(("data", "attrs"), SORTED)
def test_sort(op: str, data: np.ndarray, attrs: Attrs) -> None:
    check(op, [data], attrs, returns=True)


@pytest.mark.parametrize("op", ["_npi_sort", "_npi_argsort"])
@pytest.mark.parametrize(
    ("data", "attrs"),
    [(array(3), {"axis": None}), (f32(0, 3), {"axis": None}), (f32(3, 0), {}), (f32(0, 3), {})],
)
def test_sort_of_little(op: str, data: np.ndarray, attrs: Attrs) -> None:
    check(op, [data], attrs, numpy=True)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int64", "uint8"])
def test_argsort_in(dtype: str) -> None:
    check("argsort", [TABLE], {"dtype": dtype})


@pytest.mark.parametrize("op", ["sort", "argsort"])
def test_sort_with_open_lengths(op: str) -> None:
    check(op, [TABLE], {"axis": 1}, shapes={"x0": ("N", "T", 5)})


def test_more_than_there_are() -> None:
    with pytest.raises(UnsupportedModelError, match="more than the length"):
        serde.to_relay(operator_graph("topk", ["x"], {"k": 9}), input_shapes={"x": (2, 4)})


SCALAR, EMPTY = array(3), f32(0, 3)

UNDER_NUMPY: list[tuple[str, list[np.ndarray], Attrs]] = [
    *((op, [data], attrs) for data in (SCALAR, EMPTY, f32(2, 3)) for op, attrs in (
        ("_np_repeat", {"repeats": 2}), ("_npi_tile", {"reps": "(2,)"}),
        ("_npi_tile", {"reps": "()"}), ("_npi_tile", {"reps": "(0,2)"}),
        ("_npi_clip", {"a_min": 1, "a_max": 2}),
        ("_npi_expand_dims", {"axis": 0}), ("_npi_expand_dims", {"axis": -1}),
        ("_npx_one_hot", {"depth": 3}), ("_npx_one_hot", {"depth": 0}), ("_npx_shape_array", {}),
    )),
    ("_np_repeat", [f32(2, 3)], {"repeats": 0, "axis": 1}),
    ("_np_repeat", [EMPTY], {"repeats": 2, "axis": 0}),
    ("_np_repeat", [f32(2, 3)], {"repeats": 2, "axis": -1}),
    ("_npi_tile", [f32(2, 3)], {"reps": "(2,1,1,2)"}),
    ("_npi_clip", [f32(2, 3).astype("int32")], {"a_min": 0.5, "a_max": 2.5}),
    ("_npi_take", [f32(4, 3), array(1)], {}),
    ("_npi_take", [f32(4, 3), f32(0)], {}),
    ("_npi_take", [f32(4, 3), array([0, 9, -2])], {"mode": "clip"}),
    ("_npi_take", [f32(4, 3), array([0, 9, -2])], {"mode": "wrap"}),
    ("_npi_take", [f32(4, 3), array([0, 1.7, -0.5])], {}),
    ("_npi_take", [f32(4, 3), array([[0, 1]], "int64")], {"axis": -1}),
    ("_npi_take", [f32(0, 3), array([], "int32")], {}),
    ("_npi_gather_nd", [f32(2, 3), np.zeros((2, 0), "int32")], {}),
    ("_npx_gather_nd", [f32(2, 3), array([[0, -1], [1, -2]])], {}),
    ("_npi_swapaxes", [f32(2, 3, 0)], {"dim1": 0, "dim2": 2}),
    ("_npi_swapaxes", [f32(2, 3)], {"dim1": -1, "dim2": 0}),
    ("_npi_swapaxes", [f32(2, 3)], {"dim1": 0, "dim2": 0}),
    ("_npi_slice", [f32(0, 4)], {"begin": "(0,1)", "end": "(None,3)"}),
    ("_npx_slice", [f32(3, 4)], {"begin": "(None,3)", "end": "(None,-5)", "step": "(None,-1)"}),
    ("_npx_reshape_like", [f32(2, 3), f32(6)], {}),
    ("_npx_reshape_like", [f32(0, 3), f32(0, 5)], {}),
    ("_npx_pick", [f32(3, 4), array([0, 1, 2])], {}),
    ("_npx_topk", [TABLE], {"k": 3, "ret_typ": "mask"}),
    ("_npx_batch_flatten", [f32(2, 3, 2)], {}),
    ("_npi_maximum", [f32(2, 3), SCALAR], {}),
    ("_npi_minimum", [EMPTY, f32(1, 3)], {}),
    ("_npi_maximum_scalar", [EMPTY], {"scalar": 5.0}),
]  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.thin(3)
@pytest.mark.parametrize(("op", "arrays", "attrs"), UNDER_NUMPY)
def test_under_numpy(op: str, arrays: list[np.ndarray], attrs: Attrs) -> None:
    check(op, arrays, attrs, numpy=True)
