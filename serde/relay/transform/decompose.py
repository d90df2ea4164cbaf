"""Replacement of operators that a target lacks by what they are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any as AnyValue, ClassVar, TypeAlias

from serde.core import budget, dataclass
from serde.errors import LimitError, TypeInferenceError, Unsupported
from serde.relay.ir import Call, Expr, Function, OpDef, Span, TensorType, Tuple, accepts, astuple
from serde.relay.ir.traits import Foreign, Layout
from serde.relay.ir.visit import children, kinds, rewrite, rewrite_function
from serde.relay.lowering.layout import usual_layout
from serde.relay.transform.base import FunctionPass

__all__ = ["Decompose", "counting_decomposed", "decompose"]


_DECOMPOSED: ContextVar[Counter[str] | None] = ContextVar("decomposed", default=None)


@contextmanager
def counting_decomposed() -> Iterator[Counter[str]]:
    """Count, by name, the operators that targets have made of others while the body runs."""
    counter: Counter[str] = Counter()
    token = _DECOMPOSED.set(counter)
    try:
        yield counter
    finally:
        _DECOMPOSED.reset(token)


def _no_expansion(_name: str) -> None:
    return None


_Kind: TypeAlias = tuple[str, str]


def _kind(node: Call) -> _Kind:
    """Return the operator and the dtype of what it takes: that of halves may be that of floats."""
    type_ = node.args[0].type if node.args else None
    name = node.op.name if isinstance(node.op, OpDef) else ""
    return name, type_.dtype if isinstance(type_, TensorType) else ""


class _Round(Exception):
    """What an operator is made of leads back to it."""


@dataclass(frozen=True)
class Decompose(FunctionPass):
    """Replace calls of operators by what they are made of, until the target has all.

    What has a layout is first made of the same operator in the usual one.

    Args:
        supported: What the target has: a function of the call, or operator names.
        expansion: Gives what a target makes an operator of, by the operator's name. It takes
            precedence over the operator's own decomposition; a call that it raises
            :class:`~serde.errors.Unsupported` for stays.
        usual_layouts: Whether what has a layout is brought to the usual one; a target with
            layouts of its own has them from :class:`~serde.relay.transform.TransposeToLayout`.
    """

    name: ClassVar[str] = "Decompose"

    supported: Callable[[Call], bool] | Collection[str]
    expansion: Callable[[str], Callable[..., AnyValue] | None] = _no_expansion
    usual_layouts: bool = True

    def concerns(self, function: Function) -> bool:
        """Whether there is an operator that can be made of others."""
        known = [each for each in kinds(function) if isinstance(each, OpDef)]
        return any(each.has(Layout) or self._body(each) is not None for each in known)

    def _body(self, operator: OpDef) -> Callable[..., AnyValue] | None:
        """Return what makes an operator of others; of one that is kept as it is, nothing does."""
        known = not operator.has(Foreign)
        return self.expansion(operator.name) or operator.decompose if known else None

    def transform(self, function: Function) -> Function:
        """Decompose bottom-up, and what comes out of it again."""
        return rewrite_function(function, lambda _node, new: self.lower(new))

    def lower(self, node: Expr, within: frozenset[_Kind] = frozenset()) -> Expr:
        """Decompose one call, and what comes out of it again; its operands are as they are.

        An operator of Relay stays that leads to what is decomposed `within`, or to itself.
        """
        if not isinstance(node, Call) or not isinstance(node.op, OpDef):
            return node
        layout = usual_layout(node) if self.usual_layouts else None
        body = layout or self._body(node.op)
        if body is None:
            return node
        kind = _kind(node)
        if kind in within and not self._has(node):
            raise _Round
        try:
            parts = None if self._has(node) else decompose(node, body)
        except (TypeInferenceError, Unsupported):
            return node
        except LimitError as error:
            error.node = error.node or (node.span.source_name if node.span is not None else "")
            raise
        if parts is None:
            return node
        counter = _DECOMPOSED.get()
        if counter is not None and not within and layout is None:
            counter[node.op.name] += 1
        memo: dict[Expr, Expr] = {argument: argument for argument in node.args}
        for argument in node.args:
            memo.update({child: child for child in children(argument)})
        inner = within | {kind} if layout is None else within
        try:
            return rewrite(parts, lambda _node, new: self.lower(new, inner), memo)
        except _Round:
            if within and node.op.name.startswith("serde."):
                raise
            return node

    def _has(self, node: Call) -> bool:
        if callable(self.supported):
            return self.supported(node)
        return isinstance(node.op, OpDef) and node.op.name in self.supported


def decompose(node: Call, body: Callable[..., AnyValue] | None = None) -> Expr:
    """Return what a call is made of in terms of other operators.

    An absent operand is handed on as None, a tuple operand as a tuple of expressions. The
    calls that come out have the span of `node`.

    Args:
        node: The call.
        body: What makes it, of operands and attributes; the operator's own if left out.

    Raises:
        LimitError: It has more nodes than the budget of the conversion affords.
        TypeInferenceError: There is no decomposition, or it has another type.
    """
    definition = node.op
    if isinstance(definition, OpDef):
        body = body or definition.decompose
    if not isinstance(definition, OpDef) or body is None:
        raise TypeInferenceError(f"{node!r} has no decomposition")
    operands: list[AnyValue] = []
    for operand, argument in zip(definition.operands, node.args, strict=True):
        if not isinstance(argument, Tuple) or operand.any_value:
            operands.append(argument)
        elif operand.variadic:
            operands.append(argument.fields)
        else:
            operands.append(None)
    result = astuple(body(*operands, **node.attrs))
    if node.type is not None and result.type is not None and not accepts(node.type, result.type):
        raise TypeInferenceError(
            f"{definition.name}: expected a decomposition of {node.type!r}, found {result.type!r}"
        )
    made = _give_span(result, node.span, node.args)
    budget().draw("nodes", made, f"{definition.name} in terms of other operators")
    return result


def _give_span(result: Expr, span: Span | None, args: tuple[Expr, ...]) -> int:
    """Note where new calls come from, and count them; what was there before has its own place.

    A decomposition may leave out its operand, and that one's as well: a transpose of a reshape.
    """
    seen, front = set(args), list(args)
    for _ in range(2):
        front = [child for each in front for child in children(each)]
        seen.update(front)
    before = len(seen)
    pending = [result]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.span is None:
            node.span = span
        pending.extend(children(node))
    return len(seen) - before
