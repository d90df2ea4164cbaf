"""MIL's indices, slices and orders in Relay, against what coremltools itself infers."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from support.mil import check_import


def draw(*shape: int, name: str = "x") -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(f"{name}{shape}".encode()))
    return (rng.permutation(int(np.prod(shape))).reshape(shape) + 1).astype(np.float32)


def ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def check(op: str, tensors: dict[str, Any], attrs: dict[str, Any], target: str = "iOS15") -> None:
    """Compare an operator with coremltools, or with NumPy where that infers nothing."""
    check_import(op, tensors, attrs, target=target)


X = draw(3, 4, 5)
ALL = ("iOS15", "iOS16", "iOS17")

CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "gather": ("gather", {"x": X, "indices": ints(2, 0)}, {}),
    "gather_axis": ("gather", {"x": X, "indices": ints([2, 0], [1, 1])}, {"axis": 1}),
    "gather_last": ("gather", {"x": X}, {"axis": -1, "indices": ints(4, 0, 4)}),
    "gather_along_axis": (
        "gather_along_axis",
        {"x": draw(3, 4), "indices": ints([0, 3], [1, 1], [2, 0])},
        {"axis": 1},
    ),
    "gather_along_first": (
        "gather_along_axis",
        {"x": draw(3, 4), "indices": ints([0, 2, 1, 1])},
        {"axis": 0},
    ),
    "gather_nd": ("gather_nd", {"x": X, "indices": ints([0, 1], [2, 3])}, {}),
    "gather_nd_one": ("gather_nd", {"x": X, "indices": ints([[2], [0]], [[1], [1]])}, {}),
    "gather_nd_whole": ("gather_nd", {"x": X, "indices": ints([0, 1, 2])}, {}),
    "slice_by_size": ("slice_by_size", {"x": X}, {"begin": ints(1, 0, 2), "size": ints(2, 3, -1)}),
    "slice_by_size_behind": (
        "slice_by_size",
        {"x": X},
        {"begin": ints(-2, 0, 0), "size": ints(2, 4, 1)},
    ),
    "slice_by_size_computed": (
        "slice_by_size",
        {"x": X, "begin": ints(1, 0, 2), "size": ints(2, 3, 2)},
        {},
    ),
    "slice": ("slice_by_index", {"x": X}, {"begin": ints(1, 0, 2), "end": ints(3, 2, 5)}),
    "slice_negative": (
        "slice_by_index",
        {"x": X},
        {"begin": ints(-2, 0, 0), "end": ints(3, -1, -3)},
    ),
    "slice_steps": (
        "slice_by_index",
        {"x": X},
        {"begin": ints(0, 3, 4), "end": ints(3, 0, 1), "stride": ints(2, -1, -2)},
    ),
    "slice_masks": (
        "slice_by_index",
        {"x": X},
        {
            "begin": ints(1, 2, 0),
            "end": ints(0, 0, 3),
            "begin_mask": [False, True, False],
            "end_mask": [True, True, False],
        },
    ),
    "slice_masks_backwards": (
        "slice_by_index",
        {"x": X},
        {
            "begin": ints(0, 0, 3),
            "end": ints(0, 0, 0),
            "stride": ints(-1, 2, -1),
            "begin_mask": [True, True, False],
            "end_mask": [True, True, True],
        },
    ),
    "slice_squeezed": (
        "slice_by_index",
        {"x": X},
        {"begin": ints(1, 0, -1), "end": ints(0, 3, 0), "squeeze_mask": [True, False, True]},
    ),
    "slice_computed": (
        "slice_by_index",
        {"x": X, "begin": ints(1, 0, 2), "end": ints(3, 2, 5)},
        {"stride": ints(1, 1, 2)},
    ),
    "slice_computed_masks": (
        "slice_by_index",
        {"x": X, "begin": ints(1, 1, 2), "end": ints(3, 2, 1)},
        {"begin_mask": [False, True, False], "end_mask": [False, False, True]},
    ),
    "slice_computed_squeezed": (
        "slice_by_index",
        {"x": X, "begin": ints(1, 1, -1), "end": ints(3, 2, 1)},
        {"squeeze_mask": [False, False, True]},
    ),
    "topk": ("topk", {"x": X}, {"k": 2}),
    "topk_axis": ("topk", {"x": X}, {"k": 3, "axis": 1, "ascending": True}),
    "topk_one": ("topk", {"x": X}, {}),
}


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("name", CASES)
def test_operator(name: str, target: str) -> None:
    op, tensors, attrs = CASES[name]
    check(op, tensors, attrs, target)


@pytest.mark.parametrize("target", ["iOS15", "iOS16"])
@pytest.mark.parametrize("op", ["gather", "gather_along_axis"])
def test_negative_index_before_ios17(op: str, target: str) -> None:
    indices = ints([-1, 0, 1, -3]) if op == "gather_along_axis" else ints(-1, 0, -3)
    check(op, {"x": draw(3, 4), "indices": indices}, {"axis": 0}, target)


@pytest.mark.parametrize("target", ["iOS16", "iOS17"])
@pytest.mark.parametrize(
    ("batch_dims", "axis", "indices"),
    [(1, 1, ints([0, 3], [1, 1], [2, 0])), (1, 2, ints([0], [4], [2])), (1, 1, ints(3, 1, 0))],
)
def test_gather_of_batches(batch_dims: int, axis: int, indices: np.ndarray, target: str) -> None:
    attrs = {"axis": axis, "batch_dims": batch_dims}
    x = draw(3, 4, 5)
    wanted = np.stack([np.take(a, i, axis - 1) for a, i in zip(x, indices, strict=True)])
    check_import("gather", {"x": x, "indices": indices}, attrs, target=target, expected=[wanted])


@pytest.mark.parametrize("target", ["iOS16", "iOS17"])
def test_gather_nd_of_batches(target: str) -> None:
    tensors = {"x": X, "indices": ints([[0], [3]], [[1], [1]], [[2], [0]])}
    check("gather_nd", tensors, {"batch_dims": 1}, target)


def test_validated_indices() -> None:
    check("gather", {"x": X, "indices": ints(2, 0)}, {"validate_indices": True}, "iOS17")


MODES = ("update", "add", "sub", "mul", "div", "max", "min")


@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("mode", MODES)
def test_scatter(mode: str, target: str) -> None:
    tensors = {"data": X, "indices": ints(2, 0), "updates": draw(3, 2, 5, name="u")}
    check("scatter", tensors, {"axis": 1, "mode": mode}, target)


@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("mode", MODES)
def test_scatter_along_axis(mode: str, target: str) -> None:
    indices = ints([0, 2, 1, 1])
    tensors = {"data": draw(3, 4), "indices": indices, "updates": draw(1, 4, name="u")}
    check("scatter_along_axis", tensors, {"axis": 0, "mode": mode}, target)


@pytest.mark.parametrize("target", ["iOS15", "iOS17"])
@pytest.mark.parametrize("mode", MODES)
def test_scatter_nd(mode: str, target: str) -> None:
    indices = ints([0, 1], [2, 3])
    tensors = {"data": X, "indices": indices, "updates": draw(2, 5, name="u")}
    check("scatter_nd", tensors, {"mode": mode}, target)


def test_scatter_adds_by_default() -> None:
    tensors = {"data": X, "indices": ints(1, 1), "updates": draw(2, 4, 5, name="u")}
    check("scatter", tensors, {})


@pytest.mark.parametrize("attrs", [{}, {"axis": 0}, {"axis": 1, "ascending": True}])
def test_argsort(attrs: dict[str, Any]) -> None:
    check("argsort", {"x": X}, attrs)


@pytest.mark.parametrize("target", ["iOS16", "iOS17"])
def test_topk_without_indices(target: str) -> None:
    attrs = {"k": 2, "axis": 0, "sort": False, "return_indices": False}
    check("topk", {"x": X}, attrs, target)


def test_topk_of_narrow_indices() -> None:
    check("topk", {"x": X}, {"k": 2, "output_indices_dtype": "uint16"}, "iOS17")


@pytest.mark.parametrize("x", [ints([0, 3], [-1, 0]), np.array([[1.5, 0], [0, -0.0]], np.float32)])
def test_non_zero(x: np.ndarray) -> None:
    check("non_zero", {"x": x}, {})


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis: int) -> None:
    attrs = {
        "one_hot_vector_size": 4,
        "axis": axis,
        "on_value": np.float32(2),
        "off_value": np.float32(-1),
    }
    check("one_hot", {"indices": ints([0, 3, 2], [1, 1, 0])}, attrs)


SLICES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 2, 3), {"begin": ints(1, 0, 2), "end": ints(3, 2, 5)}),
    "steps": ((2, 3, 2), {"begin": ints(0, 3, 4), "end": ints(3, 0, 1), "stride": ints(2, -1, -2)}),
    "masks": (
        (2, 4, 3),
        {
            "begin": ints(1, 2, 0),
            "end": ints(0, 0, 3),
            "begin_mask": [False, True, False],
            "end_mask": [True, True, False],
        },
    ),
    "squeezed": (
        (3,),
        {"begin": ints(1, 0, -1), "end": ints(0, 3, 0), "squeeze_mask": [True, False, True]},
    ),
}


@pytest.mark.parametrize("name", SLICES)
def test_slice_update(name: str) -> None:
    shape, attrs = SLICES[name]
    check("slice_update", {"x": X, "update": draw(*shape, name="u")}, attrs, "iOS18")
