"""Whether an expression matches a pattern, and what its parts stand for.

The matcher holds a stack of its own, so that neither deep patterns nor patterns that recur over
deep expressions reach Python's limit. As in TVM, the operands of ``add`` and ``multiply`` are
tried in either order, ``a * b / c`` matches ``a * (b / c)`` and the other way round, and a pattern
that has matched stands for that expression alone, but for paths of dominators.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any as AnyValue, ClassVar

import numpy as np

from serde.relay.ir import IRModule, OpDef, TensorType, Type, infer_module, pattern_of
from serde.relay.ir.compare import structural_equal
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
    astuple,
)
from serde.relay.tvm.dataflow_pattern.graph import ExprGraph, inputs_of
from serde.relay.tvm.dataflow_pattern.patterns import (
    AltPattern,
    AndPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
)

__all__ = ["Matcher", "match", "operator_name"]

_Steps = Generator[tuple[DFPattern, Expr], bool, bool]
"""Asks whether patterns match expressions, gets the answers and returns its own."""


def match(pattern: DFPattern, expr: Expr | TupleWrapper) -> bool:
    """Whether an expression matches a pattern.

    Args:
        pattern: The pattern.
        expr: The expression.
    """
    root = astuple(expr)
    return Matcher(ExprGraph(root)).match(pattern, root)


class Matcher:
    """Matches patterns with nodes of one expression.

    Args:
        graph: The expression.

    Attributes:
        matches: After a match, the expressions that each pattern stands for.
    """

    def __init__(self, graph: ExprGraph) -> None:
        self.matches: dict[DFPattern, list[Expr]] = {}
        self._graph = graph
        self._trail: list[DFPattern] = []
        self._memoize = True

    def match(self, pattern: DFPattern, expr: Expr) -> bool:
        """Whether a node matches."""
        self.matches = {}
        self._trail = []
        self._memoize = True
        stack: list[tuple[_Steps, DFPattern, Expr, int]] = []
        answer = self._begin(pattern, expr, stack)
        while stack:
            steps, asked, node, mark = stack[-1]
            try:
                # A generator just begun, after which the answer is None, takes no other.
                request = steps.send(answer)  # type: ignore[arg-type]
            except StopIteration as stop:
                stack.pop()
                answer = bool(stop.value)
                self._settle(asked, node, mark, answer)
            else:
                answer = self._begin(*request, stack)
        return bool(answer)

    def _begin(
        self, pattern: DFPattern, expr: Expr, stack: list[tuple[_Steps, DFPattern, Expr, int]]
    ) -> bool | None:
        """Answer at once, or put the steps to the answer on the stack."""
        if self._memoize and pattern in self.matches:
            return any(known is expr for known in self.matches[pattern])
        if not pattern.inputs and not isinstance(pattern, TuplePattern):
            found = _matches_leaf(pattern, expr)
            self._settle(pattern, expr, len(self._trail), found)
            return found
        steps = self._STEPS[type(pattern)](self, pattern, expr)
        stack.append((steps, pattern, expr, len(self._trail)))
        return None

    def _settle(self, pattern: DFPattern, expr: Expr, mark: int, found: bool) -> None:
        if found:
            self.matches.setdefault(pattern, []).append(expr)
            self._trail.append(pattern)
        else:
            self._undo(mark)

    def _undo(self, mark: int) -> None:
        """Forget the matches since the trail had the length `mark`."""
        while len(self._trail) > mark:
            pattern = self._trail.pop()
            known = self.matches[pattern]
            known.pop()
            if not known:
                del self.matches[pattern]

    def _match_all(self, patterns: Sequence[DFPattern] | None, given: Sequence[Expr]) -> _Steps:
        if patterns is None:
            return True
        if len(patterns) != len(given):
            return False
        mark = len(self._trail)
        for pattern, expr in zip(patterns, given, strict=True):
            if not (yield pattern, expr):
                self._undo(mark)
                return False
        return True

    def _match_wildcard(self, pattern: WildcardPattern, expr: Expr) -> _Steps:
        return (yield pattern.inputs[0], expr)

    def _match_alternatives(self, pattern: AltPattern, expr: Expr) -> _Steps:
        return (yield pattern.left, expr) or (yield pattern.right, expr)

    def _match_both(self, pattern: AndPattern, expr: Expr) -> _Steps:
        return (yield pattern.left, expr) and (yield pattern.right, expr)

    def _match_call(self, pattern: CallPattern, expr: Expr) -> _Steps:
        if not isinstance(expr, Call):
            return False
        if not (yield pattern.op, expr.op):
            for other in _associate(pattern, expr):
                if (yield other, expr):
                    return True
            return False
        if (yield from self._match_all(pattern.args, expr.args)):
            return True
        if pattern.args is not None and operator_name(pattern) in ("add", "multiply"):
            return (yield from self._match_all(pattern.args[::-1], expr.args))
        return False

    def _match_function(self, pattern: FunctionPattern, expr: Expr) -> _Steps:
        if not isinstance(expr, Function):
            return False
        if not (yield from self._match_all(pattern.params, expr.params)):
            return False
        return (yield pattern.body, expr.body)

    def _match_if(self, pattern: IfPattern, expr: Expr) -> _Steps:
        if not isinstance(expr, If):
            return False
        parts = (expr.cond, expr.true_branch, expr.false_branch)
        return (yield from self._match_all(pattern.inputs, parts))

    def _match_let(self, pattern: LetPattern, expr: Expr) -> _Steps:
        if not isinstance(expr, Let):
            return False
        return (yield from self._match_all(pattern.inputs, (expr.var, expr.value, expr.body)))

    def _match_tuple(self, pattern: TuplePattern, expr: Expr) -> _Steps:
        if not isinstance(expr, Tuple):
            return False
        return (yield from self._match_all(pattern.fields, expr.fields))

    def _match_field(self, pattern: TupleGetItemPattern, expr: Expr) -> _Steps:
        if not isinstance(expr, TupleGetItem) or pattern.index not in (-1, expr.index):
            return False
        return (yield pattern.tuple, expr.tuple_value)

    def _match_attributes(self, pattern: AttrPattern, expr: Expr) -> _Steps:
        return (yield pattern.pattern, expr) and _has_attributes(expr, pattern.attrs)

    def _match_type(self, pattern: TypePattern, expr: Expr) -> _Steps:
        return (yield pattern.pattern, expr) and _type_of(expr) == pattern.type

    def _match_dtype(self, pattern: DataTypePattern, expr: Expr) -> _Steps:
        if not (yield pattern.pattern, expr):
            return False
        type_ = _type_of(expr)
        return isinstance(type_, TensorType) and type_.dtype == pattern.dtype

    def _match_shape(self, pattern: ShapePattern, expr: Expr) -> _Steps:
        if not (yield pattern.pattern, expr):
            return False
        type_ = _type_of(expr)
        return isinstance(type_, TensorType) and type_.shape == pattern.shape

    def _match_dominator(self, pattern: DominatorPattern, expr: Expr) -> _Steps:
        if not (yield pattern.child, expr):
            return False
        before = self._memoize
        complete = yield from self._match_path(pattern, expr)
        self._memoize = True
        found = complete and (yield from self._match_dominated(pattern, expr))
        self._memoize = before
        return found

    def _match_path(self, pattern: DominatorPattern, expr: Expr) -> _Steps:
        """Match the ways up from the child; all that have a parent have the same."""
        known: set[Expr] = set()
        stack = [iter(_operands(expr))]
        while stack:
            node = next(stack[-1], None)
            if node is None:
                stack.pop()
                continue
            if node in known:
                continue
            known.add(node)
            self._memoize = True
            if (yield pattern.parent, node):
                continue
            self._memoize = False
            if not (yield pattern.path, node):
                return False
            stack.append(iter(_operands(node)))
        return True

    def _match_dominated(self, pattern: DominatorPattern, expr: Expr) -> _Steps:
        """Match a parent with what the child dominates."""
        parents = self.matches.get(pattern.parent)
        if parents is not None:
            return any(self._graph.dominates(expr, parent) for parent in parents)
        for node in self._graph.dominated(expr):
            if (yield pattern.parent, node):
                return True
        return False

    _STEPS: ClassVar[Mapping[type[DFPattern], Callable[..., _Steps]]] = {
        AltPattern: _match_alternatives,
        AndPattern: _match_both,
        AttrPattern: _match_attributes,
        CallPattern: _match_call,
        DataTypePattern: _match_dtype,
        DominatorPattern: _match_dominator,
        FunctionPattern: _match_function,
        IfPattern: _match_if,
        LetPattern: _match_let,
        ShapePattern: _match_shape,
        TupleGetItemPattern: _match_field,
        TuplePattern: _match_tuple,
        TypePattern: _match_type,
        WildcardPattern: _match_wildcard,
    }


def _operands(node: Expr) -> tuple[Expr, ...]:
    return node.args if isinstance(node, Call) else inputs_of(node)


def _matches_leaf(pattern: DFPattern, expr: Expr) -> bool:
    if isinstance(pattern, WildcardPattern):
        return True
    if isinstance(pattern, ExprPattern):
        return _is_equal(pattern.expr, expr)
    if isinstance(pattern, VarPattern):
        return isinstance(expr, Var) and pattern.name in ("", expr.name_hint)
    if isinstance(pattern, ConstantPattern):
        return isinstance(expr, Constant)
    raise TypeError(f"{pattern!r} is no pattern that can be matched")


def _is_equal(wanted: Expr, expr: Expr) -> bool:
    if wanted is expr:
        return True
    if isinstance(wanted, Op) and isinstance(expr, Op):
        return wanted.name == expr.name
    return type(wanted) is type(expr) and structural_equal(wanted, expr)


def operator_name(pattern: DFPattern) -> str | None:
    """Return the name of the operator that a pattern of a call names, or None."""
    if isinstance(pattern, CallPattern) and isinstance(pattern.op, ExprPattern):
        found = pattern.op.expr
        return found.name if isinstance(found, Op) else None
    return None


def _calls(expr: Expr, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == name


def _associate(pattern: CallPattern, expr: Call) -> list[CallPattern]:
    """Return the other orders of a product and a quotient that may match a call.

    ``(a * b) / c`` is also ``b * (a / c)`` and ``a * (b / c)``, and ``a * (b / c)`` is also
    ``(b * a) / c``.
    """
    name, args = operator_name(pattern), pattern.args
    if args is None or len(args) != 2:
        return []
    if name == "divide" and _calls(expr, "multiply") and _has_operand(expr, "divide"):
        product, divisor = args
        if not isinstance(product, CallPattern) or operator_name(product) != "multiply":
            return []
        factors = product.args or ()
        return [
            CallPattern(product.op, [other, CallPattern(pattern.op, [factor, divisor])])
            for factor, other in zip(factors, reversed(factors), strict=True)
        ]
    if name == "multiply" and _calls(expr, "divide") and _has_operand(expr, "multiply"):
        for quotient, other in zip(args, reversed(args), strict=True):
            if isinstance(quotient, CallPattern) and operator_name(quotient) == "divide":
                below = quotient.args or ()
                if len(below) == 2:
                    product = CallPattern(pattern.op, [below[0], other])
                    return [CallPattern(quotient.op, [product, below[1]])]
    return []


def _has_operand(expr: Call, name: str) -> bool:
    return any(_calls(arg, name) for arg in expr.args)


def _has_attributes(expr: Expr, wanted: Mapping[str, AnyValue]) -> bool:
    if isinstance(expr, Op):
        own: Mapping[str, AnyValue] = {}
        if isinstance(expr, OpDef):
            own = {"TOpPattern": int(pattern_of(expr))}
    elif isinstance(expr, (Call, Function)):
        own = expr.attrs
    else:
        return False
    return all(name in own and _same_value(value, own[name]) for name, value in wanted.items())


def _same_value(wanted: AnyValue, found: AnyValue) -> bool:
    """Whether attributes are equal: lists as tuples, dtypes by name, but no integer as a float."""
    if isinstance(wanted, Expr) or isinstance(found, Expr):
        both = isinstance(wanted, Expr) and isinstance(found, Expr)
        return both and structural_equal(wanted, found, map_free_vars=True)
    if isinstance(wanted, (list, tuple)) or isinstance(found, (list, tuple)):
        if not isinstance(wanted, (list, tuple)) or not isinstance(found, (list, tuple)):
            return False
        return len(wanted) == len(found) and all(map(_same_value, wanted, found))
    if isinstance(found, np.dtype) or isinstance(wanted, np.dtype):
        return str(wanted) == str(found)
    if isinstance(wanted, float) != isinstance(found, float):
        return False
    return bool(wanted == found)


def _type_of(expr: Expr) -> Type | None:
    """Return the type of an expression, inferred where it is not known; an operator has none."""
    if expr.type is not None or isinstance(expr, Op):
        return expr.type
    main = infer_module(IRModule.from_expr(expr))[0]["main"]
    return main.type if isinstance(expr, Function) else main.body.type
