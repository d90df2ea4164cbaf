"""Random Relay programs with conditionals, loops, lets, tuples and functions."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.relay.ir.expr import (
    Call,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Tuple,
    TupleGetItem,
    Var,
    astuple,
)
from serde.relay.ir.infer import infer_function
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType

VECTOR = TensorType((4,))
_UNARY = ("tanh", "sin", "negative", "abs", "sigmoid")
_BINARY = ("add", "subtract", "maximum", "minimum")
_ATTRS = ({}, {"Primitive": 1}, {"Composite": "vendor.part"}, {"Compiler": "vendor"})


class ProgramMaker:
    """Draws a module whose values are vectors of four floats, all within a few units.

    Args:
        seed: What it draws from.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._globals: dict[GlobalVar, Function] = {}
        self._count = 0

    def module(self) -> IRModule:
        """Return a module; ``main`` takes three vectors."""
        for _ in range(self._rng.integers(0, 3)):
            name = GlobalVar(f"global{len(self._globals)}")
            attrs = _ATTRS[self._rng.integers(len(_ATTRS))]
            self._globals[name] = self._function(2, 3, attrs)
            name.type = self._globals[name].type
        params = [self._var() for _ in range(3)]
        results = [self._value(list(params), 5) for _ in range(self._rng.integers(1, 3))]
        main = Function(params, Tuple(results) if len(results) > 1 else results[0])
        return IRModule({**self._globals, GlobalVar("main"): main})

    def inputs(self) -> list[np.ndarray]:
        """Return three arrays."""
        return [self._rng.standard_normal(4).astype(np.float32) for _ in range(3)]

    def _var(self, type_: TensorType = VECTOR) -> Var:
        self._count += 1
        return Var(f"v{self._count}", type_)

    def _function(self, arity: int, depth: int, attrs: dict[str, object] | None = None) -> Function:
        params = [self._var() for _ in range(arity)]
        body = self._value(list(params), depth)
        return infer_function(Function(params, body, attrs=attrs))

    def _value(self, known: list[Expr], depth: int) -> Expr:
        """Return an expression over `known`, to which it adds what may be used again."""
        made = self._new(known, depth) if depth > 0 else self._any(known)
        known.append(made)
        return made

    def _any(self, known: list[Expr]) -> Expr:
        if self._rng.random() < 0.1:
            return relay.const(self._rng.standard_normal(4).astype(np.float32))
        return known[self._rng.integers(len(known))]

    def _new(self, known: list[Expr], depth: int) -> Expr:
        kinds = (
            self._unary, self._binary, self._binary, self._if, self._if, self._let, self._tuple,
            self._call, self._closure, self._loop, self._scan,
        )  # fmt: skip
        return kinds[self._rng.integers(len(kinds))](known, depth - 1)

    def _unary(self, known: list[Expr], depth: int) -> Expr:
        name = _UNARY[self._rng.integers(len(_UNARY))]
        return getattr(relay, name)(self._value(known, depth))

    def _binary(self, known: list[Expr], depth: int) -> Expr:
        name = _BINARY[self._rng.integers(len(_BINARY))]
        one, other = self._value(known, depth), self._value(known, depth)
        return relay.tanh(getattr(relay, name)(one, other))

    def _condition(self, known: list[Expr], depth: int) -> Expr:
        return relay.greater(relay.sum(self._value(known, depth)), relay.const(0.25))

    def _if(self, known: list[Expr], depth: int) -> Expr:
        """Branches know what is around them, each a copy of it; both may use the same."""
        condition = self._condition(known, depth)
        one, other = self._value(list(known), depth), self._value(list(known), depth)
        choice = If(condition, one, other)
        choice.type = VECTOR
        return choice

    def _let(self, known: list[Expr], depth: int) -> Expr:
        variable = self._var()
        return Let(
            variable, self._value(list(known), depth), self._value([*known, variable], depth)
        )

    def _tuple(self, known: list[Expr], depth: int) -> Expr:
        condition = self._condition(known, depth)
        pairs = [
            Tuple([self._value(list(known), depth), self._value(list(known), depth)])
            for _ in range(2)
        ]
        chosen = If(condition, pairs[0], pairs[1])
        return relay.subtract(TupleGetItem(chosen, 0), TupleGetItem(chosen, 1))

    def _call(self, known: list[Expr], depth: int) -> Expr:
        arguments = [self._value(known, depth), self._value(known, depth)]
        if self._globals and self._rng.random() < 0.5:
            names = list(self._globals)
            node = Call(names[self._rng.integers(len(names))], arguments)
        else:
            attrs = _ATTRS[self._rng.integers(len(_ATTRS))]
            node = Call(self._function(2, depth, attrs), arguments)
        node.type = VECTOR
        return node

    def _closure(self, known: list[Expr], depth: int) -> Expr:
        """Return two calls of a function that takes what is around it from there."""
        param, name = self._var(), Var("closure")
        variables = [each for each in known if isinstance(each, Var)]
        body = self._value([param, *variables], depth)
        function = infer_function(Function([param], relay.tanh(relay.add(body, param))))
        name.type = function.type
        calls = [Call(name, [self._value(list(known), depth)]) for _ in range(2)]
        for each in calls:
            each.type = VECTOR
        return Let(name, function, relay.maximum(calls[0], calls[1]))

    def _loop(self, known: list[Expr], depth: int) -> Expr:
        number, state, capture = self._var(TensorType((), "int64")), self._var(), self._var()
        inner: list[Expr] = [state, capture]
        step = relay.tanh(self._value(inner, depth))
        going = self._condition([state, capture], 0)
        fields = [going if self._rng.random() < 0.5 else relay.const(True), step, capture]
        body = infer_function(Function([number, state, capture], Tuple(fields)))
        limit = relay.const(int(self._rng.integers(1, 4)), "int64")
        start, taken = self._value(known, depth), self._value(known, depth)
        results = relay.serde.loop(limit, None, [start], [taken], body=body)
        return relay.add(results[0], relay.max(results[1], axis=0))

    def _scan(self, known: list[Expr], depth: int) -> Expr:
        state, item = self._var(TensorType(())), self._var(TensorType(()))
        total = relay.tanh(relay.add(state, item))
        body = infer_function(Function([state, item], Tuple([total, relay.subtract(total, item)])))
        backwards = bool(self._rng.random() < 0.5)
        scanned = relay.serde.scan(
            [relay.const(0.5)], [self._value(known, depth)], [], body=body, reverse=(backwards,)
        )
        return TupleGetItem(astuple(scanned), 1)
