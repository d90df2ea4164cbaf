"""Relay functions that become local functions of an ONNX model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import numpy as np
import onnx
from onnx import helper

from serde.onnx.builder import FUNCTION_DOMAIN, GraphBuilder, GraphScope, Value, walk_nodes
from serde.onnx.foreign import write_node
from serde.relay.ir import Foreign, OpDef, UniqueNames, children, free_vars, post_order
from serde.relay.ir.expr import Call, Constant, Expr, Function, GlobalVar, TupleGetItem, Var
from serde.relay.ir.leaves import holds_values, leaf_names, leaves, value_types
from serde.relay.transform.merge_equal_nodes import exact_key
from serde.walk.export_context import Values, regroup

__all__ = ["FunctionCall", "LocalFunctions", "structure_of"]

_NAMING: Final = ("Composite", "PartitionedFromPattern")
_WHOLE: Final = ("Composite", "Primitive", "Compiler")
_SHOWN_OPERATORS: Final = 6


class LocalFunctions:
    """The local functions of a model; those that are equal are one.

    Args:
        builder: Collects the model.
    """

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self.known: dict[Hashable, onnx.FunctionProto | None] = {}
        self._structures: dict[Function, bytes] = {}
        self._names = UniqueNames()

    def call(
        self, function: Function, name: str, given: Sequence[Values[Value]]
    ) -> FunctionCall | None:
        """Return a call of `function`, or None where its nodes are to go where the call is.

        Args:
            function: What is called.
            name: Its global name, if it has one.
            given: Values of its parameters, then of the variables it takes from around it.
        """
        if not name and not any(key in function.attrs for key in _WHOLE):
            return None
        if not holds_values(function.body.type):
            return None
        if function not in self._structures:
            self._structures[function] = structure_of(function)
        roles = tuple(_role(leaf) for each in given for leaf in leaves(each))
        return FunctionCall(self, function, name, given, (self._structures[function], roles))

    def name(self, function: Function, name: str) -> str:
        """Return a readable name that no other function has."""
        given = [str(function.attrs[key]) for key in _NAMING if key in function.attrs]
        symbol = name or str(function.attrs.get("global_symbol", ""))
        base = next(iter([*given, symbol]), "") or _operators(function)
        base = re.sub(r"\W", "_", base).strip("_") or "function"
        base = f"_{base}" if base[0].isdigit() else base
        return self._names.reserve(base)


class FunctionCall:
    """The call of a local function that may have to be made first.

    Constants among the arguments are constants of the function, since some
    operators of ONNX need them where they are; all else is an input. Of an operator of another
    domain, every argument is one; its functions that differ are told apart by their overloads.
    """

    __slots__ = ("_given", "_global", "_inputs", "_key", "_node", "_owner", "function")

    def __init__(
        self,
        owner: LocalFunctions,
        function: Function,
        name: str,
        given: Sequence[Values[Value]],
        key: Hashable,
        node: Foreign | None = None,
    ) -> None:
        self._node = node
        self.function = function
        self._owner = owner
        self._global = name
        self._given = given
        self._key = key
        self._inputs: list[str] = []

    def is_known(self) -> bool:
        """Whether the function was made."""
        return self._key in self._owner.known

    def enter(self) -> tuple[GraphScope, dict[Expr, Values[Value] | None]]:
        """Begin the function: return its scope, and what its variables are there."""
        scope = GraphScope(step=self._owner.name(self.function, self._global))
        values: dict[Expr, Values[Value] | None] = {}
        variables = [*self.function.params, *free_vars(self.function)]
        for variable, given in zip(variables, self._given, strict=True):
            values[variable] = self._variable(scope, variable, given)
        return scope, values

    def _variable(self, scope: GraphScope, variable: Var, given: Values[Value]) -> Values[Value]:
        builder = self._owner.builder
        type_ = variable.checked_type
        made = []
        names = leaf_names(variable.name_hint, type_)
        for name, leaf, each in zip(names, leaves(given), value_types(type_), strict=True):
            if leaf.data is not None and self._node is None:
                made.append(builder.constant(scope, leaf.data))
                continue
            made.append(Value(builder.reserve(name), each))
            self._inputs.append(made[-1].name)
        return regroup(made, type_)

    def leave(self, scope: GraphScope, result: Values[Value] | None) -> None:
        """Make the function of the nodes that were collected, unless there was a gap."""
        owner = self._owner
        if result is None:
            owner.known[self._key] = None
            return
        outputs = owner.builder.own_outputs(scope, leaves(result), "result")
        proto = helper.make_function(FUNCTION_DOMAIN, scope.step, self._inputs, outputs, (), ())
        if self._node is not None:
            proto.domain, proto.name = self._node.domain, self._node.name
            proto.attribute.extend(sorted(self._node.plain_attributes))
            alike = [each.name for each in owner.builder.functions if each.domain == proto.domain]
            proto.overload = str(alike.count(proto.name) or "")
        for node in scope.nodes:
            node.add_to(proto)
        others = sorted({node.domain for node in walk_nodes(proto.node)} - {""})
        known = {"": owner.builder.version, **owner.builder.domains}
        proto.opset_import.extend(
            helper.make_opsetid(each, known.get(each, 1)) for each in ("", *others)
        )
        owner.known[self._key] = proto
        owner.builder.functions.append(proto)

    def emit(self, scope: GraphScope, source: str) -> tuple[Value, ...] | None:
        """Append the call to a scope, or return None where the function has a gap."""
        proto = self._owner.known[self._key]
        if proto is None:
            return None
        if self._node is not None:
            given = [leaf for each in self._given for leaf in leaves(each)]
            made = write_node(self._owner.builder, scope, self._node, given, source)
            scope.nodes[-1].overload = proto.overload
            return made
        inputs = [leaf for each in self._given for leaf in leaves(each) if leaf.data is None]
        return self._owner.builder.add_call(scope, proto, inputs, source)


def _role(leaf: Value) -> Hashable:
    """Return what a function depends on in an argument: nothing, unless it is a constant."""
    if leaf.data is None:
        return None
    return leaf.data.dtype.name, leaf.data.shape, leaf.data.tobytes()


def _operators(function: Function) -> str:
    """Return the name of a fused function after its operators."""
    called = (node.op for node in post_order(function.body) if isinstance(node, Call))
    names = [op.name for op in called if isinstance(op, OpDef)]
    shown = [*names[:_SHOWN_OPERATORS], *(["etc"] if len(names) > _SHOWN_OPERATORS else [])]
    return "_".join(["fused", *shown]) if shown else "function"


def structure_of(function: Function) -> bytes:
    """Return a digest of all that a function does, whatever its variables are called."""
    digest = hashlib.sha256()
    numbers: dict[Expr, int] = {}
    stack: list[tuple[Expr, Iterator[Expr]]] = [(function, iter(_within(function)))]
    while stack:
        node, pending = stack[-1]
        child = next((each for each in pending if each not in numbers), None)
        if child is not None:
            stack.append((child, iter(_within(child))))
            continue
        stack.pop()
        below = [numbers[each] for each in _within(node)]
        digest.update(repr((type(node).__name__, _describe_node(node), below)).encode())
        numbers[node] = len(numbers)
    return digest.digest()


def _within(node: Expr) -> tuple[Expr, ...]:
    """Return the children of a node and the bodies among its attributes."""
    if not isinstance(node, Call):
        return children(node)
    bodies = (value for value in node.attrs.values() if isinstance(value, Function))
    return (*children(node), *bodies)


def _describe_node(node: Expr) -> Hashable:
    """Return what a node says besides its children."""
    if isinstance(node, Var):
        return repr(node.type)
    if isinstance(node, Constant):
        data = hashlib.sha256(np.ascontiguousarray(node.data).tobytes())
        return node.data.dtype.name, node.data.shape, data.hexdigest()
    if isinstance(node, TupleGetItem):
        return node.index
    if isinstance(node, GlobalVar):
        return node.name_hint
    if not isinstance(node, Call):
        return None
    attrs = [
        (name, exact_key(value))
        for name, value in node.attrs.items()
        if not isinstance(value, Function)
    ]
    if isinstance(node.op, GlobalVar):
        return node.op.name_hint
    return (node.op.name, *attrs) if isinstance(node.op, OpDef) else None
