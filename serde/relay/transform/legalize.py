"""Replacement of operators that a target lacks by what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any as AnyValue
from typing import ClassVar

from serde.errors import TypeInferenceError
from serde.relay.expr import Call, Expr, Function, Span, Tuple, astuple
from serde.relay.registry import OpDef
from serde.relay.transform.base import FunctionPass
from serde.relay.types import accepts
from serde.relay.visit import children, rewrite

__all__ = ["Legalize", "decompose"]


@dataclass(frozen=True)
class Legalize(FunctionPass):
    """Replace calls of extension operators by their decomposition, until the target has all.

    Args:
        supported: What the target has: a function of the call, or operator names. Operators
            of Relay itself have no decomposition and stay.
    """

    name: ClassVar[str] = "Legalize"

    supported: Callable[[Call], bool] | Collection[str]

    def transform(self, function: Function) -> Function:
        """Decompose bottom-up, and what comes out of it again."""
        result = rewrite(function, lambda _node, new: self._legal(new))
        return result if isinstance(result, Function) else function

    def _legal(self, node: Expr) -> Expr:
        if not isinstance(node, Call) or not isinstance(node.op, OpDef):
            return node
        if node.op.decompose is None or self._has(node):
            return node
        memo: dict[Expr, Expr] = {argument: argument for argument in node.args}
        for argument in node.args:
            memo.update({child: child for child in children(argument)})
        return rewrite(decompose(node), lambda _node, new: self._legal(new), memo)

    def _has(self, node: Call) -> bool:
        if callable(self.supported):
            return self.supported(node)
        return isinstance(node.op, OpDef) and node.op.name in self.supported


def decompose(node: Call) -> Expr:
    """Return the body of an extension operator's call in terms of other operators.

    An absent operand is handed on as None, a tuple operand as a tuple of expressions. The
    calls that come out have the span of `node`.

    Raises:
        TypeInferenceError: There is no decomposition, or it has another type.
    """
    definition = node.op
    if not isinstance(definition, OpDef) or definition.decompose is None:
        raise TypeInferenceError(f"{node!r} has no decomposition")
    operands: list[AnyValue] = []
    for operand, argument in zip(definition.operands, node.args, strict=True):
        if not isinstance(argument, Tuple):
            operands.append(argument)
        elif operand.variadic:
            operands.append(argument.fields)
        else:
            operands.append(None)
    result = astuple(definition.decompose(*operands, **node.attrs))
    if node.type is not None and result.type is not None and not accepts(node.type, result.type):
        raise TypeInferenceError(
            f"{definition.name}: expected a decomposition of {node.type!r}, found {result.type!r}"
        )
    _give_span(result, node.span, node.args)
    return result


def _give_span(result: Expr, span: Span | None, args: tuple[Expr, ...]) -> None:
    """Note where new calls come from; what was there before has its own place."""
    seen = {*args, *(child for argument in args for child in children(argument))}
    pending = [result] if span is not None else []
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.span is None:
            node.span = span
        pending.extend(children(node))
