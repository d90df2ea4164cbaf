"""Which fragments of NNEF functions of elements, layers, products and norms become."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.errors import UnsupportedModelError
from serde.relay.ir.expr import Expr, Function, TupleGetItem, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import call
from serde.relay.ir.visit import free_vars
from serde.relay.run.interpreter import run

nnef = pytest.importorskip("nnef", reason="the package nnef is not installed")

from support.nnef_written import compare, write  # noqa: E402


def x(*shape: int, dtype: str = "float32") -> Expr:
    return relay.var("x", shape=shape or (2, 3, 4, 5), dtype=dtype)


def y(*shape: int, dtype: str = "float32") -> Expr:
    return relay.var("y", shape=shape, dtype=dtype)


def weight(*shape: int, name: str = "w", dtype: str = "float32") -> Expr:
    return relay.var(name, shape=shape, dtype=dtype)


def number(value: float, dtype: str = "float32") -> Expr:
    return relay.const(value, dtype)


def draw(variable: Var) -> np.ndarray:
    """A value of a variable; all are positive, since some are variances."""
    type_ = variable.checked_type
    seed = sum(map(ord, variable.name_hint))
    return np.random.default_rng(seed).uniform(0.1, 2, type_.concrete_shape).astype(type_.dtype)


def model_of(*results: Expr) -> RelayModel:
    """A model of expressions; variables whose names start with ``w`` are weights."""
    body = results[0] if len(results) == 1 else relay.Tuple(list(results))
    free = free_vars(body)
    params = {
        each.name_hint: ArrayWeight(draw(each)) for each in free if each.name_hint.startswith("w")
    }
    inputs = tuple(each.name_hint for each in free if each.name_hint not in params)
    outputs = tuple(f"out{place}" for place in range(len(results)))
    return RelayModel(IRModule.from_expr(Function(free, body)), params, ModelMeta(inputs, outputs))


def norm(*shape: int, **attrs: Any) -> Expr:
    axis = attrs.get("axis", 1)
    vectors = [weight(shape[axis], name=f"w{place}") for place in range(4)]
    return TupleGetItem(call("nn.batch_norm", x(*shape), *vectors, **attrs), 0)


def softmax(data: Expr, other: Expr, axes: tuple[int, ...]) -> Expr:
    power = relay.exp(relay.subtract(data, relay.max(other, axis=axes, keepdims=True)))
    return relay.divide(power, relay.sum(power, axis=axes, keepdims=True))


def unit(data: Expr, terms: Expr) -> Expr:
    length = relay.add(relay.sum(terms, axis=(1,), keepdims=True), number(0.25))
    return relay.divide(data, relay.maximum(length, number(0.5)))


def cases() -> Iterator[Any]:
    """What is written as which fragments."""
    mul, add, sub = relay.multiply, relay.add, relay.subtract
    data = x()
    mean = relay.mean(data, axis=(2, 3), keepdims=True)
    spread = relay.variance(data, axis=(2, 3), keepdims=True, with_mean=mean)
    half = mul(data, number(0.5))
    gelu = mul(half, add(relay.erf(mul(data, number(math.sqrt(0.5)))), number(1.0)))
    for name, results, fragments in [
        ("square", [mul(data, data)], "sqr"),
        ("product", [mul(data, number(2.0))], "mul"),
        ("reciprocal", [relay.divide(number(1.0), data)], "rcp"),
        ("quotient", [relay.divide(number(2.0), data)], "div"),
        ("one bound", [relay.clip(data, -math.inf, 1.0)], "min"),
        ("other bound", [relay.clip(data, 0.5, math.inf)], "max"),
        ("two bounds", [relay.clip(data, 0.5, 1.0)], "clamp"),
        ("trailing axes", [add(data, weight(3, 1, 1))], "add"),
        ("not a number", [relay.isnan(data)], "ne"),
        ("silu", [mul(data, relay.sigmoid(data))], "silu"),
        ("gelu", [gelu], "gelu"),
        ("prelu", [relay.nn.prelu(data, weight(3))], "prelu"),
        ("elu", [call("serde.elu", data, alpha=0.3)], "elu"),
        ("softmax", [relay.nn.softmax(data, axis=-1)], "softmax"),
        ("mean", [relay.mean(data, axis=(1,), exclude=True)], "mean_reduce squeeze"),
        ("index over axes", [relay.argmax(data, axis=(1, 2), keepdims=True)],
         "argmax_reduce"),
        ("moments", [mean, spread], "moments"),
        ("other mean", [relay.variance(data, axis=(2, 3), with_mean=relay.abs(mean))],
         "mean_reduce abs sub sqr mean_reduce squeeze"),
        ("dense", [relay.nn.dense(x(2, 3), weight(4, 3))], "linear"),
        ("dense with bias",
         [relay.nn.bias_add(relay.nn.dense(x(2, 3), weight(4, 3)), weight(4, name="wb"))],
         "linear"),
        ("product with bias", [add(relay.nn.matmul(x(2, 3), weight(3, 4)), weight(4, name="wb"))],
         "linear"),
        ("dense of rows",
         [relay.nn.bias_add(relay.nn.dense(x(2, 5, 3), weight(4, 3)), weight(4, name="wb"), -1)],
         "reshape linear reshape"),
        ("vector", [call("serde.matmul", x(3), weight(2, 3, 4))],
         "unsqueeze matmul squeeze"),
        ("batch norm", [norm(2, 3, 4, 5)], "batch_normalization"),
        ("last channel", [norm(2, 4, 3, axis=-1, scale=False)], "constant batch_normalization"),
        ("response", [relay.nn.lrn(data, size=3)], "local_response_normalization"),
        ("unit", [relay.nn.l2_normalize(data, 1e-6, axis=(1,))], "l2_normalization"),
        ("leading axes", [add(data, relay.expand_dims(y(2, 3), 2, 2))], "add"),
        ("leading axes of both",
         [add(relay.expand_dims(x(2), 1), relay.expand_dims(y(2), 1))], "unsqueeze add"),
        ("added axis", [add(relay.expand_dims(x(2), 1), number(2.0))], "unsqueeze add"),
        ("smooth magnitude", [relay.sqrt(add(mul(data, data), number(0.5)))], "softabs"),
        ("inverse square", [relay.divide(number(1.0), mul(data, data))], "rsqr"),
        ("softmax of images", [softmax(data, data, (2, 3))], "softmax"),
        ("softmax shifted by another", [softmax(data, mul(data, data), (2, 3))],
         "sqr max_reduce sub exp sum_reduce div"),
        ("sum of magnitudes", [unit(data, relay.abs(data))], "l1_normalization"),
        ("length of another", [unit(data, relay.abs(mul(data, data)))],
         "sqr abs sum_reduce add max div"),
        ("truth", [relay.equal(x(3, dtype="bool"), y(3, dtype="bool"))], "or and not and not"),
        ("centred", [sub(data, mean)], "mean_reduce sub"),
    ]:  # fmt: skip
        yield pytest.param(results, fragments.split(), id=name.replace(" ", "-"))


@pytest.mark.parametrize(("results", "fragments"), [*cases()])
def test_fragments(results: list[Expr], fragments: list[str], tmp_path: Path) -> None:
    """A compound where the pattern is whole; the values are those of the specification."""
    model = model_of(*results)
    net = write(model, tmp_path / "net")
    declared = ("external", "variable")
    assert [each.op for each in net.native.operations if each.op not in declared] == fragments
    values = {each.name_hint: draw(each) for each in model.main.params}
    found = run(model.main, list(values.values()))
    expected = list(found) if isinstance(found, (tuple, list)) else [found]
    compare(net.interpret(values), expected)
    compare(net.evaluate(values), expected)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (relay.add(x(3, dtype="int32"), x(3, dtype="int32")), "add takes tensors of scalar"),
        (relay.floor_mod(x(3), y(3)), "NNEF has no remainder"),
        (relay.nn.dense(x(2, 3, dtype="int8"), y(4, 3, dtype="int8"), out_dtype="int32"),
         "takes the dtype of data; found int32"),
    ],
    ids=["integers", "remainder", "wide sum"],
)  # fmt: skip
def test_refusals(result: Expr, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match=reason):
        write(model_of(result), tmp_path / "net")


@pytest.mark.parametrize("value", [0.1, 0.30000001192092896, 0.5])
def test_float64_slopes(value: float, tmp_path: Path) -> None:
    """A number of the text has 32 bits; another one is a variable."""
    layer = relay.nn.leaky_relu(x(3, dtype="float64"), value)
    model = model_of(relay.add(layer, weight(3, dtype="float64")))
    net = write(model, tmp_path / "net")
    values = {each.name_hint: draw(each) - 1 for each in model.main.params}
    values["w"] = model.params["w"].array()
    expected = run(model.main, list(values.values()))
    assert net.native.weights["w"].dtype == "float64"
    compare(net.interpret(values), [np.asarray(expected)], 1e-15)


TEXT = "version 1.0;\ngraph net(x) -> (z) { x = external(shape = [2]); z = add(x, 2.0); }\n"


@pytest.mark.parametrize("dtypes", ["float16", {"x": "float64"}], ids=["bare", "named"])
def test_literals_have_the_dtype_of_inputs(dtypes: Any) -> None:
    """A graph without variables computes in the dtype that is asked for."""
    model = serde.to_relay(nnef.parse_string(TEXT), input_dtypes=dtypes)
    asked = dtypes if isinstance(dtypes, str) else dtypes["x"]
    found = run(model.main, [np.ones(2, asked)])
    assert found.dtype == asked
    np.testing.assert_array_equal(found, [3, 3])


def test_whole_literals() -> None:
    """In a graph made by hand a scalar may be an integer of Python."""
    graph = nnef.parse_string(TEXT)
    source, addition = graph.operations
    edited = addition._replace(inputs={**addition.inputs, "y": 2})
    model = serde.to_relay(graph._replace(operations=[source, edited]))
    np.testing.assert_array_equal(run(model.main, [np.ones(2, np.float32)]), [3, 3])
