"""Visitors and mutators over expressions, with the methods that TVM's have.

One method for each kind of node, ``visit_call``, ``visit_var`` and so on; a node that is shared is
visited once. :class:`ExprVisitor` and :class:`ExprMutator` go down by calling themselves, so that
a subclass decides when and whether it does; graphs deeper than Python's stack need
:class:`MixedModeMutator`, or the walks of :mod:`serde.relay.ir.visit`.
"""

from __future__ import annotations

from typing import Any as AnyValue, Final

from serde.errors import RelayError
from serde.relay.ir.adt import Constructor, Match
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from serde.relay.ir.refs import RefCreate, RefRead, RefWrite
from serde.relay.ir.registry import set_type
from serde.relay.ir.visit import children, rebuild

__all__ = ["ExprFunctor", "ExprMutator", "ExprVisitor", "MixedModeMutator"]

_METHODS: Final[dict[type[Expr], str]] = {
    Call: "visit_call",
    Constant: "visit_constant",
    Constructor: "visit_constructor",
    Function: "visit_function",
    GlobalVar: "visit_global_var",
    If: "visit_if",
    Let: "visit_let",
    Match: "visit_match",
    Op: "visit_op",
    RefCreate: "visit_ref_create",
    RefRead: "visit_ref_read",
    RefWrite: "visit_ref_write",
    Tuple: "visit_tuple",
    TupleGetItem: "visit_tuple_getitem",
    Var: "visit_var",
}


def _method(kind: type[Expr]) -> str:
    for base in kind.__mro__:
        if base in _METHODS:
            return _METHODS[base]
    raise RelayError(f"no method visits a {kind.__name__}")


class ExprFunctor:
    """A function over expressions, told by cases; each node is asked for once.

    Attributes:
        memo_map: What each node visited so far has given.
    """

    def __init__(self) -> None:
        self.memo_map: dict[Expr, AnyValue] = {}

    def visit(self, expr: Expr) -> AnyValue:
        """Return what the method for this kind of node gives.

        Raises:
            RelayError: The graph is deeper than Python's stack.
        """
        if expr in self.memo_map:
            return self.memo_map[expr]
        if not isinstance(expr, Expr):
            raise TypeError(f"expected an expression, found {expr!r}")
        try:
            result = getattr(self, _method(type(expr)))(expr)
        except RecursionError:
            hint = "derive from MixedModeMutator, or use relay.analysis.post_order_visit"
            raise RelayError(f"the graph is deeper than Python's stack; {hint}") from None
        self.memo_map[expr] = result
        return result

    def _undefined(self, expr: AnyValue) -> AnyValue:
        raise NotImplementedError(f"{type(self).__name__} has no {_method(type(expr))}")

    visit_call = visit_constant = visit_function = visit_global_var = visit_if = _undefined
    visit_let = visit_op = visit_tuple = visit_tuple_getitem = visit_var = _undefined
    visit_constructor = visit_match = visit_ref_create = visit_ref_read = _undefined
    visit_ref_write = _undefined


class ExprVisitor(ExprFunctor):
    """Visits every node once, from the root down, for what its methods do on the way."""

    def visit_call(self, call: Call) -> None:
        """Visit the callee, then the operands."""
        self.visit(call.op)
        for argument in call.args:
            self.visit(argument)

    def visit_constant(self, const: Constant) -> None:
        """Visit a constant."""

    def visit_function(self, fn: Function) -> None:
        """Visit the parameters, then the body."""
        for param in fn.params:
            self.visit(param)
        self.visit(fn.body)

    def visit_global_var(self, gvar: GlobalVar) -> None:
        """Visit the name of a function of the module."""

    def visit_if(self, ite: If) -> None:
        """Visit the condition, then both branches."""
        self.visit(ite.cond)
        self.visit(ite.true_branch)
        self.visit(ite.false_branch)

    def visit_let(self, let: Let) -> None:
        """Visit the variable, its value and the body."""
        self.visit(let.var)
        self.visit(let.value)
        self.visit(let.body)

    def visit_constructor(self, con: Constructor) -> None:
        """Visit a constructor of an algebraic data type."""

    def visit_match(self, match: Match) -> None:
        """Visit the value, then the result of each clause."""
        self.visit(match.data)
        for clause in match.clauses:
            self.visit(clause.rhs)

    def visit_ref_create(self, ref: RefCreate) -> None:
        """Visit what the reference holds."""
        self.visit(ref.value)

    def visit_ref_read(self, ref: RefRead) -> None:
        """Visit the reference."""
        self.visit(ref.ref)

    def visit_ref_write(self, ref: RefWrite) -> None:
        """Visit the reference and what is written."""
        self.visit(ref.ref)
        self.visit(ref.value)

    def visit_op(self, op: Op) -> None:
        """Visit an operator."""

    def visit_tuple(self, tup: Tuple) -> None:
        """Visit the fields."""
        for each in tup.fields:
            self.visit(each)

    def visit_tuple_getitem(self, op: TupleGetItem) -> None:
        """Visit the tuple."""
        self.visit(op.tuple_value)

    def visit_var(self, var: Var) -> None:
        """Visit a variable."""


class ExprMutator(ExprFunctor):
    """Rebuilds an expression from the root down; a node below which nothing changes stays."""

    def visit_call(self, call: Call) -> Expr:
        """Return the call of what its callee and operands become."""
        callee = self.visit(call.op)
        return _call_again(call, callee, [self.visit(argument) for argument in call.args])

    def visit_constant(self, const: Constant) -> Expr:
        """Return the constant."""
        return const

    def visit_function(self, fn: Function) -> Expr:
        """Return the function of what its parameters and its body become."""
        return rebuild(fn, [*(self.visit(param) for param in fn.params), self.visit(fn.body)])

    def visit_global_var(self, gvar: GlobalVar) -> Expr:
        """Return the name of the function."""
        return gvar

    def visit_if(self, ite: If) -> Expr:
        """Return the choice between what condition and branches become."""
        parts = (ite.cond, ite.true_branch, ite.false_branch)
        return rebuild(ite, [self.visit(part) for part in parts])

    def visit_let(self, let: Let) -> Expr:
        """Return the let of what variable, value and body become."""
        return rebuild(let, [self.visit(part) for part in (let.var, let.value, let.body)])

    def visit_constructor(self, con: Constructor) -> Expr:
        """Return the constructor."""
        return con

    def visit_match(self, match: Match) -> Expr:
        """Return the match of what the value and the results of the clauses become."""
        return rebuild(match, [self.visit(part) for part in children(match)])

    def visit_ref_create(self, ref: RefCreate) -> Expr:
        """Return the reference to what the value becomes."""
        return rebuild(ref, [self.visit(ref.value)])

    def visit_ref_read(self, ref: RefRead) -> Expr:
        """Return the reading of what the reference becomes."""
        return rebuild(ref, [self.visit(ref.ref)])

    def visit_ref_write(self, ref: RefWrite) -> Expr:
        """Return the writing of what reference and value become."""
        return rebuild(ref, [self.visit(ref.ref), self.visit(ref.value)])

    def visit_op(self, op: Op) -> Expr:
        """Return the operator."""
        return op

    def visit_tuple(self, tup: Tuple) -> Expr:
        """Return the tuple of what the fields become."""
        return rebuild(tup, [self.visit(each) for each in tup.fields])

    def visit_tuple_getitem(self, op: TupleGetItem) -> Expr:
        """Return the same field of what the tuple becomes."""
        return rebuild(op, [self.visit(op.tuple_value)])

    def visit_var(self, var: Var) -> Expr:
        """Return the variable."""
        return var


class MixedModeMutator(ExprMutator):
    """A mutator that goes through calls, tuples, their fields and chains of lets without recursion.

    What is computed is rewritten after its operands, by ``rewrite_call``, ``rewrite_tuple`` and
    ``rewrite_tuple_getitem``; they get the node as it was and as it is with what its operands have
    become. Everything else is visited as by :class:`ExprMutator`, and only functions and branches
    inside each other take a place on the stack.
    """

    def visit(self, expr: Expr) -> AnyValue:
        """Return what `expr` becomes."""
        stack: list[Expr] = [expr]
        while stack:
            node = stack[-1]
            if node in self.memo_map:
                stack.pop()
            elif not isinstance(node, (Call, Tuple, TupleGetItem)):
                super().visit(node)
            else:
                pending = [part for part in _parts(node) if part not in self.memo_map]
                if pending:
                    stack.extend(reversed(pending))
                else:
                    self.memo_map[node] = self._rewrite(node)
        return self.memo_map[expr]

    def _rewrite(self, node: Call | Tuple | TupleGetItem) -> AnyValue:
        parts = [self.memo_map[part] for part in _parts(node)]
        if isinstance(node, Call):
            return self.rewrite_call(node, _call_again(node, parts[0], parts[1:]))
        if isinstance(node, Tuple):
            return self.rewrite_tuple(node, rebuild(node, parts))
        return self.rewrite_tuple_getitem(node, rebuild(node, parts))

    def visit_let(self, let: Let) -> Expr:
        """Return the let of what variable, value and body become, a chain of them in a loop."""
        chain: list[tuple[Let, Expr, Expr]] = []
        node: Expr = let
        while isinstance(node, Let) and node not in self.memo_map:
            chain.append((node, self.visit(node.var), self.visit(node.value)))
            node = node.body
        result: Expr = self.visit(node)
        for each, variable, value in reversed(chain):
            result = rebuild(each, [variable, value, result])
            self.memo_map[each] = result
        return result

    def rewrite_call(self, pre: Call, post: Expr) -> Expr:
        """Return what stands for a call."""
        return post

    def rewrite_tuple(self, pre: Tuple, post: Expr) -> Expr:
        """Return what stands for a tuple."""
        return post

    def rewrite_tuple_getitem(self, pre: TupleGetItem, post: Expr) -> Expr:
        """Return what stands for the field of a tuple."""
        return post


def _parts(node: Call | Tuple | TupleGetItem) -> tuple[Expr, ...]:
    if isinstance(node, Call):
        return (node.op, *node.args)
    return node.fields if isinstance(node, Tuple) else (node.tuple_value,)


def _call_again(call: Call, callee: Expr, arguments: list[Expr]) -> Expr:
    """Return `call` of another callee or with other operands, or itself where both are its own."""
    if callee is call.op:
        plain = isinstance(callee, (Op, GlobalVar))
        return rebuild(call, arguments if plain else [*arguments, callee])
    return set_type(Call(callee, arguments, call.attrs, call.given_type_args, call.span))
