"""Concatenations of many tensors, part by part."""

import numpy as np
import pytest
from support.layout_cases import assert_same_numbers, names

import serde.relay as relay
from serde.relay.ir.registry import call
from serde.relay.transform import InferType, SplitArgs


def _module(count: int, axis: int = 0, *, unknown: bool = False) -> relay.IRModule:
    shape = (relay.Any(), 2) if unknown else (1, 2)
    params = [relay.var(f"p{i}", shape=shape) for i in range(count)]
    body = relay.tanh(relay.concatenate(relay.Tuple(params), axis))
    return InferType()(relay.IRModule.from_expr(relay.Function(params, body)))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("count", "limit", "parts"),
    [
        # A result and as many operands as are left; a part takes what came before as its first.
        (3, 5, 0), (4, 5, 1), (5, 5, 2), (6, 5, 2), (7, 5, 2), (8, 5, 3), (10, 5, 3), (11, 5, 4),
        (300, 256, 2), (20, 3, 19), (20, 0, 0),
    ],
)  # fmt: skip
def test_parts_take_as_many_as_fit(count: int, limit: int, parts: int, axis: int) -> None:
    mod = _module(count, axis)
    found, changed = SplitArgs(limit).run(mod)
    assert changed == (parts > 0) == (found is not mod)
    assert names(found).count("annotation.stop_fusion") == parts
    assert names(found).count("concatenate") == max(parts, 1)
    assert_same_numbers(mod, found)


def test_the_form_of_the_parts() -> None:
    a, b, c, d, e = (relay.var(name, shape=(1, 2)) for name in "abcde")

    def join(*parts: relay.Expr) -> relay.Expr:
        stopped = call("annotation.stop_fusion", relay.Tuple(parts))
        return call("concatenate", stopped, axis=0)

    body = relay.concatenate(relay.Tuple([a, b, c, d, e]), axis=0)
    mod = InferType()(relay.IRModule.from_expr(relay.Function([a, b, c, d, e], body)))
    wanted = relay.Function([a, b, c, d, e], join(join(a, b, c, d), e))
    found = SplitArgs(5)(mod)
    wanted_mod = InferType()(relay.IRModule.from_expr(wanted))
    assert relay.structural_equal(found["main"], wanted_mod["main"])


@pytest.mark.parametrize(("limit", "parts"), [(100, 0), (20, 2), (14, 5)])
def test_lengths_that_are_not_known_are_arguments(limit: int, parts: int) -> None:
    # Each operand is 4 arguments, the result is 3.
    found = SplitArgs(limit)(_module(6, unknown=True))
    assert names(found).count("annotation.stop_fusion") == parts


def test_a_tuple_that_is_given_stays() -> None:
    type_ = relay.TupleType([relay.TensorType((1, 2), "float32")] * 9)
    given = relay.var("t", type_)
    body = relay.concatenate(given, axis=0)
    mod = InferType()(relay.IRModule.from_expr(relay.Function([given], body)))
    assert SplitArgs(3).run(mod) == (mod, False)


def test_several_are_split() -> None:
    x = relay.var("x", shape=(1, 2))
    first = relay.concatenate(relay.Tuple([x] * 6), axis=0)
    second = relay.concatenate(relay.Tuple([first] * 6), axis=0)
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x], second)))
    found = SplitArgs(4)(mod)
    assert names(found).count("annotation.stop_fusion") == 6
    assert_same_numbers(mod, found)
    assert np.prod(found["main"].body.checked_type.concrete_shape) == 72
