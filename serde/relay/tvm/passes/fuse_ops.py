"""Grouping of operators into functions that a backend runs as one kernel, and its inverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from serde.core.records import dataclass, field
from serde.relay.ir import FusionPattern, OpDef, Reshape, TensorType, has_trait, instantiate
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var, is_absent
from serde.relay.ir.visit import post_order, rebuild, rewrite_function
from serde.relay.transform.base import TvmFunctionPass
from serde.relay.transform.context import PassContext
from serde.relay.transform.inline_calls import symbols_agree
from serde.relay.tvm.passes.fusion_graph import OPAQUE_ATTRS, FusionGraph, PostDominators, parts
from serde.relay.tvm.passes.typed import TypedPass

__all__ = ["DefuseOps", "FuseOps"]

_Condition = Callable[[FusionPattern, bool], bool]
"""Whether a group of this pattern may be fused; the second says that it is the last one."""


@dataclass(frozen=True)
class FuseOps(TypedPass):
    """Group operators into functions with ``Primitive=1``, as TVM does.

    Every call of an operator ends in such a function. Whether it shares one follows from the
    patterns of the operators (:mod:`serde.relay.ir.registry`) on all ways from a call
    to its immediate post-dominator: elementwise and broadcasting operators go into what they
    feed; what is elementwise goes into the convolution, product or pooling it follows; then
    operators that move elements join what they feed, and tuples inside are filled. Scalar
    constants go along; other values become parameters ``p0``, ``p1``, ... A function of nothing
    but reshapes has the attribute ``relay.reshape_only=1``.

    The configuration of the current :class:`PassContext` is asked for ``relay.FuseOps.max_depth``,
    the most nodes of one function, and ``relay.FuseOps.link_params``, whether all constants go
    along. ``annotation.stop_fusion`` parts what is before it from what is after it, and goes.

    Args:
        fuse_opt_level: 0 puts each operator into a function of its own; above 0 groups; -1 is
            the level of the current context.
        max_fuse_depth: Most nodes of one function, where the context does not say.
    """

    name: ClassVar[str] = "FuseOps"

    fuse_opt_level: int = -1
    max_fuse_depth: int = 256

    def transform(self, function: Function) -> Function:
        """Group the nodes, then make a function of each group."""
        if any(key in function.attrs for key in OPAQUE_ATTRS):
            return function
        context = PassContext.current()
        graph = FusionGraph(function)
        depth = context.config.get("relay.FuseOps.max_depth", self.max_fuse_depth)
        groups = _Groups(graph, int(depth))
        level = context.opt_level if self.fuse_opt_level < 0 else self.fuse_opt_level
        if level > 0:
            groups.fuse(PostDominators(graph))
        link = bool(context.config.get("relay.FuseOps.link_params", False))
        result = _Grouper(graph, groups, link_params=link).run()
        return result if isinstance(result, Function) else function


class DefuseOps(TvmFunctionPass):
    """Put the body of each function with ``Primitive`` where it is called: undo :class:`FuseOps`.

    A function whose attributes name a dimension that the caller calls otherwise stays.
    """

    name: ClassVar[str] = "DefuseOps"
    opt_level: ClassVar[int] = 3

    def transform(self, function: Function) -> Function:
        """Replace calls bottom-up."""

        def replace(_node: Expr, new: Expr) -> Expr:
            callee = new.op if isinstance(new, Call) else None
            if not isinstance(new, Call) or not isinstance(callee, Function):
                return new
            if not callee.attrs.get("Primitive") or not symbols_agree(callee, new.args):
                return new
            return instantiate(callee, new.args)

        return rewrite_function(function, replace)


class _Groups:
    """A partition of the nodes; a group is named by its last node, which yields its result."""

    def __init__(self, graph: FusionGraph, most: int) -> None:
        self._graph = graph
        self._most = most
        self._above = list(range(len(graph.order)))
        self._sizes = [1] * len(graph.order)
        self._patterns = list(graph.patterns)
        heavy = FusionPattern.OUT_ELEMWISE_FUSABLE
        self._anchored = [pattern is heavy for pattern in graph.patterns]

    def root(self, place: int) -> int:
        """Return the last node of the group of a node."""
        top = place
        while self._above[top] != top:
            top = self._above[top]
        while self._above[place] != top:
            self._above[place], place = top, self._above[place]
        return top

    def fuse(self, tree: PostDominators) -> None:
        """Join groups in three rounds: around heavy operators, injective ones, into tuples."""
        for phase in range(3):
            for index in range(len(self._graph.order)):
                self._fuse_node(index, tree, phase)

    def _fuse_node(self, index: int, tree: PostDominators, phase: int) -> None:
        pattern, sink = self._patterns[index], tree.parent[index]
        if pattern is FusionPattern.OPAQUE or sink == tree.root:
            return
        between = self._between(index, sink)
        if between is None:
            return
        target = self._patterns[sink]
        allowed: _Condition | None = None
        if phase == 2:
            final = self._patterns[self.root(sink)]
            into_tuple = target is FusionPattern.TUPLE and final <= FusionPattern.INJECTIVE
            if pattern <= FusionPattern.INJECTIVE and into_tuple:
                allowed = _is_injective
        elif target is not FusionPattern.TUPLE and self.root(index) != self.root(sink):
            allowed = _condition(pattern, tree.pattern[index], phase)
        if allowed is not None and self._holds(between, sink, allowed):
            for each in between:
                self._merge(each, sink)

    def _between(self, index: int, sink: int) -> list[int] | None:
        """Return the nodes from `index` up to `sink`, or None if the group became too large."""
        size = self._sizes[self.root(sink)]
        found: list[int] = []
        seen = {sink}
        pending = [index]
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            found.append(node)
            size += self._sizes[node]
            if size > self._most:
                return None
            pending.extend(edge.user for edge in self._graph.outputs[node])
        return found

    def _holds(self, between: list[int], sink: int, allowed: _Condition) -> bool:
        inner = all(allowed(self._patterns[self.root(node)], False) for node in between[1:])
        return inner and allowed(self._patterns[self.root(sink)], True)

    def _merge(self, index: int, sink: int) -> None:
        child, parent = self.root(index), self.root(sink)
        if child == parent:
            return
        self._sizes[parent] += self._sizes[child]
        self._above[child] = parent
        if self._anchored[child]:
            self._anchored[parent] = True
            self._patterns[parent] = max(self._patterns[child], self._patterns[parent])


def _condition(pattern: FusionPattern, way: FusionPattern, phase: int) -> _Condition | None:
    """Return what the groups up to the post-dominator must be, or None if it is not for now."""
    if pattern is FusionPattern.OUT_ELEMWISE_FUSABLE:
        first = phase == 0 and way is FusionPattern.ELEMWISE
        return _is_broadcast if first else None
    if pattern <= FusionPattern.BROADCAST:
        return _takes_broadcast if way <= FusionPattern.COMM_REDUCE else None
    if pattern in (FusionPattern.INJECTIVE, FusionPattern.TUPLE):
        return _is_injective if phase == 1 else None
    return None


def _is_broadcast(pattern: FusionPattern, _is_sink: bool) -> bool:
    return pattern <= FusionPattern.BROADCAST


def _is_injective(pattern: FusionPattern, _is_sink: bool) -> bool:
    return pattern <= FusionPattern.INJECTIVE


def _takes_broadcast(pattern: FusionPattern, is_sink: bool) -> bool:
    most = FusionPattern.OUT_ELEMWISE_FUSABLE if is_sink else FusionPattern.INJECTIVE
    return pattern <= most


@dataclass
class _Interface:
    """Parameters of the function of one group, and what they stand for."""

    params: list[Var] = field(default_factory=list)
    arguments: list[Expr] = field(default_factory=list)
    known: dict[Expr, Var] = field(default_factory=dict)

    def param(self, argument: Expr) -> Var:
        """Return the parameter for `argument`, a new one if it has none."""
        if argument not in self.known:
            self.known[argument] = Var(f"p{len(self.params)}", argument.type)
            self.params.append(self.known[argument])
            self.arguments.append(argument)
        return self.known[argument]


class _Grouper:
    """Builds the functions of the groups, children first."""

    def __init__(self, graph: FusionGraph, groups: _Groups, *, link_params: bool) -> None:
        self._graph = graph
        self._groups = groups
        self._link_params = link_params
        self._done: dict[Expr, Expr] = {}
        self._interfaces: dict[int, _Interface] = {}

    def run(self) -> Expr:
        """Return what the root has become."""
        for index, node in enumerate(self._graph.order):
            self._done[node] = self._group_node(index, node)
        return self._done[self._graph.order[-1]]

    def _group_node(self, index: int, node: Expr) -> Expr:
        root = self._groups.root(index)
        if isinstance(node, Call) and isinstance(node.op, OpDef):
            if node.op.name == "annotation.stop_fusion":
                return self._done[node.args[0]]
            new: Expr = Call(
                node.op, self._arguments(node, node.op, root), node.attrs, span=node.span
            )
            new.type = node.type
            return self._function(root, new) if root == index else new
        if isinstance(node, Tuple) and root != index:
            fields = [self._argument(field, root) for field in node.fields]
            return rebuild(node, fields)
        if isinstance(node, TupleGetItem):
            inside = self._groups.root(self._graph.index[node.tuple_value]) == root
            if inside or root != index:
                new = rebuild(node, [self._argument(node.tuple_value, root)])
                return self._function(root, new) if root == index else new
        below = parts(node)
        return rebuild(node, [self._done[child] for child in below]) if below else node

    def _arguments(self, node: Call, definition: OpDef, root: int) -> list[Expr]:
        return [
            argument
            if operand.name in definition.by_value and isinstance(argument, Constant)
            else self._argument(argument, root)
            for operand, argument in zip(definition.operands, node.args, strict=True)
        ]

    def _argument(self, node: Expr, root: int) -> Expr:
        """Return what a node is inside the group `root`: itself, or a parameter."""
        new = self._done[node]
        if is_absent(node) or (self._link_params and isinstance(new, Constant)):
            return new
        if self._groups.root(self._graph.index[node]) == root:
            return new
        return self._interfaces.setdefault(root, _Interface()).param(new)

    def _function(self, root: int, body: Expr) -> Expr:
        interface = self._interfaces.pop(root, _Interface())
        attrs = {"Primitive": 1}
        if _only_reshapes(body):
            attrs["relay.reshape_only"] = 1
        function = Function(interface.params, body, body.type, attrs=attrs)
        result = Call(function, interface.arguments, span=body.span)
        result.type = body.type
        return result


def _only_reshapes(body: Expr) -> bool:
    """Whether the calls of a function are reshapes of tensors, and there are some."""
    nodes = post_order(body)
    calls = [node for node in nodes if isinstance(node, Call)]
    tensors = all(isinstance(node.type, TensorType) for node in nodes if isinstance(node, Var))
    return bool(calls) and tensors and all(has_trait(each, Reshape) for each in calls)
