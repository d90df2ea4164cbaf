"""Replacement of calls by the bodies of what they call, and of lets by sharing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from serde.core.limits import MAX_NODES
from serde.core.records import dataclass
from serde.errors import LimitError, Unsupported
from serde.relay.ir import RefRead, RefWrite, SymDim, all_nodes, instantiate, map_bodies
from serde.relay.ir.expr import Call, Expr, Function, GlobalVar, Let, Var
from serde.relay.ir.module import IRModule, callees_first, find_callees, recursive_functions
from serde.relay.ir.types import FuncType, TensorType, TupleType
from serde.relay.ir.visit import children, free_vars, kinds, post_order, rebuild, rewrite_function
from serde.relay.transform.base import FunctionPass, Pass
from serde.relay.transform.purity import has_symbol

__all__ = ["InlineCalls", "ToGraphNormalForm", "substitute_lets", "symbols_agree"]

_OPAQUE = ("Composite", "Primitive", "Compiler", "Extern")


@dataclass(frozen=True)
class InlineCalls(Pass):
    """Replace calls of function literals and of global functions that do not call themselves.

    Args:
        opaque: Whether functions with ``Primitive``, ``Composite``, ``Compiler`` or ``Extern``
            are inlined too; otherwise they stay whole.
        keep_globals: Whether calls of global functions stay, unless a parameter or the result
            is a function.
        max_nodes: A function that has grown to so many nodes takes in no more.
    """

    name: ClassVar[str] = "InlineCalls"

    opaque: bool = False
    keep_globals: bool = False
    max_nodes: int = MAX_NODES

    def run(self, mod: IRModule) -> tuple[IRModule, bool]:
        """Inline callees first, so that every body is copied in its final form."""
        ready: dict[GlobalVar, Function] = {}
        final: dict[GlobalVar, Function] = {}
        calls = find_callees(mod)
        order = callees_first(calls)
        recursive = recursive_functions(calls, order)
        for variable in order:
            function = map_bodies(mod.functions[variable], lambda f: self._inline(f, ready))
            function = self._inline(function, ready)
            final[variable] = function
            if variable in recursive or not self._may(function):
                continue
            if not self.keep_globals or _is_higher_order(function):
                ready[variable] = function
        if all(final[v] is f for v, f in mod.functions.items()):
            return mod, False
        return mod.with_functions({v: final[v] for v in mod.functions}), True

    def _may(self, function: Function) -> bool:
        return self.opaque or not any(key in function.attrs for key in _OPAQUE)

    def _inline(self, function: Function, ready: Mapping[GlobalVar, Function]) -> Function:
        """Return `function` with calls replaced by bodies, as far as `max_nodes` allows."""
        if kinds(function).isdisjoint((Function, GlobalVar)):
            return function
        names = {variable.name_hint: body for variable, body in ready.items()}
        sizes: dict[Function, int] = {}
        total = 0

        def replace(_node: Expr, new: Expr) -> Expr:
            nonlocal total
            if not isinstance(new, Call):
                return new
            callee: Expr | None = new.op
            if isinstance(callee, GlobalVar):
                callee = names.get(callee.name_hint)
            if not isinstance(callee, Function) or not self._may(callee):
                return new
            if callee not in sizes:
                sizes[callee] = len(post_order(callee.body))
            size = sizes[callee]
            if total + size > self.max_nodes or not symbols_agree(callee, new.args):
                return new
            total += size
            try:
                return instantiate(callee, new.args, new.type, size=size)
            except LimitError as error:
                error.node = error.node or repr(new.op if isinstance(new.op, GlobalVar) else new)
                raise

        return rewrite_function(function, replace)


def _is_higher_order(function: Function) -> bool:
    """Whether functions are handed to or returned by `function`, perhaps in tuples."""
    pending = [function.body.type, *(param.type for param in function.params)]
    while pending:
        type_ = pending.pop()
        if isinstance(type_, FuncType):
            return True
        if isinstance(type_, TupleType):
            pending.extend(type_.fields)
    return False


def symbols_agree(function: Function, args: Sequence[Expr]) -> bool:
    """Whether attributes inside may stay as they are: their symbols mean the same outside."""
    pairs = [
        (wanted, given)
        for param, argument in zip(function.params, args, strict=True)
        if isinstance(param.type, TensorType) and isinstance(argument.type, TensorType)
        for wanted, given in zip(param.type.shape, argument.type.shape, strict=True)
    ]
    if all(wanted == given for wanted, given in pairs if isinstance(wanted, SymDim)):
        return True
    calls = (node for node in all_nodes(function.body) if isinstance(node, Call))
    return not any(has_symbol(value) for call in calls for value in call.attrs.values())


class ToGraphNormalForm(FunctionPass):
    """Let the value of a let stand where its variable stands.

    A function that calls itself through its variable keeps its let; so does
    what is declared with another type than its value has.

    Raises:
        Unsupported: The function has references, which only lets tell when to read and write.
    """

    name: ClassVar[str] = "ToGraphNormalForm"
    changes: ClassVar[Sequence[str | type]] = (Let,)
    opt_level: ClassVar[int] = 1

    def transform(self, function: Function) -> Function:
        """Replace variables by values, outer lets first."""
        order = post_order(function)
        values = {
            node.var: node.value
            for node in order
            if isinstance(node, Let) and _may_substitute(node)
        }
        if not values:
            return function
        if any(isinstance(node, (RefRead, RefWrite)) for node in order):
            raise Unsupported(
                "ToGraphNormalForm: references are read and written in an order that a graph "
                "does not tell"
            )
        result = substitute_lets(function, values)
        return result if isinstance(result, Function) else function


def substitute_lets(root: Expr, values: Mapping[Var, Expr]) -> Expr:
    """Return `root` without the lets of these variables; where one is used, its value stands."""
    done: dict[Expr, Expr] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        below = _below(node, values)
        waiting = [child for child in below if child not in done]
        if node not in done and waiting:
            stack.extend(reversed(waiting))
            continue
        stack.pop()
        if node not in done:
            parts = [done[child] for child in below]
            done[node] = parts[0] if _vanishes(node, values) else rebuild(node, parts)
    return done[root]


def _vanishes(node: Expr, values: Mapping[Var, Expr]) -> bool:
    variable = node.var if isinstance(node, Let) else node
    return isinstance(variable, Var) and variable in values


def _below(node: Expr, values: Mapping[Var, Expr]) -> tuple[Expr, ...]:
    """Return what a node becomes, where it is a let or its variable; else its children."""
    if not _vanishes(node, values):
        return children(node)
    return (node.body,) if isinstance(node, Let) else (values[node],)  # type: ignore[index]


def _may_substitute(node: Let) -> bool:
    declared = node.var.type_annotation
    if declared is not None and node.value.type is not None and declared != node.value.type:
        return False
    return not isinstance(node.value, Function) or node.var not in free_vars(node.value)
