"""Norms, logarithms of sums and losses against ONNX Runtime, whole and decomposed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.kernels import infer, run_decomposed, run_kernel, run_node

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Call, Tuple
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.run.interpreter import run
from serde.relay.transform import Decompose

CLOSE = {"rtol": 1e-5, "atol": 1e-6}
X = np.random.default_rng(5).uniform(0.5, 2.0, (2, 3, 4)).astype(np.float32)

NORMS = [
    pytest.param("serde.reduce_l1", "ReduceL1", id="l1"),
    pytest.param("serde.reduce_l2", "ReduceL2", id="l2"),
    pytest.param("serde.reduce_sum_square", "ReduceSumSquare", id="sum_square"),
    pytest.param("serde.reduce_log_sum", "ReduceLogSum", id="log_sum"),
    pytest.param("serde.logsumexp", "ReduceLogSumExp", id="logsumexp"),
]


@pytest.mark.parametrize("run_one", [run_kernel, run_decomposed])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, (0,), (1,), (-1, 0)])
@pytest.mark.parametrize(("name", "op"), NORMS)
def test_norm_is_onnx(name: str, op: str, axis: Any, keepdims: bool, run_one: Any) -> None:
    axes = None if axis is None else np.array(axis, np.int64)
    expected = run_node(op, X, axes, keepdims=int(keepdims))
    found = run_one(name, X, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.parametrize("run_one", [run_kernel, run_decomposed])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("serde.reduce_l1", np.abs(X)),
        ("serde.reduce_l2", np.abs(X)),
        ("serde.reduce_sum_square", X * X),
        ("serde.reduce_log_sum", np.log(X)),
        ("serde.logsumexp", X),
    ],
)
def test_norm_over_no_axis_is_of_each_element(name: str, expected: Any, run_one: Any) -> None:
    np.testing.assert_allclose(run_one(name, X, axis=()), expected, **CLOSE)


@pytest.mark.parametrize("run_one", [run_kernel, run_decomposed])
@pytest.mark.parametrize("keepdims", [False, True])
def test_excluded_axes_stay(keepdims: bool, run_one: Any) -> None:
    expected = np.sqrt(np.square(X).sum((0, 2), keepdims=keepdims))
    found = run_one("serde.reduce_l2", X, axis=(1,), exclude=True, keepdims=keepdims)
    np.testing.assert_allclose(found, expected, **CLOSE)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("run_one", [run_kernel, run_decomposed])
def test_logsumexp_of_infinities(run_one: Any) -> None:
    inf = np.inf
    x = np.array([[-inf, -inf], [-inf, 2], [inf, 1], [900, 900]], np.float32)
    expected = np.array([-inf, 2, inf, 900 + np.log(2)], np.float32)
    np.testing.assert_allclose(run_one("serde.logsumexp", x, axis=(1,)), expected, rtol=1e-6)


def test_half_sums_are_wide() -> None:
    x = np.full((1000,), 100, np.float16)
    assert run_kernel("serde.reduce_l2", x) == np.float16(np.sqrt(1e7))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [None, 2, -1])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_is_onnx(reduction: str, ignored: int | None, weighted: bool) -> None:
    generator = np.random.default_rng(6)
    scores = generator.normal(0, 3, (4, 5, 2)).astype(np.float32)
    labels = generator.integers(0, 5, (4, 2))
    if ignored is not None:
        labels[1, 1] = ignored
    weights = generator.uniform(0.5, 2, 5).astype(np.float32) if weighted else None
    attrs = {"reduction": reduction} | ({} if ignored is None else {"ignore_index": ignored})
    expected = run_node("SoftmaxCrossEntropyLoss", scores, labels, weights, opset=13, **attrs)
    variables = [relay.var("s", shape=(4, 5, 2)), relay.var("l", shape=(4, 2), dtype="int64")]
    factors = Tuple(()) if weights is None else relay.const(weights)
    node = call("serde.softmax_cross_entropy_loss", *variables)
    node = Call(node.op, [*variables, factors], node.op.bind(attrs))
    node.type = call("serde.softmax_cross_entropy_loss", *variables, **attrs).type
    function = relay.Function(variables, node)
    for each in (function, Decompose(frozenset()).transform(function)):
        loss, likelihood = run(each, [scores, labels])
        np.testing.assert_allclose(loss, expected, **CLOSE)
        wide = scores.astype(np.float64)
        log = wide - np.log(np.exp(wide).sum(1, keepdims=True))
        np.testing.assert_allclose(likelihood, log, **CLOSE)


@pytest.mark.parametrize("name", ["serde.reduce_l2", "serde.reduce_log_sum", "serde.logsumexp"])
def test_roots_and_logarithms_refuse_integers(name: str) -> None:
    with pytest.raises(TypeInferenceError, match="floating-point"):
        infer(name, (2, 3), dtype="int32")


def test_norms_refuse_truth_values() -> None:
    with pytest.raises(TypeInferenceError, match="tensor of numbers"):
        infer("serde.reduce_l1", (2, 3), dtype="bool")


def test_cross_entropy_refuses_a_vector() -> None:
    with pytest.raises(TypeInferenceError, match="rank 2 or more"):
        call(
            "serde.softmax_cross_entropy_loss",
            relay.var("s", shape=(5,)),
            relay.var("l", shape=(), dtype="int64"),
        )


def test_cross_entropy_of_a_symbolic_number_of_classes() -> None:
    scores = np.random.default_rng(8).normal(size=(4, 5)).astype(np.float32)
    labels = np.array([0, 1, 4, 2])
    s = relay.Var("s", TensorType((4, symbol("c"))))
    variables = [s, relay.Var("l", TensorType((4,), "int64"))]
    function = relay.Function(variables, call("serde.softmax_cross_entropy_loss", *variables))
    expected = run_node("SoftmaxCrossEntropyLoss", scores, labels, opset=13)
    plain = Decompose(frozenset()).transform(function)
    np.testing.assert_allclose(run(plain, [scores, labels])[0], expected, **CLOSE)


def test_place_of_an_extreme_in_each_of_no_rows() -> None:
    x = relay.var("x", shape=(0, 3))
    result = run(relay.Function([x], relay.argmax(x, axis=1)), [np.zeros((0, 3), np.float32)])
    assert isinstance(result, np.ndarray)
    assert (result.shape, result.dtype) == ((0,), np.int32)
