"""What users are told where NNEF cannot say a model: the node and the reason, each once."""

from __future__ import annotations

import pytest

import serde.relay as relay
from serde.core.report import Report
from serde.errors import UnsupportedModelError
from serde.nnef.exporter import from_relay
from serde.nnef.options import NnefExportOptions
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Expr, Function, If, Var
from serde.relay.ir.infer import infer_function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType


def reasons(params: list[Var], body: Expr) -> list[tuple[str, str, str]]:
    """Return operator, node and reason of all that keeps a model from being written."""
    main = infer_function(Function(params, body))
    meta = ModelMeta(tuple(each.name_hint for each in params), ("out",))
    report = Report()
    with pytest.raises(UnsupportedModelError):
        from_relay(RelayModel(IRModule({"main": main}), {}, meta), NnefExportOptions(), report)
    return [(each.op, each.node, each.reason) for each in report.issues]


def variable(name: str, shape: tuple[object, ...], dtype: str = "float32") -> Var:
    return Var(name, TensorType(shape, dtype))


def test_an_open_input_is_told_once() -> None:
    x = variable("x", (symbol("n"), 3))
    found = reasons([x], relay.nn.relu(relay.exp(x)))
    assert [(op, node) for op, node, _ in found] == [("parameter", "x")]
    assert "NNEF has fixed shapes only" in found[0][2]


def test_a_shape_that_values_tell() -> None:
    x = variable("x", (3,))
    ((op, _, reason),) = reasons([x], relay.argwhere(x))
    assert op == "argwhere"
    assert "depends on values" in reason


def test_a_conditional() -> None:
    x, c = variable("x", (3,)), variable("c", (), "bool")
    ((op, _, reason),) = reasons([x, c], If(c, relay.exp(x), relay.nn.relu(x)))
    assert (op, reason) == ("If", "NNEF has no conditionals")


def test_integers_that_are_added() -> None:
    x = variable("x", (3,), "int64")
    ((op, _, reason),) = reasons([x], relay.add(x, x))
    assert op == "add"
    assert reason.startswith("NNEF has no arithmetic of integers")


def test_integers_that_scalars_do_not_tell_apart() -> None:
    x, y = variable("x", (3,), "int64"), variable("y", (3,), "int64")
    ((op, _, reason),) = reasons([x, y], relay.less(x, y))
    assert op == "less"
    assert "NNEF compares scalars only" in reason


def test_two_kinds_of_floats() -> None:
    x = variable("x", (3,))
    found = reasons([x], relay.exp(relay.cast(x, "float64")))
    assert {reason for _, _, reason in found} == {
        "NNEF has one kind of scalar, found float64 beside float32"
    }


def test_a_model_without_inputs() -> None:
    ((op, _, reason),) = reasons([], relay.ones((2,), "float32"))
    assert (op, reason) == ("graph", "a graph of NNEF has inputs, and this model has none")


def test_a_constant_output_of_another_kind() -> None:
    x = variable("x", (2, 3))
    found = reasons([x], relay.zeros((2,), "float64"))
    assert [(op, node) for op, node, _ in found] == [("output", "out")]
