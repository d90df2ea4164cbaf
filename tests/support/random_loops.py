"""What a random graph may grow by: loops, whose values come of their steps done one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from support.random_graphs import Item, Maker, Rejected
from support.random_layers import PRODUCERS
from support.random_producers import is_number, producer

import serde.relay as relay
from serde.relay import Call, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.expr import Expr, astuple
from serde.relay.ir.types import TensorType

__all__ = ["PRODUCERS"]

FLOAT_STEPS = ["tanh", "sin", "negative", "abs", "sigmoid", "add", "subtract", "maximum"]
INT_STEPS = ["negative", "abs", "add", "subtract", "maximum", "minimum"]
OF_ONE = frozenset(["tanh", "sin", "negative", "abs", "sigmoid"])


def _names(maker: Maker, x: Item) -> list[str]:
    """Draw the operators of one iteration."""
    steps = FLOAT_STEPS if x.is_float else INT_STEPS
    return [maker.one_of(steps) for _ in range(maker.integer(1, 3))]


def _iteration(maker: Maker, names: Sequence[str], state: Item, other: Item) -> Item:
    """Return the next state."""
    for name in names:
        operands = [state] if name in OF_ONE else [state, other]
        state = maker.add(name, *operands, keep=False)
    return state


def _inside(item: Item, name: str) -> tuple[Var, Item]:
    """Return a parameter of a body, and the item that it stands for there."""
    variable = Var(name, item.expr.type)
    return variable, replace(item, expr=variable)


def _note(maker: Maker, call: Expr, items: Sequence[Item]) -> None:
    for index, item in enumerate(items):
        maker.put(item, TupleGetItem(call, index))


@producer(0.8)
def loop(maker: Maker) -> None:
    """A state changed a number of times, each value of it stacked; sometimes left early."""
    if "loop" not in maker.control or maker.depth > 1:
        raise Rejected
    x = maker.pick(is_number)
    captured = maker.pick(lambda item: (item.dtype, item.shape) == (x.dtype, x.shape))
    names, most, last = _names(maker, x), maker.integer(1, 4), maker.integer(0, 4)
    early = maker.chance(0.3)
    params = [_inside(x, "state"), _inside(captured, "captured")]
    with maker.inside([item for _, item in params], closed=True):
        yielded = _iteration(maker, names, params[0][1], params[1][1]).expr
    number = Var("i", TensorType((), "int64"))
    going: Expr = relay.const(True, "bool")
    if early:
        going = relay.less(number, relay.const(last, "int64"))
    fields = Tuple([going, yielded, yielded])
    body = Function([number, *[variable for variable, _ in params]], fields)
    states, count = [x], min(most, last + 1) if early else most
    for _ in range(count):
        states.append(_iteration(maker, names, states[-1], captured))
    limit = relay.const(most, "int64")
    call = astuple(relay.serde.loop(limit, None, [x.expr], [captured.expr], body=body))
    stacked = maker.add("stack", states[1:], exact=True, keep=False, axis=0)
    _note(maker, call, [states[-1], stacked])


@producer(0.8)
def scan(maker: Maker) -> None:
    """A state that meets the slices of a tensor, along either direction of its first axis."""
    if "scan" not in maker.control or maker.depth > 1:
        raise Rejected
    tensor = maker.pick(lambda item: is_number(item) and item.rank > 0 and item.value.size > 0)
    x = maker.pick(lambda item: (item.dtype, item.shape) == (tensor.dtype, tensor.shape[1:]))
    names, backwards = _names(maker, x), maker.chance(0.3)
    length = tensor.value.shape[0]
    order = range(length - 1, -1, -1) if backwards else range(length)
    slices = [
        maker.add("take", tensor, maker.constant(index, "int64"), exact=True, keep=False, axis=0)
        for index in order
    ]
    params = [_inside(x, "state"), _inside(slices[0], "slice")]
    with maker.inside([item for _, item in params], closed=True):
        yielded = _iteration(maker, names, params[0][1], params[1][1]).expr
    body = Function([variable for variable, _ in params], Tuple([yielded, yielded]))
    states = [x]
    for each in slices:
        states.append(_iteration(maker, names, states[-1], each))
    call = astuple(relay.serde.scan([x.expr], [tensor.expr], [], body=body, reverse=[backwards]))
    assert isinstance(call, Call)
    stacked = maker.add("stack", states[1:], exact=True, keep=False, axis=0)
    _note(maker, call, [states[-1], stacked])
