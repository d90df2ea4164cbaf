"""Operators of shapes and indices in TVM, on values that their samples do not have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

from support.relax_cases import judge_call
from support.relax_run import run_function

import serde.relay as relay

NAN, INF = np.nan, np.inf
ODD = np.array([[3, NAN, -INF, 0, -0.0, INF, 2], [NAN, -NAN, 1, -1, 0, -0.0, 5]], np.float32)
"""Numbers with ties, both zeros, infinities and what is no number."""

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) % 7
SMALL = np.array([[0, 2], [-1, 1]], np.int8)
EMPTY = np.zeros((0, 3), np.float32)


def test_sorting_puts_what_is_no_number_last_and_keeps_ties() -> None:
    x = relay.var("x", shape=(7,))
    order = relay.argsort(x, is_ascend=True, dtype="int64")
    (found,) = run_function(relay.Function([x], order), ODD[0])
    assert found.tolist() == [2, 3, 4, 6, 0, 5, 1]


@pytest.mark.wide
@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("op", ["sort", "argsort", "topk"])
def test_order(op: str, ascending: bool, dtype: str) -> None:
    attrs: dict[str, Any] = {"k": 3} if op == "topk" else {}
    judge_call(op, ODD.astype(dtype), is_ascend=ascending, dtype="int64", **attrs)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([2**63, 2**64 - 1, 0, 5, 2**63 - 1], "uint64"),
        ([2**32 - 1, 0, 2**31], "uint32"),
        ([-128, 127, 0, 5], "int8"),
        ([True, False, True], "bool"),
        ([-(2**63), 2**63 - 1, 0], "int64"),
    ],
)
def test_order_of_whole_numbers(values: list[int], dtype: str) -> None:
    judge_call("argsort", np.array(values, dtype), is_ascend=False, dtype="int32")
    judge_call("serde.unique", np.array(values * 2, dtype), sorted=False)


@pytest.mark.wide
@pytest.mark.parametrize("right", [True, False])
def test_searches_among_what_is_no_number(right: bool) -> None:
    judge_call("searchsorted", np.sort(ODD.reshape(-1)), ODD, right=right)


@pytest.mark.wide
@pytest.mark.parametrize("ordered", [True, False])
def test_distinct_elements(ordered: bool) -> None:
    judge_call("unique", ODD.reshape(-1), sorted=ordered, return_counts=True)
    judge_call("serde.unique", ODD, sorted=ordered)
    judge_call("unique", EMPTY[:, 0], sorted=ordered, return_counts=True)


@pytest.mark.wide
@pytest.mark.parametrize("how", ["add", "mul", "min", "max", "mean"])
def test_scattering_of_what_is_no_number(how: str) -> None:
    places = np.array([[0, 1, 1], [2, 2, -4]], np.int8)
    updates = np.array([[NAN, 4, 5], [6, NAN, NAN]], np.float32)
    judge_call("scatter_elements", ODD, places, updates, axis=1, reduction=how)
    if how != "mean":
        rows = np.array([[0, 1, 1], [2, 2, 3]], np.uint8)
        judge_call("scatter_nd", ODD, rows, updates[0], mode=how)


@pytest.mark.wide
@pytest.mark.parametrize("how", ["update", "add", "mul", "min", "max"])
def test_scattering_of_truth_values(how: str) -> None:
    data, updates = np.array([[True, False, True]]), np.array([[True, True, False, False]])
    places = np.array([[0, 1, 1, 2]])
    judge_call("scatter_elements", data, places, updates, axis=1, reduction=how)


@pytest.mark.parametrize(
    ("dtype", "mode", "places"),
    [
        ("int8", "clip", [-7, 9, 127]),
        pytest.param("int8", "wrap", [-7, 9, 127], marks=pytest.mark.wide),
        pytest.param("uint8", "wrap", [250, 255, 0], marks=pytest.mark.wide),
        pytest.param("uint64", "clip", [2**40, 3, 0], marks=pytest.mark.wide),
    ],
)
def test_narrow_indices_reach_the_end_of_long_axes(
    dtype: str, mode: str, places: list[int]
) -> None:
    data = np.arange(600, dtype=np.float32).reshape(300, 2)
    judge_call("take", data, np.array(places, dtype), axis=0, mode=mode)


_CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("gather", (X, np.array([[[-4, 3]] * 3] * 2, np.int8)), {"axis": -1}),
    ("serde.gather_nd", (X, np.array([[-2, 1], [1, -3]], np.int8)), {}),
    ("strided_slice", (X,), {"begin": [-1, 0, 3], "end": [-9, 3, 0], "strides": [-1, 2, -2],
                             "axes": None}),
    ("dyn.strided_slice", (X, np.array([-1, 0, 3]), np.array([-9, 3, 0]), np.array([-1, 2, -2])),
     {"axes": None}),
    ("strided_set", (X[0], X[1, :2, :2], np.array([2, -1]), np.array([-9, -9]),
                     np.array([-2, -2])), {}),
    ("nn.pad", (X, np.float32(1)), {"pad_width": ((0, 0), (-1, 2), (2, -1))}),
    ("dyn.nn.pad", (X, np.array([[0, 0], [1, 2], [2, 1]]), np.float32(1)),
     {"pad_mode": "reflect"}),
    ("dyn.squeeze", (X.reshape(1, 6, 1, 4), np.array([-2, 0])), {}),
    ("dyn.expand_dims", (X, np.array([-2])), {"num_newaxis": 2}),
    ("dyn.reshape", (X, np.array([0, -1, 2])), {}),
    ("dyn.topk", (X, np.array(0, np.int32)), {"axis": 1, "dtype": "float32"}),
    ("layout_transform", (X.reshape(2, 6, 2, 1),),
     {"src_layout": "NCHW", "dst_layout": "NHWC4c"}),
    ("cumsum", (X.astype("float16"),), {"axis": 1, "exclusive": True}),
    ("collapse_sum_like", (X, X[0, :, :1]), {}),
    ("arange", (np.float32(1), np.float32(-2), np.float32(-0.3)), {"dtype": "float32"}),
    ("split", (X,), {"indices_or_sections": [0, 1, 1, 3], "axis": -1}),
    ("tile", (X,), {"reps": [0, 1, 1]}),
    ("reverse_sequence", (X, np.array([1, 3], np.int32)), {}),
    ("serde.col2im", (np.arange(108, dtype=np.float32).reshape(2, 6, 9),),
     {"image_shape": (4, 5), "block_shape": (2, 3)}),
]  # fmt: skip


@pytest.mark.wide
@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize(("op", "operands", "attrs"), _CALLS, ids=[each[0] for each in _CALLS])
def test_calls(op: str, operands: tuple[Any, ...], attrs: dict[str, Any], symbolic: bool) -> None:
    counted = ("dyn.", "strided_set", "serde.gather_nd", "layout", "serde.col2im")
    if symbolic and op.startswith(counted):
        pytest.skip("a number of lengths cannot be a symbol")
    judge_call(op, *operands, symbolic=symbolic, **attrs)


_EMPTY: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("reshape", (EMPTY,), {"newshape": [3, 0], "allowzero": True}),
    ("transpose", (EMPTY,), {"axes": None}),
    ("concatenate", ([EMPTY, X[0, :2, :3]],), {}),
    ("split", (EMPTY,), {"indices_or_sections": 2}),
    ("cumsum", (EMPTY,), {"axis": 0}),
    ("argwhere", (EMPTY,), {}),
    ("serde.nonzero", (EMPTY.T,), {}),
    ("sort", (EMPTY,), {"axis": 0}),
    ("scatter_nd", (X[0], np.zeros((1, 0), np.int64), np.zeros((0, 4), np.float32)), {}),
    ("ones", (), {"shape": [2, 0], "dtype": "float32"}),
    ("serde.compress", (X[0], np.zeros(3, bool)), {"axis": 0}),
    ("searchsorted", (EMPTY[:, 0], X), {}),
]


@pytest.mark.parametrize(
    ("op", "operands", "attrs"),
    [
        pytest.param(*each, id=each[0], marks=[pytest.mark.wide] if place else [])
        for place, each in enumerate(_EMPTY)
    ],
)
def test_empty_tensors(op: str, operands: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    judge_call(op, *operands, **attrs)
