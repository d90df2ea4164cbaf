"""Sparse matrices whose structure is an input, in the formats that compute it at run time."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde.relay as relay
from serde.core.report import Report
from serde.onnx.exporter import from_relay
from serde.relay.ir.dims import Dim, symbol
from serde.relay.ir.expr import Expr
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.transform import InferType

ort = pytest.importorskip("onnxruntime")

STORED = np.array([1, 2, 3, 4, 5, 9], np.float32)
COLUMNS = np.array([0, 2, 1, 3, 0, 3], np.int32)
STARTS = np.array([0, 2, 2, 4, 5], np.int32)
"""The last element belongs to no row."""
DENSE = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 4], [5, 0, 0, 0]], np.float32)
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def run(inputs: dict[str, np.ndarray], variables: list[relay.Var], body: Expr) -> list[np.ndarray]:
    """Run an expression that was written as ONNX."""
    mod = InferType()(IRModule({"main": relay.Function(variables, body)}))
    fields = getattr(mod["main"].body.type, "fields", [None])
    outputs = tuple(f"y{place}" for place in range(len(fields)))
    model = RelayModel(mod, {}, ModelMeta(tuple(inputs), outputs))
    proto = from_relay(model, 17, True, Report()).complete()
    onnx.checker.check_model(proto, full_check=True)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(list(outputs), inputs)
    return found


def matrix(count: Dim) -> list[relay.Var]:
    return [
        relay.var("stored", shape=(count,)),
        relay.var("columns", shape=(count,), dtype="int32"),
        relay.var("starts", shape=(5,), dtype="int32"),
    ]


@pytest.mark.parametrize("count", [6, symbol("n")])
def test_products_and_sums(count: Dim) -> None:
    x, parts = relay.var("x", shape=(3, 4)), matrix(count)
    given = {"x": X, "stored": STORED, "columns": COLUMNS, "starts": STARTS}
    (found,) = run(given, [x, *parts], relay.nn.sparse_dense(x, parts))
    np.testing.assert_array_equal(found, X @ DENSE.T)
    y = relay.var("x", shape=(4, 4))
    (found,) = run({**given, "x": DENSE}, [y, *parts], relay.nn.sparse_add(y, parts))
    np.testing.assert_array_equal(found, DENSE + DENSE)


def test_transpose() -> None:
    parts = matrix(5)
    given = {"stored": STORED[:5], "columns": COLUMNS[:5], "starts": STARTS}
    stored, rows, starts = run(given, parts, relay.nn.sparse_transpose(parts).astuple())
    found = np.zeros((4, 4), np.float32)
    for row in range(4):
        for place in range(starts[row], starts[row + 1]):
            found[row, rows[place]] = stored[place]
    np.testing.assert_array_equal(found, DENSE.T)


def test_coordinates() -> None:
    at = relay.var("at", shape=(5, 3), dtype="int64")
    old, new = (
        relay.var("old", shape=(3,), dtype="int64"),
        relay.var("new", shape=(2,), dtype="int64"),
    )
    given = {
        "at": np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 2, 3]], np.int64),
        "old": np.array([2, 3, 6], np.int64),
        "new": np.array([9, -1], np.int64),
    }
    found = run(given, [at, old, new], relay.sparse_reshape(at, old, new).astuple())
    np.testing.assert_array_equal(found[0], [[0, 0], [0, 1], [1, 2], [4, 2], [8, 1]])
    np.testing.assert_array_equal(found[1], [9, 4])
