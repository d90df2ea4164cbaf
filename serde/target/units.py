"""The parts of a function that go to a target, or stay, as a whole.

A unit is a call of an operator, a layer with the bias that the exporter writes into it, a call of
a Composite or fused function, a conditional with its branches, or a let with all that depends on
its variable. Tuples and their fields are no units: they are followed to the tensors in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from serde.core.records import dataclass, field
from serde.onnx.judge import nodes_inside
from serde.relay.ir import OpDef, holds_values, value_types
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Tuple,
    TupleGetItem,
    Var,
)
from serde.relay.ir.foreign import is_foreign
from serde.relay.ir.leaves import as_leaves
from serde.relay.ir.types import SequenceType, TensorType, TupleType
from serde.relay.ir.visit import children, free_vars, post_order, rewrite
from serde.walk.lowering import fused_biases
from serde.walk.placement import Placement, Scope, place

__all__ = ["Unit", "UnitGraph", "find_units", "spread_tuples"]

MAX_LETS: Final = 64
"""Most lets that are looked into; a function with more stays whole."""

_WHOLE: Final = ("Composite", "Primitive")


@dataclass(slots=True, eq=False)
class Unit:
    """What is not cut.

    Attributes:
        number: Its place in the order of evaluation.
        root: The expression that gives its result.
        operands: The tensors, weights and constants that it reads, each once.
        inner: Calls in it, the root among them.
        may_leave: Whether it is of a kind that a target may take at all.
    """

    number: int
    root: Expr
    operands: tuple[Expr, ...]
    inner: tuple[Call, ...] = ()
    may_leave: bool = True

    @property
    def name(self) -> str:
        """Name of the operator, or of what it is instead."""
        if isinstance(self.root, Call):
            if isinstance(self.root.op, OpDef):
                return "+".join(each.op.name for each in self.inner if isinstance(each.op, OpDef))
            if isinstance(self.root.op, Function):
                return str(self.root.op.attrs.get("Composite", "function"))
            return "call"
        return type(self.root).__name__


@dataclass(slots=True, eq=False)
class UnitGraph:
    """A function as units.

    Attributes:
        function: The function, its tuples spread.
        units: The units, operands before what uses them.
        producers: The unit that gives a tensor, by the expression of the tensor.
        results: The tensors that the function gives.
    """

    function: Function
    units: list[Unit] = field(default_factory=list)
    producers: dict[Expr, Unit] = field(default_factory=dict)
    results: list[Expr] = field(default_factory=list)

    def producer(self, leaf: Expr) -> Unit | None:
        """Return the unit that gives a tensor; None for parameters and constants."""
        return self.producers.get(base_of(leaf))


def base_of(leaf: Expr) -> Expr:
    """Return the expression that a tensor is a field of, or itself."""
    while isinstance(leaf, TupleGetItem):
        leaf = leaf.tuple_value
    return leaf


def spread_tuples(function: Function) -> Function:
    """Return a function in which operands that are tuples are spelled out, field by field.

    Each field of a tuple is one expression, and fields of tuples that are spelled out are these.
    Functions inside stay as they are.
    """
    fields: dict[tuple[Expr, int], Expr] = {}

    def take(value: Expr, index: int) -> Expr:
        if isinstance(value, Tuple):
            return value.fields[index]
        return fields.setdefault((value, index), TupleGetItem(value, index, value.span))

    def spread(value: Expr) -> Expr:
        if isinstance(value, Tuple) or not isinstance(value.type, TupleType):
            return value
        if not value.type.fields or isinstance(value, Function):
            return value
        return Tuple([spread(take(value, index)) for index in range(len(value.type.fields))])

    def replace(node: Expr, new: Expr) -> Expr:
        if isinstance(new, TupleGetItem):
            return take(new.tuple_value, new.index)
        if isinstance(new, Call) and any(isinstance(arg.type, TupleType) for arg in new.args):
            args = [spread(arg) for arg in new.args]
            if any(a is not b for a, b in zip(args, new.args, strict=True)):
                changed = Call(new.op, args, new.attrs, span=new.span)
                changed.type = new.type
                return changed
        if isinstance(new, Tuple) and any(isinstance(each.type, TupleType) for each in new.fields):
            return Tuple([spread(each) for each in new.fields], new.span)
        return new

    nodes = post_order(function.body)
    memo: dict[Expr, Expr] = {node: node for node in nodes if isinstance(node, Function)}
    body = spread(rewrite(function.body, replace, memo))
    return Function(
        function.params, body, function.ret_type, attrs=function.attrs, span=function.span
    )


def find_units(
    function: Function,
    fuses: Callable[[Call, tuple[Expr, ...]], bool],
    takes_kept: Callable[[Call], bool] = lambda _call: False,
) -> UnitGraph:
    """Return a function as units.

    Args:
        function: A function with inferred types.
        fuses: Whether a layer with its bias, which ends at these operands, is to be one unit.
        takes_kept: Whether an operator that was kept may leave.
    """
    function = spread_tuples(function)
    graph = UnitGraph(function, results=list(as_leaves([function.body])))
    if not _is_plain(function.body):
        root = Unit(0, function.body, tuple(function.params), may_leave=False)
        graph.units.append(root)
        graph.producers.update(dict.fromkeys(post_order(function.body), root))
        return graph
    base = Scope()
    placement = place(
        function.body, base, lambda _node, scope: (scope.inner("then"), scope.inner("else")),
        free_vars,
    )  # fmt: skip
    _UnitFinder(graph, placement, base, fuses, takes_kept).run()
    return graph


def _is_plain(body: Expr) -> bool:
    """Whether a function is made of what is known here, and of few lets."""
    nodes = post_order(body)
    known = (Call, Constant, Function, GlobalVar, If, Let, OpDef, Tuple, TupleGetItem, Var)
    lets = sum(isinstance(node, Let) for node in nodes)
    return lets <= MAX_LETS and all(isinstance(node, known) for node in nodes)


class _UnitFinder:
    """Collects the units of one function."""

    def __init__(
        self,
        graph: UnitGraph,
        placement: Placement,
        base: Scope,
        fuses: Callable[[Call, tuple[Expr, ...]], bool],
        takes_kept: Callable[[Call], bool],
    ) -> None:
        self._takes_kept = takes_kept
        self._graph = graph
        self._placement = placement
        self._base = base
        self._fuses = fuses
        self._order = placement.orders[base]
        self._in_base = set(self._order)
        self._params: set[Expr] = set(graph.function.params)
        self._bound = _bound_by_lets(graph.function.body) if placement.lets else {}

    def run(self) -> None:
        """Add a unit for everything in the function's own scope."""
        biases = self._wanted_biases()
        producers = {producer for producer, _bias in biases.values()}
        for node in self._order:
            if isinstance(node, (Var, Constant, Tuple, TupleGetItem)) or node in producers:
                continue
            if self._bound.get(node):
                continue
            if isinstance(node, Let):
                self._add_let(node)
            elif isinstance(node, If):
                self._add(node, self._operands_of_branches(node), ())
            elif isinstance(node, Call):
                pair = biases.get(node)
                inner = (node,) if pair is None else (pair[0], node)
                captured = free_vars(node.op) if isinstance(node.op, Function) else []
                args = node.args if pair is None else (*pair[0].args, pair[1])
                self._add(node, [*as_leaves(args), *captured], inner)
            else:
                self._add(node, list(children(node)), (), may_leave=False)

    def _wanted_biases(self) -> Mapping[Expr, tuple[Call, Expr]]:
        found = fused_biases(self._placement.uses)
        return {
            node: (producer, bias)
            for node, (producer, bias) in found.items()
            if isinstance(node, Call)
            and node in self._in_base
            and producer in self._in_base
            and self._fuses(node, tuple(dict.fromkeys(as_leaves((*producer.args, bias)))))
        }

    def _add(
        self,
        root: Expr,
        operands: Sequence[Expr],
        inner: tuple[Call, ...],
        *,
        may_leave: bool = True,
    ) -> Unit:
        graph = self._graph
        leaves = tuple(dict.fromkeys(operands))
        kept = filter(is_foreign, nodes_inside(root, leaves))
        own = may_leave and _may_leave(root) and all(map(self._takes_kept, kept))
        unit = Unit(len(graph.units), root, leaves, inner, own and all(map(_is_tensor, leaves)))
        graph.units.append(unit)
        graph.producers[root] = unit
        return unit

    def _operands_of_branches(self, node: If) -> list[Expr]:
        """Return what a conditional and its branches read from around it."""
        found = list(as_leaves([node.cond]))
        pending = [node]
        while pending:
            for scope in self._placement.branches[pending.pop()]:
                inside = self._placement.orders.get(scope, ())
                pending += [each for each in inside if isinstance(each, If)]
                for each in inside:
                    found += self._read_outside(each)
        for root in (node.true_branch, node.false_branch):
            found += [leaf for leaf in as_leaves([root]) if self._is_outside(leaf)]
        return found

    def _read_outside(self, node: Expr) -> list[Expr]:
        if isinstance(node, TupleGetItem):
            return []  # What reads it reads the tensor that it is.
        below = list(children(node))
        if isinstance(node, Call) and isinstance(node.op, Function):
            below = [*node.args, *free_vars(node.op)]
        elif isinstance(node, Function):
            below = list(free_vars(node))
        return [leaf for leaf in as_leaves(below) if self._is_outside(leaf)]

    def _is_outside(self, leaf: Expr) -> bool:
        """Whether an expression is a value of the function's own scope."""
        base = base_of(leaf)
        known = base in self._in_base or base in self._params
        return known and not isinstance(leaf, (OpDef, GlobalVar))

    def _add_let(self, let: Let) -> None:
        """Add a let with all that depends on its variable."""
        operands: list[Expr] = []
        inside: list[Expr] = []
        seen: set[Expr] = {let}
        stack: list[Expr] = [let]
        while stack:
            node = stack.pop()
            inside.append(node)
            for child in children(node):
                if child in seen or isinstance(child, (OpDef, GlobalVar)):
                    continue
                seen.add(child)
                bound = isinstance(child, (Function, Tuple)) or self._bound.get(child)
                (stack if bound or not self._is_outside(child) else operands).append(child)
        unit = self._add(let, operands, (), may_leave=False)
        self._graph.producers.update(dict.fromkeys(inside, unit))


def _bound_by_lets(body: Expr) -> dict[Expr, frozenset[Var]]:
    """Return the variables of lets that are not over at each expression, where there are any."""
    nodes = post_order(body)
    variables = {node.var for node in nodes if isinstance(node, Let)}
    found: dict[Expr, frozenset[Var]] = {}
    for node in nodes:
        own: frozenset[Var] = frozenset()
        if isinstance(node, Var) and node in variables:
            own = frozenset([node])
        for child in children(node):
            own |= found.get(child, frozenset())
        if isinstance(node, Let):
            own -= {node.var}
        if own:
            found[node] = own
    return found


def _may_leave(root: Expr) -> bool:
    """Whether an expression is of a kind that a target may take."""
    if not holds_values(root.type) or not all(map(_holds_tensor, value_types(root.type))):
        return False
    if not isinstance(root, Call):
        return isinstance(root, If)
    if isinstance(root.op, Function):
        attrs = root.op.attrs
        return "Compiler" not in attrs and any(key in attrs for key in _WHOLE)
    return isinstance(root.op, OpDef)


def _holds_tensor(type_: TensorType | SequenceType) -> bool:
    return isinstance(type_, TensorType)


def _is_tensor(leaf: Expr) -> bool:
    return isinstance(leaf.type, TensorType)
