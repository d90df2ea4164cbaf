"""Sparse matrices against dense arithmetic, and coordinates against values worked out by hand."""

import numpy as np
import pytest

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay.op.linalg.sparse import sparse_fill_empty_rows, sparse_reshape
from serde.relay.run.interpreter import run

DENSE = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 4], [5, 0, 0, 0]], np.float32)
DATA = np.array([1, 2, 3, 4, 5], np.float32)
INDICES = np.array([0, 2, 1, 3, 0], np.int32)
INDPTR = np.array([0, 2, 2, 4, 5], np.int32)


def test_products_and_sums_are_those_of_the_dense_matrix() -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = relay.var("x", shape=(3, 4))
    right = relay.Function([x], relay.nn.sparse_dense(x, (DATA, INDICES, INDPTR)))
    np.testing.assert_array_equal(run(right, [a]), a @ DENSE.T)
    left = relay.nn.sparse_dense(x, (DATA, INDICES, INDPTR), sparse_lhs=True)
    np.testing.assert_array_equal(run(relay.Function([x], left), [a]), DENSE @ a.T)
    y = relay.var("y", shape=(4, 4))
    total = relay.Function([y], relay.nn.sparse_add(y, (DATA, INDICES, INDPTR)))
    b = np.ones((4, 4), np.float32)
    np.testing.assert_array_equal(run(total, [b]), b + DENSE)


def test_a_transpose() -> None:
    x = relay.var("x", shape=(5,))
    parts = relay.nn.sparse_transpose((x, relay.const(INDICES), relay.const(INDPTR)))
    data, indices, indptr = run(relay.Function([x], parts.astuple()), [DATA])
    found = np.zeros((4, 4), np.float32)
    for row in range(4):
        for place in range(indptr[row], indptr[row + 1]):
            found[row, indices[place]] = data[place]
    np.testing.assert_array_equal(found, DENSE.T)


def test_blocks_are_spread_over_rows_and_columns() -> None:
    blocks = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    x = relay.var("x", shape=(1, 6))
    matrix = (blocks, np.array([2, 0], np.int32), np.array([0, 1, 2], np.int32))
    found = run(
        relay.Function([x], relay.nn.sparse_dense(x, matrix)),
        [np.array([[1, 10, 100, 1000, 1e4, 1e5]], np.float32)],
    )
    np.testing.assert_array_equal(found, [[1e5, 320000, 54, 76]])


def test_empty_rows_are_filled_where_they_belong() -> None:
    indices = np.array([[0, 1], [0, 3], [2, 0], [3, 1]], np.int64)
    found = sparse_fill_empty_rows(
        indices, np.array([7, 8, 9, 6], np.int32), np.array([5, 6], np.int64), np.int32(-1)
    )
    np.testing.assert_array_equal(found[0], [[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]])
    np.testing.assert_array_equal(found[1], [7, 8, -1, 9, 6, -1])
    np.testing.assert_array_equal(found[2], [False, True, False, False, True])


def test_coordinates_in_another_shape() -> None:
    indices = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 2, 3]], np.int64)
    found, shape = sparse_reshape(indices, np.array([2, 3, 6]), np.array([9, -1]))
    np.testing.assert_array_equal(found, [[0, 0], [0, 1], [1, 2], [4, 2], [8, 1]])
    np.testing.assert_array_equal(shape, [9, 4])


def test_what_is_no_sparse_matrix_is_refused() -> None:
    x = relay.var("x", shape=(3, 4))
    with pytest.raises(TypeInferenceError, match="sparse matrix"):
        relay.nn.sparse_dense(x, (DATA.reshape(5, 1), INDICES, INDPTR))
    with pytest.raises(TypeInferenceError, match="integer"):
        relay.nn.sparse_dense(x, (DATA, DATA, INDPTR))


def test_a_default_window_of_a_short_time_transform() -> None:
    x = relay.var("x", shape=(12,))
    signal = np.sin(np.arange(12, dtype=np.float32))
    found = run(relay.Function([x], relay.stft(x, 4)), [signal])
    want = np.stack([np.fft.rfft(signal[start : start + 4]) for start in range(9)], -1)
    np.testing.assert_allclose(found, np.stack([want.real, want.imag], -1), rtol=1e-5, atol=1e-6)
