"""Attributes of operators: levels, decorators, and what is set beforehand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from serde.errors import RelayError
from serde.relay.ir.attrs import (
    get_op_attr,
    ops_with_attr,
    register_op_attr,
    registration,
    reset_op_attr,
    set_op_attr,
)
from serde.relay.ir.registry import get

KEY = "target.abacus"


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    for name in list(ops_with_attr(KEY)):
        reset_op_attr(name, KEY)


def test_attribute_that_is_not_set_is_none() -> None:
    assert get_op_attr("nn.dense", KEY) is None
    assert not get("nn.dense").has_attr(KEY)


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        pytest.param(1, 10, "second", id="higher-takes-over"),
        pytest.param(10, 11, "second", id="next-takes-over"),
        pytest.param(10, 9, "first", id="lower-is-ignored"),
        pytest.param(11, 1, "first", id="much-lower-is-ignored"),
    ],
)
def test_levels(first: int, second: int, kept: str) -> None:
    set_op_attr("add", KEY, "first", first)
    set_op_attr("add", KEY, "second", second)
    assert get_op_attr("add", KEY) == kept


@pytest.mark.parametrize("level", [1, 10, 15])
def test_same_level_twice_is_refused(level: int) -> None:
    set_op_attr("add", KEY, "first", level)
    with pytest.raises(RelayError, match=f"{KEY} of add is set at level {level} already"):
        set_op_attr("add", KEY, "second", level)


@pytest.mark.parametrize("level", [0, -1])
def test_level_is_above_zero(level: int) -> None:
    with pytest.raises(RelayError, match="expected a level above 0"):
        set_op_attr("add", KEY, "first", level)


def test_decorator_returns_the_function() -> None:
    @register_op_attr("exp", KEY)
    def supports(call: object) -> bool:
        return call is None

    assert get("exp").get_attr(KEY) is supports
    assert get("exp").has_attr(KEY)


def test_value_may_be_given_at_once() -> None:
    assert register_op_attr("exp", KEY, 7) == 7
    assert get("exp").get_attr(KEY) == 7


def test_operators_that_are_not_declared_may_have_attributes() -> None:
    register_op_attr("abacus.slide", KEY, True)
    assert list(ops_with_attr(KEY)) == ["abacus.slide"]


def test_reset_takes_any_level_away() -> None:
    op = get("tanh")
    op.set_attr(KEY, "value", 50)
    op.reset_attr(KEY)
    assert op.get_attr(KEY) is None
    op.set_attr(KEY, "again", 1)
    assert op.get_attr(KEY) == "again"


def test_reset_of_nothing_is_nothing() -> None:
    reset_op_attr("tanh", KEY)
    assert get_op_attr("tanh", KEY) is None


def test_registration_of_one_key() -> None:
    register = registration(KEY)

    @register("sqrt", level=12)
    def rule(call: object) -> bool:
        return call is None

    register("rsqrt", rule)
    assert get_op_attr("sqrt", KEY) is get_op_attr("rsqrt", KEY) is rule
    with pytest.raises(RelayError, match="level 12"):
        register("sqrt", rule, 12)
