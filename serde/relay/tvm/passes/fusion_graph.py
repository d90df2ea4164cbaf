"""What operator fusion looks at: who uses a value and how, and where all uses meet again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from serde.core.records import dataclass
from serde.relay.ir import FusionPattern, OpDef, TensorType, TupleType, children, pattern_of
from serde.relay.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem

__all__ = ["OPAQUE_ATTRS", "FusionGraph", "PostDominators", "parts", "walk"]

OPAQUE_ATTRS = ("Primitive", "Composite", "Compiler", "Extern")
"""Attributes of functions that stay as they are."""

_SIMPLE_DTYPES = frozenset({"int32", "int64", "float32", "float64", "bool"})


def parts(node: Expr) -> tuple[Expr, ...]:
    """Return the children of a node; a function that stays as it is has none."""
    whole = isinstance(node, Function) and any(key in node.attrs for key in OPAQUE_ATTRS)
    return () if whole else children(node)


def walk(root: Expr) -> list[Expr]:
    """Return the nodes below and including `root`, children first."""
    order: list[Expr] = []
    seen = {root}
    stack: list[tuple[Expr, Iterator[Expr]]] = [(root, iter(parts(root)))]
    while stack:
        node, pending = stack[-1]
        child = next((each for each in pending if each not in seen), None)
        if child is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(child)
            stack.append((child, iter(parts(child))))
    return order


@dataclass(frozen=True)
class _Edge:
    user: int
    pattern: FusionPattern


class FusionGraph:
    """The nodes below a function, each with its pattern and its uses.

    Attributes:
        order: Nodes, children first; a node is named by its place here.
        index: Place of each node.
        patterns: Pattern of each node.
        outputs: Uses of each node.
        external: Whether a node is also used where nothing can be fused: as a result, a
            condition, what a let binds, a reference holds or a match looks at.
    """

    def __init__(self, root: Expr) -> None:
        self.order = walk(root)
        self.index = {node: index for index, node in enumerate(self.order)}
        self.patterns = [FusionPattern.OPAQUE] * len(self.order)
        self.outputs: list[list[_Edge]] = [[] for _ in self.order]
        self.external = [False] * len(self.order)
        self.external[-1] = True
        for index, node in enumerate(self.order):
            self._enter(index, node)

    def _enter(self, index: int, node: Expr) -> None:
        """Note the pattern of a node and the edges to its inputs."""
        if isinstance(node, Call):
            self._enter_call(index, node)
        elif isinstance(node, Constant):
            if node.data.ndim == 0 and str(node.data.dtype) in _SIMPLE_DTYPES:
                self.patterns[index] = FusionPattern.ELEMWISE
        elif isinstance(node, Tuple):
            self.patterns[index] = FusionPattern.TUPLE
            for field in node.fields:
                whole = isinstance(field.type, TensorType)
                self._use(field, index if whole else None, FusionPattern.INJECTIVE)
        elif isinstance(node, TupleGetItem):
            type_ = node.tuple_value.type
            flat = isinstance(type_, TupleType) and all(
                isinstance(field, TensorType) for field in type_.fields
            )
            if flat:
                self.patterns[index] = FusionPattern.INJECTIVE
            self._use(node.tuple_value, index if flat else None, FusionPattern.INJECTIVE)
        else:
            for child in parts(node):
                self._use(child, None, FusionPattern.OPAQUE)

    def _enter_call(self, index: int, node: Call) -> None:
        pattern = FusionPattern.OPAQUE
        if isinstance(node.op, OpDef):
            pattern = FusionPattern.OPAQUE if _depends_on_data(node) else pattern_of(node.op)
        self.patterns[index] = pattern
        for child in children(node):
            same = pattern is FusionPattern.BROADCAST and _same_shape(node, child)
            self._use(child, index, FusionPattern.ELEMWISE if same else pattern)

    def _use(self, node: Expr, user: int | None, pattern: FusionPattern) -> None:
        place = self.index[node]
        if user is None:
            self.external[place] = True
        else:
            self.outputs[place].append(_Edge(user, pattern))


def _depends_on_data(node: Call) -> bool:
    """Whether the shape of a result depends on values that are not known."""
    definition = node.op
    if not isinstance(definition, OpDef) or not definition.by_value:
        return False
    if not isinstance(node.type, TensorType) or node.type.concrete_shape is not None:
        return False
    return any(
        operand.name in definition.by_value and not isinstance(argument, Constant)
        for operand, argument in zip(definition.operands, node.args, strict=True)
    )


def _same_shape(left: Expr, right: Expr) -> bool:
    if not isinstance(left.type, TensorType) or not isinstance(right.type, TensorType):
        return False
    return left.type.shape == right.type.shape


class PostDominators:
    """For each node the nearest one that all its uses lead to.

    Each node keeps, beside its parent, one jump further up, as in a skip list; so two nodes
    find where they meet in logarithmic time. The last entry is the root, above all.

    Attributes:
        parent: The nearest node that all uses lead to; the length of the graph if none.
        pattern: The least simple pattern on the ways there.
    """

    def __init__(self, graph: FusionGraph) -> None:
        self.root = len(graph.order)
        self.parent = [self.root] * (self.root + 1)
        self.pattern = [FusionPattern.OPAQUE] * (self.root + 1)
        self._depth = np.zeros(self.root + 1, dtype=np.int64).tolist()
        self._jump = [self.root] * (self.root + 1)
        self._jump_pattern = [FusionPattern.OPAQUE] * (self.root + 1)
        for index in reversed(range(self.root)):
            self._enter(index, graph.outputs[index], external=graph.external[index])

    def _enter(self, index: int, outputs: Sequence[_Edge], *, external: bool) -> None:
        parent, pattern = self.root, FusionPattern.OPAQUE
        if outputs and not external:
            parent, pattern = outputs[0].user, outputs[0].pattern
            for edge in outputs[1:]:
                parent, between = self._meet(parent, edge.user)
                pattern = max(pattern, edge.pattern, between)
        self.parent[index], self.pattern[index] = parent, pattern
        self._depth[index] = self._depth[parent] + 1
        near = self._jump[parent]
        far = self._jump[near]
        if self._depth[parent] - self._depth[near] == self._depth[near] - self._depth[far]:
            self._jump[index] = far
            passed = max(self._jump_pattern[parent], self._jump_pattern[near])
            self._jump_pattern[index] = max(pattern, passed)
        else:
            self._jump[index] = parent
            self._jump_pattern[index] = pattern

    def _meet(self, left: int, right: int) -> tuple[int, FusionPattern]:
        """Return the nearest common ancestor, and the least simple pattern on the ways."""
        pattern = FusionPattern.ELEMWISE
        depth = self._depth
        if depth[left] < depth[right]:
            left, right = right, left
        while depth[left] > depth[right]:
            if depth[self._jump[left]] >= depth[right]:
                pattern, left = max(pattern, self._jump_pattern[left]), self._jump[left]
            else:
                pattern, left = max(pattern, self.pattern[left]), self.parent[left]
        while left != right:
            if self._jump[left] != self._jump[right]:
                pattern = max(pattern, self._jump_pattern[left], self._jump_pattern[right])
                left, right = self._jump[left], self._jump[right]
            else:
                pattern = max(pattern, self.pattern[left], self.pattern[right])
                left, right = self.parent[left], self.parent[right]
        return left, pattern
