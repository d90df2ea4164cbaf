"""Meanings of operators that samples alone do not pin down; expected values are written out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay import TensorType, Var, symbol
from serde.relay.ir.dims import Any as AnyDim
from serde.relay.ir.expr import Call
from serde.relay.ir.registry import get

INT_MIN = np.iinfo(np.int32).min


def run(name: str, *operands: Any, **attrs: Any) -> Any:
    """Run a kernel with its attributes bound as a call's are."""
    definition = get(name)
    given = [tuple(o) if isinstance(o, list) else np.asarray(o) for o in operands]
    return definition.kernel(*given, **definition.bind(attrs))


def x(*shape: Any, dtype: str = "float32") -> Var:
    return relay.var("x", shape=shape, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_erf_is_the_library_function(dtype: str) -> None:
    points = np.concatenate([np.linspace(-7, 7, 4001), np.logspace(-7, 0, 200)]).astype(dtype)
    expected = np.array([math.erf(point) for point in points.tolist()])
    found = run("erf", points)
    assert found.dtype == points.dtype
    rounding = max(float(np.finfo(dtype).eps) / 2, 1e-15)
    assert np.max(np.abs(found - expected)) <= rounding


def test_erf_of_small_numbers_keeps_their_digits() -> None:
    points = np.logspace(-300, -1, 500)
    expected = np.array([math.erf(point) for point in points])
    assert np.max(np.abs(run("erf", points) / expected - 1)) < 1e-15


def test_erf_of_special_values() -> None:
    found = run("erf", np.array([np.inf, -np.inf, np.nan, -0.0]))
    np.testing.assert_array_equal(found, [1, -1, np.nan, 0])
    assert np.signbit(found[3])


CASES: list[tuple[str, list[Any], dict[str, Any], Any]] = [
    ("round", [np.float32([-2.5, -0.5, 0.5, 1.5, 2.5])], {}, [-3, -1, 1, 2, 3]),
    ("round", [np.float32([0.49999997, 8388609.0, 8388607.5])], {}, [0, 8388609, 8388608]),
    ("divide", [[7, -7, 7, -7], [2, 2, -2, -2]], {}, [3, -3, -3, 3]),
    ("trunc_divide", [[-7.5, 7.5], [2.0, 2.0]], {}, [-3, 3]),
    ("floor_divide", [[7, -7, 7, -7], [2, 2, -2, -2]], {}, [3, -4, -4, 3]),
    ("mod", [[7, -7, 7, -7], [3, 3, -3, -3]], {}, [1, -1, 1, -1]),
    ("trunc_mod", [[7, -7, 7, -7], [3, 3, -3, -3]], {}, [1, -1, 1, -1]),
    ("floor_mod", [[7, -7, 7, -7], [3, 3, -3, -3]], {}, [1, 2, -2, -1]),
    ("power", [[2, 2, -1, 1, -1], [3, -1, -3, -5, -2]], {}, [8, 0, -1, 1, 1]),
    ("right_shift", [[-8, 8], [1, 1]], {}, [-4, 4]),
    ("logical_not", [[0, 2, -1]], {}, [1, 0, 0]),
    ("sigmoid", [[-1000.0, 0.0, 1000.0]], {}, [0, 0.5, 1]),
    ("clip", [np.int8([-100, 0, 100])], {"a_min": -6.9, "a_max": 1e9}, [-6, 0, 100]),
    ("cast", [np.float32([-1.9, 1.9])], {"dtype": "int32"}, [-1, 1]),
    ("cast", [np.float32([0, 0.5, -1])], {"dtype": "bool"}, [False, True, True]),
    ("reinterpret", [np.float32([1.0])], {"dtype": "int32"}, [0x3F800000]),
    ("fixed_point_multiply", [np.int32([3, -3, 5])], {"multiplier": 2**30, "shift": 0}, [2, -1, 3]),
    ("mean", [[1, 2, -6]], {}, -1),
    ("sum", [np.full(4096, 1, np.float16)], {}, 4096),
    ("max", [[[1, 5], [7, 2]]], {"axis": [0], "exclude": True}, [5, 7]),
    ("argmax", [[[1, 5], [5, 2]]], {}, 1),
    ("argmax", [[[1, 5], [5, 2]]], {"select_last_index": True}, 2),
    ("argmin", [[3, 1, 1]], {"select_last_index": True, "keepdims": True}, [2]),
    ("variance", [[1.0, 3.0], [2.0]], {"unbiased": True}, 2),
    ("take", [[10, 20, 30], [-1, 5]], {"mode": "clip"}, [10, 30]),
    ("take", [[10, 20, 30], [-1, 4]], {"mode": "wrap"}, [30, 20]),
    ("take", [[[1, 2], [3, 4]], [1, 0]], {"axis": 1, "batch_dims": 1}, [2, 3]),
    ("take", [[list(range(300))], np.uint8([[200, 7]])], {"axis": 1, "batch_dims": 1}, [[200, 7]]),
    ("scatter_elements", [[0] * 300, np.int8([-1]), [5]], {}, [0] * 299 + [5]),
    ("gather", [[[1, 2], [3, 4]], [[0, 0], [1, -2]]], {"axis": 1}, [[1, 1], [4, 3]]),
    ("gather_nd", [[[1, 2], [3, 4]], [[0, 1, 1], [1, 0, 1]]], {}, [2, 3, 4]),
    ("scatter_elements", [[0, 0, 0], [1, 1], [5, 7]], {"reduction": "add"}, [0, 12, 0]),
    ("scatter_elements", [[0, 0, 0], [1, -1], [5, 7]], {}, [0, 5, 7]),
    ("scatter_elements", [[4.0, 8.0], [0, 0], [1.0, 1.0]], {"reduction": "mean"}, [2, 8]),
    ("scatter_nd", [[[1, 1], [1, 1]], [[0, 0], [1, 1]], [3, 4]], {"mode": "mul"},
     [[1, 12], [1, 1]]),
    ("invert_permutation", [[2, 0, 3, 1]], {}, [1, 3, 0, 2]),
    ("unravel_index", [[7, 11], [3, 4]], {}, [[1, 2], [3, 3]]),
    ("sequence_mask", [[[1, 2], [3, 4]], [1, 2]], {"mask_value": -1.0}, [[1, 2], [-1, 4]]),
    ("sequence_mask", [[[1, 2], [3, 4]], [1, 0]], {"axis": 1}, [[1, 0], [0, 0]]),
    ("reverse_sequence", [[[1, 2, 3], [4, 5, 6]], [2, 3]], {}, [[2, 1, 3], [6, 5, 4]]),
    # As TVM's topi: a length below 2 leaves the sequence, one beyond the axis is the axis'.
    ("reverse_sequence", [[[1, 2, 3], [4, 5, 6]], [-5, 100]], {}, [[1, 2, 3], [6, 5, 4]]),
    ("reverse_sequence", [[[1, 2, 3], [4, 5, 6]], [4, -1]], {}, [[3, 2, 1], [4, 5, 6]]),
    ("argsort", [[1, 0, 1, 0]], {"is_ascend": False, "dtype": "int32"}, [0, 2, 1, 3]),
    ("topk", [[1, 9, 9, 3]], {"k": 3, "ret_type": "indices", "dtype": "int32"}, [1, 2, 3]),
    ("topk", [[INT_MIN, 0]], {"k": 0, "ret_type": "values"}, [0, INT_MIN]),
    ("searchsorted", [[1, 2, 2, 3], [2, 4]], {}, [1, 4]),
    ("searchsorted", [[1, 2, 2, 3], [2, 4]], {"right": True}, [3, 4]),
    ("cumsum", [[1, 2, 3]], {"exclusive": True}, [0, 1, 3]),
    ("cumprod", [[[1, 2], [3, 4]]], {"axis": 1}, [[1, 2], [3, 12]]),
    ("collapse_sum_like", [[[1, 2], [3, 4]], [[0], [0]]], {}, [[3], [7]]),
    ("trilu", [[[1, 2], [3, 4]], 1], {"upper": False}, [[1, 2], [3, 4]]),
    ("matrix_set_diag", [np.zeros((2, 2), int), [[0, 1], [2, 3]]], {"k1": 0, "k2": 1},
     [[2, 1], [0, 3]]),
    ("sparse_to_dense", [[0, 2], [5, 6], 1], {"output_shape": [4]}, [5, 1, 6, 1]),
    ("arange", [5, 0, -2], {"dtype": "int64"}, [5, 3, 1]),
    ("arange", [0.0, 1.0, 0.4], {"dtype": "float64"}, [0, 0.4, 0.8]),
    ("one_hot", [[0, 5], 1, 0], {"depth": 2, "axis": 0, "dtype": "int32"}, [[1, 0], [0, 0]]),
    ("strided_slice", [[0, 1, 2, 3]], {"begin": [-1], "end": [-9], "strides": [-2], "axes": None},
     [3, 1]),
    ("strided_slice", [[0, 1, 2, 3]], {"begin": [1], "end": [2], "strides": [1],
     "slice_mode": "size", "axes": [0]}, [1, 2]),
    ("strided_set", [[0, 0, 0], [7, 8], [0], [3], [2]], {}, [7, 0, 8]),
    ("layout_transform", [[[1, 2], [3, 4], [5, 6], [7, 8]]],
     {"src_layout": "CW", "dst_layout": "CW2c"}, [[[1, 3], [2, 4]], [[5, 7], [6, 8]]]),
    ("layout_transform", [[1, 2, 3]], {"src_layout": "C", "dst_layout": "C2c"}, [[1, 2], [3, 0]]),
    ("layout_transform", [[[1, 2], [3, 0]]], {"src_layout": "WC", "dst_layout": "C4cW"},
     [[[1, 3], [2, 0], [0, 0], [0, 0]]]),
    ("sliding_window", [[1, 2, 3, 4]], {"axis": 0, "window_shape": [2], "strides": [2]},
     [[1, 2], [3, 4]]),
]  # fmt: skip


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("name", "operands", "attrs", "expected"),
    [pytest.param(*given, id=f"{given[0]}-{index}") for index, given in enumerate(CASES)],
)
def test_value(name: str, operands: list[Any], attrs: dict[str, Any], expected: Any) -> None:
    arrays = [np.asarray(operand) for operand in operands]
    definition = get(name)
    found = definition.kernel(*arrays, **definition.bind(attrs))
    np.testing.assert_array_equal(found, expected)


def test_unique_in_order_of_appearance() -> None:
    fields = get("unique").kernel(np.array([3, 1, 3, 2]), sorted=False, return_counts=True)
    expected = ([3, 1, 2, 0], [0, 1, 3, 0], [0, 1, 0, 2], [3], [2, 1, 1, 0])
    for found, wanted in zip(fields, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


N, M = symbol("n"), symbol("m")

SYMBOLIC: list[tuple[Call, tuple[Any, ...]]] = [
    (relay.reshape(x(N, 3, 4), (0, -1)), (N, 12)),
    (relay.reshape(x("?", 3, 4), (0, -1)), (AnyDim(), 12)),
    (relay.reshape(x(N, 3, 4), (-1, 12)), (N, 12)),
    (relay.reshape(x(N, 8), (N, 2, -1)), (N, 2, 4)),
    (relay.reshape(x(N, 8), (-1,)), (N * 8,)),
    (relay.reverse_reshape(x(10, 5, 4), (-1, 0)), (50, 4)),
    (relay.concatenate([x(N, 2), x(M, 2)], 0), (N + M, 2)),
    (relay.strided_slice(x(N), [1], [2**31 - 1]), (N - 1,)),
    (relay.strided_slice(x(N), [0], [-1]), (N - 1,)),
    (relay.strided_slice(x(N), [0], [2**31 - 1], [2]), ((N + 1) // 2,)),
    (relay.strided_slice(x(N), [-1], [-(2**31)], [-1]), (N,)),
    (relay.strided_slice(x(N), [-1], [2**31 - 1]), (1,)),
    (relay.strided_slice(x(N), [0], [5]), (AnyDim(),)),
    (relay.broadcast_to(x(1, 4), (N, 4)), (N, 4)),
    (relay.tile(x(N, 2), (3, 1)), (N * 3, 2)),
    (relay.split(x(N, 2), [2], 0).astuple(), ((2, 2), (N - 2, 2))),
]


@pytest.mark.parametrize(
    ("call", "shape"),
    [pytest.param(*given, id=f"{given[0].op.name}-{i}") for i, given in enumerate(SYMBOLIC)],
)
def test_symbolic_shape(call: Call, shape: tuple[Any, ...]) -> None:
    type_ = call.checked_type
    found = type_.shape if isinstance(type_, TensorType) else tuple(f.shape for f in type_.fields)
    assert found == shape


REFUSED: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("add", [x(2), x(2, dtype="int32")], {}, "add: dtypes differ: float32, int32"),
    ("add", [x(2, 3), x(2)], {}, "do not broadcast"),
    ("exp", [x(2, dtype="int32")], {}, "exp: expected a floating-point tensor, found int32"),
    ("bitwise_and", [x(2), x(2)], {}, "expected tensors of integers"),
    ("reinterpret", [x(2)], {"dtype": "int8"}, "not the same width"),
    ("sum", [x(2)], {"axis": 3}, "axis 3 is outside a tensor of rank 1"),
    ("sum", [x(2)], {"axis": [0, -1]}, "twice"),
    ("all", [x(2)], {}, "expected a bool tensor"),
    ("argmax", [x(0)], {}, "no elements"),
    ("reshape", [x(2, 3)], {"newshape": [4]}, r"a tensor of shape \(2, 3\) cannot become \[4\]"),
    ("reshape", [x(2, 3)], {"newshape": [4, -1]}, "cannot become"),
    ("reshape", [x(2, 3)], {"newshape": [-1, -1]}, "only one"),
    ("reshape", [x(2)], {"newshape": [0, 0]}, "need more axes"),
    ("reshape", [x(2)], {"newshape": [-7]}, "-7 is no reshape code"),
    ("reshape", [x(6)], {"newshape": [-4, 4, -1]}, "cannot become|does not split"),
    ("transpose", [x(2, 3)], {"axes": [0]}, "do not order"),
    ("squeeze", [x(2, 3)], {"axis": [0]}, "axis 0 of length 2 cannot go"),
    ("concatenate", [[x(2, 3), x(3, 4)]], {"axis": 0}, "lengths 3 and 4 differ"),
    ("concatenate", [[]], {}, "at least one"),
    ("split", [x(5)], {"indices_or_sections": 2}, "no 2 equal parts"),
    ("split", [x(5)], {"indices_or_sections": [3, 1]}, "must ascend"),
    ("broadcast_to", [x(3)], {"shape": [2]}, "no broadcast"),
    ("zeros", [], {"shape": [2]}, "dtype must name"),
    ("take", [x(2), x(2)], {}, "expected integer indices, found float32"),
    ("gather_nd", [x(2), x("n", 2, dtype="int32")], {}, "give index_rank"),
    ("scatter_nd", [x(2), x(1, 3, dtype="int32"), x(4)], {}, "lengths 3 and 4 differ"),
    ("strided_slice", [x(2)], {"begin": [0], "end": [2], "strides": [0], "axes": None}, "stride"),
    ("topk", [x(2)], {"k": 3, "dtype": "int32"}, "more than the length 2"),
    ("layout_transform", [x(1, 3, 3)], {"src_layout": "NC2c", "dst_layout": "NC"}, "not the block"),
    ("layout_transform", [x(1, 3)], {"src_layout": "NC", "dst_layout": "NH"}, "different axes"),
    ("clip", [x(2)], {"a_min": "low", "a_max": 1.0}, "attribute a_min: expected float"),
    ("where", [x(2, dtype="bool"), x(2), x(2, dtype="int32")], {}, "dtypes differ"),
]


@pytest.mark.parametrize(
    ("name", "operands", "attrs", "message"),
    [pytest.param(*given, id=f"{given[0]}-{index}") for index, given in enumerate(REFUSED)],
)
def test_refusal(name: str, operands: list[Any], attrs: dict[str, Any], message: str) -> None:
    from serde.relay.ir.registry import call

    with pytest.raises(TypeInferenceError, match=message):
        call(name, *operands, **attrs)


NIBBLES = np.arange(-8, 8, dtype=np.int8)

OF_NIBBLES = [
    ("abs", [], {}, np.abs(NIBBLES)),
    ("sign", [], {}, np.sign(NIBBLES)),
    ("nn.relu", [], {}, np.maximum(NIBBLES, 0)),
    ("clip", [], {"a_min": -3.0, "a_max": 20.0}, np.maximum(NIBBLES, -3)),
    ("max", [], {"keepdims": True}, np.array([7], np.int8)),
    ("maximum", [NIBBLES[::-1]], {}, np.maximum(NIBBLES, NIBBLES[::-1])),
    ("bitwise_xor", [NIBBLES[::-1]], {}, np.full(16, -1, np.int8)),
    ("right_shift", [np.full(16, 1, np.int8)], {}, NIBBLES >> 1),
]


@pytest.mark.parametrize(("name", "others", "attrs", "expected"), OF_NIBBLES)
def test_integers_of_four_bits_stay_so(
    name: str, others: list[np.ndarray], attrs: dict[str, Any], expected: np.ndarray
) -> None:
    """NumPy computes most of it in int8; what leaves the range wraps, as -8 does."""
    found = run(name, *(each.astype("int4") for each in (NIBBLES, *others)), **attrs)
    assert found.dtype.name == "int4"
    np.testing.assert_array_equal(found.astype(np.int8), (expected + 8) % 16 - 8)
