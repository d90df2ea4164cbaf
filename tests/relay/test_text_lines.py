"""Lines of text: which values have one, in what order, and how they are numbered."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import serde.relay as relay

GOLDEN = json.loads((Path(__file__).parent.parent / "golden/tvm/relay_api.json").read_text())
OPERANDS_FIRST = {"callee", "callee_of_let"}
"""Texts in which TVM numbers the lines inside a callee before those above it."""


@pytest.mark.parametrize("name", sorted(set(GOLDEN["texts"]) - OPERANDS_FIRST))
def test_lines_are_numbered_as_tvm_numbers_them(name: str) -> None:
    text = GOLDEN["texts"][name]
    assert relay.fromtext(text).astext(strict=True) == text


@pytest.mark.parametrize("name", sorted(OPERANDS_FIRST))
def test_lines_of_a_callee_are_numbered_where_they_stand(name: str) -> None:
    text = GOLDEN["texts"][name]
    printed = relay.fromtext(text).astext(strict=True)
    lines = [re.sub(r"%\d+", "%", line) for line in text.splitlines()]
    assert [re.sub(r"%\d+", "%", line) for line in printed.splitlines()] == lines
    numbers = [int(number) for number in re.findall(r"(?m)^ *%(\d+) =(?! fn| \()", printed)]
    assert numbers == sorted(numbers)
    relay.assert_structural_equal(relay.fromtext(printed), relay.fromtext(text))


def test_what_a_branch_names_has_its_line_before_others_use_it() -> None:
    x, condition = relay.var("x", shape=(3,)), relay.var("c", shape=(), dtype="bool")
    shared = relay.exp(x)
    chosen = relay.If(condition, relay.abs(shared), x)
    result = relay.Tuple([relay.cast(x, "int32"), chosen, relay.sqrt(relay.negative(shared))])
    _assert_comes_back(relay.Function([x, condition], result))


def test_what_a_callee_names_has_its_line_before_operands_use_it() -> None:
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    shared = relay.exp(x)
    inner = relay.Function([y], relay.add(y, shared))
    call = relay.Call(inner, [relay.sqrt(relay.negative(shared))])
    _assert_comes_back(relay.Function([x], relay.multiply(call, shared)))


def _assert_comes_back(function: relay.Function) -> None:
    module = relay.transform.InferType()(relay.IRModule.from_expr(function))
    relay.assert_structural_equal(relay.fromtext(module.astext()), module)
