"""Tensors without elements in MXNet 1.9.1, beside others: its oneDNN operators fail on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.mxnet_written import run_written

import serde.relay as relay
from serde.errors import UnsupportedModelError
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Expr, Var
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType

OTHER = np.float32([[1, 2, 3], [4, 5, 6]])


def run_beside(build: Any, *arrays: np.ndarray, shapes: Any = None) -> np.ndarray:
    """What an expression gives where the graph has a tensor with elements as well."""
    given = shapes or [array.shape for array in arrays]
    params = [
        Var(f"x{i}", TensorType(shape, array.dtype.name))
        for i, (shape, array) in enumerate(zip(given, arrays, strict=True))
    ]
    other = relay.var("other", shape=OTHER.shape)
    body = relay.Tuple([build(*params), relay.exp(other)])
    found, second = run_written([*params, other], body, [*arrays, OTHER], outputs=2)
    np.testing.assert_allclose(second, np.exp(OTHER), rtol=1e-6)
    return found


def empty(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    "build",
    [
        relay.nn.relu, relay.tanh, relay.sigmoid, lambda x: relay.add(x, x),
        lambda x: relay.nn.dense(x, relay.ones((4, 4), "float32")),
        lambda x: relay.broadcast_to(relay.expand_dims(x, 0), (2, 0, 4)),
    ],
)  # fmt: skip
def test_result_without_elements(build: Any) -> None:
    found = run_beside(build, empty(0, 4))
    assert found.size == 0
    assert found.shape[-1] == 4


@pytest.mark.parametrize(
    ("build", "shapes"),
    [
        (lambda x, w: relay.nn.dense(x, w), [(3, 0), (2, 0)]),
        (lambda x, w: relay.nn.matmul(x, w), [(3, 0), (0, 2)]),
        (lambda x, w: relay.einsum([x, w], "ij,jk->ik"), [(3, 0), (0, 2)]),
    ],
)
def test_products_over_nothing_are_zero(build: Any, shapes: Any) -> None:
    found = run_beside(build, *(empty(*shape) for shape in shapes))
    np.testing.assert_array_equal(found, np.zeros((3, 2)))


def test_determinant_of_nothing_is_one() -> None:
    found = run_beside(lambda x: call("serde.det", x), empty(2, 0, 0))
    np.testing.assert_array_equal(found, np.linalg.det(empty(2, 0, 0)))


@pytest.mark.parametrize(("begin", "end"), [(3, 1), (2, 2), (-1, -3)])
def test_slice_that_is_empty_whatever_the_length(begin: int, end: int) -> None:
    def build(x: Expr) -> Expr:
        return relay.strided_slice(x, [begin], [end], [1], axes=[0])

    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    found = run_beside(build, x, shapes=[(symbol("n"), symbol("m"))])
    assert found.shape == x[begin:end].shape


def test_operator_that_ends_the_process_is_refused() -> None:
    data = np.ones((2, 3), np.float32)
    with pytest.raises(UnsupportedModelError, match="no gather_nd of a tensor without elements"):
        run_beside(relay.gather_nd, data, np.zeros((0, 5), np.int32))
