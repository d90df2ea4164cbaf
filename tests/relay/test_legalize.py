"""Calls that functions of their operators spell out."""

from typing import Any

import pytest
from support.layout_cases import assert_becomes, names, program

import serde.relay as relay
from serde.errors import SerdeError
from serde.relay.ir.attrs import TempOpAttr, get_op_attr, register_op_attr
from serde.relay.transform import Legalize

KEY = "FTVMLegalize"
PARAMS = {"x": "(2, 3)", "y": "(2, 3)", "w": "(4, 3)"}


def _halved(attrs: Any, inputs: Any, types: Any) -> Any:
    return relay.divide(relay.nn.relu(*inputs), relay.const(1.0))


def _check(before: str, after: str | None = None, key: str = KEY) -> None:
    assert_becomes(Legalize(key) if key != KEY else Legalize(), PARAMS, before, after)


def _dense(attrs: Any, inputs: Any, types: Any) -> Any:
    return relay.copy(relay.nn.dense(*inputs, **attrs))


CASES = {
    "one": ("nn.relu(%x)", "%0 = nn.relu(%x); divide(%0, 1f)"),
    "each of two": (
        "%0 = nn.relu(%x); nn.relu(%0)",
        "%0 = nn.relu(%x); %1 = divide(%0, 1f); %2 = nn.relu(%1); divide(%2, 1f)",
    ),
    "a field": ("%0 = nn.relu(%x); (%0, %y)", "%0 = nn.relu(%x); %1 = divide(%0, 1f); (%1, %y)"),
    "below": (
        "%0 = nn.relu(%x); add(%0, %y)",
        "%0 = nn.relu(%x); %1 = divide(%0, 1f); add(%1, %y)",
    ),
    "shared": (
        "%0 = nn.relu(%x); add(%0, %0)",
        "%0 = nn.relu(%x); %1 = divide(%0, 1f); add(%1, %1)",
    ),
    "another": ("tanh(%x)", "tanh(%x)"),
    "bound by let": (
        "let %z = nn.relu(%x); tanh(%z)",
        "let %z = divide(nn.relu(%x), 1f); tanh(%z)",
    ),
    "branches": (
        "%0 = sum(%x); %1 = greater(%0, 0f); if (%1) { nn.relu(%x) } else { tanh(%x) }",
        "%0 = sum(%x); %1 = greater(%0, 0f); "
        "if (%1) { %2 = nn.relu(%x); divide(%2, 1f) } else { tanh(%x) }",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_function_makes_of_a_call(case: str) -> None:
    with TempOpAttr("nn.relu", KEY, _halved):
        _check(*CASES[case])


def test_several_operators() -> None:
    with TempOpAttr("nn.relu", KEY, _halved), TempOpAttr("nn.dense", KEY, _dense):
        _check(
            "%0 = nn.dense(%x, %w, units=4); nn.relu(%0)",
            "%0 = nn.dense(%x, %w, units=4); %1 = copy(%0); %2 = nn.relu(%1); divide(%2, 1f)",
        )


def test_none_leaves_a_call() -> None:
    mod = program(PARAMS, "nn.relu(%x)")
    with TempOpAttr("nn.relu", KEY, lambda *_: None):
        assert Legalize().run(mod) == (mod, False)


def test_types_are_those_of_the_operands_and_then_of_the_result() -> None:
    seen = []

    def record(attrs: Any, inputs: Any, types: Any) -> Any:
        seen.append((attrs["units"], len(inputs), [each.concrete_shape for each in types]))

    with TempOpAttr("nn.dense", KEY, record):
        Legalize()(program(PARAMS, "nn.dense(%x, %w, units=4)"))
    assert seen == [(4, 2, [(2, 3), (4, 3), (2, 4)])]


def test_another_key() -> None:
    with TempOpAttr("nn.relu", "MyLegalize", _halved):
        _check("nn.relu(%x)", "%0 = nn.relu(%x); divide(%0, 1f)", "MyLegalize")
        mod = program(PARAMS, "nn.relu(%x)")
        assert Legalize().run(mod) == (mod, False)


def test_what_does_not_fit_is_refused() -> None:
    mod = program(PARAMS, "%0 = nn.relu(%x); %1 = (%0, %y); concatenate(%1, axis=1)")
    with (
        TempOpAttr("nn.relu", KEY, lambda _a, inputs, _t: relay.sum(*inputs)),
        pytest.raises(SerdeError),
    ):
        Legalize()(mod)


def test_a_deep_program() -> None:
    x = relay.var("x", shape=(2,))
    y = x
    for _ in range(2000):
        y = relay.nn.relu(y)
    with TempOpAttr("nn.relu", KEY, lambda _a, inputs, _t: relay.tanh(*inputs)):
        found = Legalize()(relay.IRModule.from_expr(relay.Function([x], y)))
    assert set(names(found)) == {"tanh"}


def test_attributes_come_back() -> None:
    before = get_op_attr("nn.relu", KEY)
    with TempOpAttr("nn.relu", KEY, _halved):
        assert get_op_attr("nn.relu", KEY) is _halved
        with TempOpAttr("nn.relu", KEY, _dense):
            assert get_op_attr("nn.relu", KEY) is _dense
        assert get_op_attr("nn.relu", KEY) is _halved
    assert get_op_attr("nn.relu", KEY) is before


def test_attributes_come_back_after_an_error() -> None:
    def fail(attrs: Any, inputs: Any, types: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), TempOpAttr("nn.relu", KEY, fail):
        Legalize()(program(PARAMS, "nn.relu(%x)"))
    assert get_op_attr("nn.relu", KEY) is None


def test_a_higher_level_wins() -> None:
    register_op_attr("nn.relu", "test_level", 1)
    register_op_attr("nn.relu", "test_level", 2, level=11)
    assert get_op_attr("nn.relu", "test_level") == 2
    relay.op.get("nn.relu").reset_attr("test_level")
    assert not relay.op.get("nn.relu").has_attr("test_level")
