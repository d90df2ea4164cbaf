"""Random well-scoped programs that share values across scopes, and what they mean.

Any expression drawn so far may be used again wherever the variables that it takes are
open: in another branch, in the value of a let, inside a function. What a program means
is spelled out here, in Python's own numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from serde.relay.ir import registry
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Span,
    Tuple,
    TupleGetItem,
    Var,
)
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import FuncType, TensorType, TupleType

NUMBER = TensorType((), "float64")
PAIR = TupleType([NUMBER, NUMBER])
STEP = FuncType([NUMBER, NUMBER], NUMBER)
INPUTS = 3
_NAMES = ("x", "y", "f", "x1", "while")
_BINARY = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "maximum": max,
    "minimum": min,
}


class ScopedMaker:
    """Draws modules of numbers, pairs and functions.

    Args:
        seed: What it draws from.
        size: How many expressions a scope draws at most.
    """

    def __init__(self, seed: int, size: int = 5) -> None:
        self._rng = np.random.default_rng(seed)
        self._size = size
        self._pool: list[tuple[Expr, Any, frozenset[Var]]] = []
        self._globals: dict[GlobalVar, Function] = {}
        self._types: dict[Var, Any] = {}
        self._spans = 0

    def module(self) -> IRModule:
        """Return a module whose ``main`` takes three numbers."""
        for number in range(self._rng.integers(0, 3)):
            variable = GlobalVar(f"g{number}", STEP)
            self._globals[variable] = self._function(frozenset(), 2)
            self._pool = [(each, STEP, frozenset()) for each in self._globals]
        params = [self._var(NUMBER, typed=True) for _ in range(INPUTS)]
        self._types = {**self._types, **dict.fromkeys(params, NUMBER)}
        body = self._scope(frozenset(params), PAIR if self._draw(4) == 0 else NUMBER, 4)
        return IRModule({**self._globals, GlobalVar("main"): Function(params, body)})

    def inputs(self) -> list[float]:
        """Return three numbers."""
        return [float(value) for value in self._rng.integers(-9, 10, INPUTS)]

    def _draw(self, below: int) -> int:
        return int(self._rng.integers(below))

    def _var(self, type_: Any, *, typed: bool = False) -> Var:
        return Var(_NAMES[self._draw(len(_NAMES))], type_ if typed or self._draw(2) else None)

    def _known(self, open_: frozenset[Var], type_: Any) -> list[Expr]:
        return [expr for expr, each, free in self._pool if each == type_ and free <= open_]

    def _pick(self, open_: frozenset[Var], type_: Any) -> Expr:
        found = self._known(open_, type_)
        if type_ == NUMBER:
            found += [v for v, each in self._types.items() if each == NUMBER and v in open_]
        if found and self._draw(8):
            return found[self._draw(len(found))]
        return self._fresh(open_, type_)

    def _fresh(self, open_: frozenset[Var], type_: Any) -> Expr:
        if type_ == PAIR:
            return self._note(Tuple([self._pick(open_, NUMBER), self._pick(open_, NUMBER)]), PAIR)
        if type_ == STEP:
            return self._note(self._function(open_, 1), STEP)
        return self._note(Constant(np.float64(self._draw(9) - 4)), NUMBER)

    def _note(self, expr: Expr, type_: Any) -> Expr:
        self._pool.append((expr, type_, free_variables(expr)))
        return expr

    def _function(self, open_: frozenset[Var], depth: int) -> Function:
        params = [self._var(NUMBER, typed=True) for _ in range(2)]
        self._types = {**self._types, **dict.fromkeys(params, NUMBER)}
        return Function(params, self._scope(open_ | set(params), NUMBER, depth))

    def _scope(self, open_: frozenset[Var], type_: Any, depth: int) -> Expr:
        for _ in range(1 + self._draw(self._size)):
            self._step(open_, depth)
        if depth and self._draw(2):
            return self._let(open_, type_, depth)
        return self._pick(open_, type_)

    def _let(self, open_: frozenset[Var], type_: Any, depth: int) -> Expr:
        held = (NUMBER, NUMBER, PAIR, STEP)[self._draw(4)]
        value = self._pick(open_, held)
        if isinstance(value, GlobalVar):
            value = self._function(open_, depth - 1)
        variable = self._var(held)
        self._types = {**self._types, variable: held}
        self._pool.append((variable, held, frozenset([variable])))
        body = self._scope(open_ | {variable}, type_, depth - 1)
        return self._note(Let(variable, value, body), type_)

    def _step(self, open_: frozenset[Var], depth: int) -> None:
        kind = self._draw(9)
        number = lambda: self._pick(open_, NUMBER)  # noqa: E731
        if kind < 3:
            name = list(_BINARY)[self._draw(len(_BINARY))]
            call = Call(registry.get(name), [number(), number()])
            self._spans += 1
            call.span = Span(f"n{self._spans}")
            self._note(call, NUMBER)
        elif kind == 3:
            self._note(TupleGetItem(self._pick(open_, PAIR), self._draw(2)), NUMBER)
        elif kind == 4:
            self._fresh(open_, PAIR)
        elif kind == 5:
            self._note(Call(self._pick(open_, STEP), [number(), number()]), NUMBER)
        elif depth and kind == 6:
            cond = Call(registry.get("less"), [number(), number()])
            branches = [self._scope(open_, NUMBER, depth - 1) for _ in range(2)]
            self._note(If(cond, *branches), NUMBER)
        elif depth and kind == 7:
            self._let(open_, (NUMBER, PAIR)[self._draw(2)], depth)
        elif depth:
            self._note(Call(self._function(open_, depth - 1), [number(), number()]), NUMBER)


def free_variables(expr: Expr) -> frozenset[Var]:
    """Return the variables that an expression takes from around it."""
    return _free(expr, {})


def _free(expr: Expr, known: dict[Expr, frozenset[Var]]) -> frozenset[Var]:
    if expr not in known:
        below = frozenset[Var]().union(*(_free(each, known) for each in _operands(expr)))
        if isinstance(expr, Var):
            below |= {expr}
        elif isinstance(expr, Let):
            value, body = _free(expr.value, known), _free(expr.body, known) - {expr.var}
            below = (value - {expr.var} if isinstance(expr.value, Function) else value) | body
        elif isinstance(expr, Function):
            below -= set(expr.params)
        known[expr] = below
    return known[expr]


def _operands(expr: Expr) -> Sequence[Expr]:
    if isinstance(expr, Call):
        return expr.args if isinstance(expr.op, Op) else (*expr.args, expr.op)
    if isinstance(expr, Tuple):
        return expr.fields
    if isinstance(expr, TupleGetItem):
        return (expr.tuple_value,)
    if isinstance(expr, If):
        return (expr.cond, expr.true_branch, expr.false_branch)
    if isinstance(expr, Let):
        return (expr.value, expr.body)
    return (expr.body,) if isinstance(expr, Function) else ()


class Meaning:
    """What a module computes, scope by scope; a variable outside its scope is a `KeyError`."""

    def __init__(self, mod: IRModule) -> None:
        self._functions = {variable.name_hint: f for variable, f in mod.functions.items()}
        self._free: dict[Expr, frozenset[Var]] = {}
        self._memo: dict[Any, Any] = {}

    def __call__(self, *inputs: float) -> Any:
        """Return what ``main`` gives."""
        main = self._functions["main"]
        return self._value(main.body, dict(zip(main.params, inputs, strict=True)))

    def _value(self, expr: Expr, env: Mapping[Var, Any]) -> Any:
        taken = {variable: env[variable] for variable in _free(expr, self._free)}
        key = (expr, frozenset(taken.items()))
        if key not in self._memo:
            self._memo[key] = self._evaluate(expr, taken)
        return self._memo[key]

    def _evaluate(self, expr: Expr, env: Mapping[Var, Any]) -> Any:
        if isinstance(expr, Var):
            return env[expr]
        if isinstance(expr, Constant):
            return expr.data.item()
        if isinstance(expr, GlobalVar):
            return (self._functions[expr.name_hint], ())
        if isinstance(expr, Function):
            return (expr, frozenset(env.items()))
        if isinstance(expr, Tuple):
            return tuple(self._value(field, env) for field in expr.fields)
        if isinstance(expr, TupleGetItem):
            return self._value(expr.tuple_value, env)[expr.index]
        if isinstance(expr, If):
            taken = expr.true_branch if self._value(expr.cond, env) else expr.false_branch
            return self._value(taken, env)
        if isinstance(expr, Let):
            return self._value(expr.body, {**env, expr.var: self._value(expr.value, env)})
        assert isinstance(expr, Call)
        args = [self._value(each, env) for each in expr.args]
        if isinstance(expr.op, Op):
            return args[0] < args[1] if expr.op.name == "less" else _BINARY[expr.op.name](*args)
        function, around = self._value(expr.op, env)
        given = dict(zip(function.params, args, strict=True))
        return self._value(function.body, {**dict(around), **given})
