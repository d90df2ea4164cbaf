"""Each structural rule, broken once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.programs import build_program, programs
from support.samples import all_samples, build

import serde.relay as relay
from serde.errors import VerifyError
from serde.relay.ir.expr import Attrs, Call, Expr, Let, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import OpDef, Sample, get
from serde.relay.ir.types import TensorType
from serde.relay.transform import InferType


class Hole(Expr):
    """What a bridge leaves where a node could not be converted."""

    __slots__ = ()

    def __init__(self) -> None:
        self.type = TensorType((2,))
        self.span = relay.Span("conv_7")


def x_of(*shape: int, name: str = "x") -> Var:
    return relay.var(name, shape=shape or (2,))


def refuse(value: Any, message: str) -> None:
    with pytest.raises(VerifyError, match=message):
        relay.verify(value)


@pytest.mark.parametrize("name", sorted(programs()))
def test_programs_verify(name: str) -> None:
    mod = build_program(name)
    relay.verify(mod)
    relay.verify(InferType()(mod))


@pytest.mark.wide
@pytest.mark.parametrize(("definition", "given"), all_samples(one_first=True))
def test_samples_verify(definition: OpDef, given: Sample) -> None:
    function = build(definition, given).function
    relay.verify(function)
    relay.verify(InferType()(relay.IRModule({"main": function})))


def test_unbound_variable() -> None:
    refuse(relay.Function([], relay.exp(x_of())), r"Var\(x\): the variable is used but never bound")


def test_variable_bound_twice() -> None:
    x = x_of()
    refuse(relay.Function([x, x], x), r"Var\(x\) is bound twice")
    refuse(relay.Function([x], Let(x, relay.const(1.0), x)), r"Var\(x\) is bound twice")
    first = relay.Function([x], x)
    mod = relay.IRModule({"a": first, "main": relay.Function([x], relay.exp(x))})
    refuse(mod, r"main: .*Var\(x\) is bound twice")


def test_variable_used_outside_its_scope() -> None:
    x, inner = x_of(), Var("l", TensorType((2,)))
    scoped = Let(inner, relay.exp(x), relay.log(inner))
    refuse(relay.Function([x], relay.add(scoped, inner)), "used outside what binds it")


def test_shared_node_used_outside_the_scope_of_its_variable() -> None:
    x, inner = x_of(), Var("l", TensorType((2,)))
    shared = relay.log(inner)
    scoped = Let(inner, relay.exp(x), shared)
    refuse(relay.Function([x], relay.add(scoped, shared)), "used outside what binds it")


def test_deeply_shared_node_used_outside_the_scope_of_its_variable() -> None:
    x, inner = x_of(), Var("l", TensorType((2,)))
    deepest = relay.log(inner)
    shared = relay.exp(deepest)
    scoped = Let(inner, relay.exp(x), relay.exp(shared))
    refuse(relay.Function([x], relay.add(scoped, relay.log(shared))), "used outside what binds")


def test_closed_function_may_be_shared_between_scopes() -> None:
    x, k = x_of(), x_of(name="k")
    function = relay.Function([k], relay.exp(k))
    first, second = Var("a", TensorType((2,))), Var("b", TensorType((2,)))
    one = relay.Function([first], function(first))
    two = relay.Function([second], function(second))
    relay.verify(relay.Function([x], relay.add(one(x), two(x))))


def test_shared_function_with_a_captured_variable_stays_in_its_scope() -> None:
    x, k = x_of(), x_of(name="k")
    first, second = Var("a", TensorType((2,))), Var("b", TensorType((2,)))
    function = relay.Function([k], relay.add(k, first))
    one = relay.Function([first], function(first))
    two = relay.Function([second], function(second))
    refuse(relay.Function([x], relay.add(one(x), two(x))), r"Var\(a\)")


def test_let_value_does_not_see_its_variable() -> None:
    inner = Var("l", TensorType((2,)))
    refuse(relay.Function([], Let(inner, relay.exp(inner), inner)), "but never bound")


def test_holes_are_refused() -> None:
    refuse(relay.Function([], relay.exp(Hole())), r"\[conv_7\]: this is no node of Relay")


def test_global_functions_exist() -> None:
    x = x_of()
    refuse(relay.IRModule({"main": relay.Function([x], relay.GlobalVar("f")(x))}), "no such func")


def test_operator_is_no_value() -> None:
    refuse(relay.Function([], relay.Tuple([get("exp")])), "an operator is used as a value")


@pytest.mark.parametrize("count", [0, 2])
def test_number_of_operands(count: int) -> None:
    x = x_of()
    refuse(
        relay.Function([x], Call(get("exp"), [x] * count)), f"expected 1 operands, found {count}"
    )


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({}, "attribute axis is missing"),
        ({"axis": (0,), "keepdims": False, "exclude": False, "more": 1}, "unknown attribute more"),
        ({"axis": [0], "keepdims": False, "exclude": False}, "attribute axis: expected"),
        ({"axis": (0,), "keepdims": 0, "exclude": False}, "attribute keepdims: expected"),
        ({"axis": "no", "keepdims": False, "exclude": False}, "attribute axis: expected"),
        ({"keepdims": False, "axis": (0,), "exclude": False}, "not in the order"),
    ],
)
def test_attributes(attrs: dict[str, Any], message: str) -> None:
    x = x_of()
    refuse(relay.Function([x], Call(get("sum"), [x], Attrs(attrs))), message)


def test_calls_of_functions() -> None:
    x, k = x_of(), x_of(name="k")
    function = relay.Function([k], k)
    refuse(relay.Function([x], Call(function, [x, x])), "expected 1 arguments, found 2")
    refuse(relay.Function([x], Call(function, [x], Attrs({"a": 1}))), "only calls of operators")
    refuse(relay.Function([x], Call(x, [x])), "is called but is")


def test_projections() -> None:
    x = x_of()
    pair = Tuple([x, x])
    field = TupleGetItem(pair, 0)
    field.index = 2
    refuse(relay.Function([x], field), "field 2 of a tuple with 2 fields")
    field.index = -1
    refuse(relay.Function([x], field), "-1 is no number of a field")
    refuse(relay.Function([x], TupleGetItem(x, 0)), "a field of Tensor")


def test_types_of_a_checked_module() -> None:
    x = x_of()
    body = relay.exp(x)
    mod = InferType()(relay.IRModule({"main": relay.Function([x], body)}))
    relay.verify(mod)
    body.type = TensorType((3,))
    refuse(mod, r"noted as Tensor\[\(3\), float32\] but is Tensor\[\(2\), float32\]")
    body.type = None
    refuse(mod, "has no type though the module is checked")


def test_condition_is_a_scalar_bool() -> None:
    x = x_of()
    body = relay.If(relay.const(1), x, x)
    mod = relay.IRModule({"main": relay.Function([x], body)}, checked=True)
    refuse(mod, "a condition must be a scalar bool")


def test_value_of_another_kind() -> None:
    mod = relay.IRModule({"main": relay.const(np.float32(1))})  # type: ignore[dict-item]
    refuse(mod, "main: expected a function")


@pytest.mark.wide
def test_long_chain_of_lets() -> None:
    x = x_of()
    variables = [x, *[Var(f"l{i}", TensorType((2,))) for i in range(100_000)]]
    body: Any = variables[-1]
    for before, variable in zip(variables[-2::-1], variables[:0:-1], strict=True):
        body = Let(variable, relay.exp(before), body)
    relay.verify(relay.Function([x], body))
