"""Ensembles of decision trees as arrays, and the walk down all of them at once.

All nodes of all trees lie in one table. Each sample has a node in every tree; a step gathers
feature and threshold of each node and goes on to one of the two children. A leaf is its own
child, so that as many steps as the deepest tree has bring every sample to a leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

import serde.relay as relay
from serde.core import Array, dataclass, numpy_dtype
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.relay.ir import Expr, Function, TensorType, Tuple, TupleGetItem, Var, call

LESS, EQUAL, GREATER, UNORDERED = range(4)


MOST_UNROLLED = 32
"""Depth up to which every step has nodes of its own; deeper trees are walked by a loop."""


MODES = {
    "BRANCH_LEQ": (LESS, EQUAL),
    "BRANCH_LT": (LESS,),
    "BRANCH_GTE": (GREATER, EQUAL),
    "BRANCH_GT": (GREATER,),
    "BRANCH_EQ": (EQUAL,),
    "BRANCH_NEQ": (LESS, GREATER, UNORDERED),
    "LEAF": (),
}
"""How feature and threshold must compare for the first child to follow."""


@dataclass(frozen=True)
class Forest:
    """The nodes of an ensemble.

    Attributes:
        features: The feature that each node compares.
        thresholds: What it is compared with.
        outcomes: For each node and each of LESS, EQUAL, GREATER and UNORDERED, whether the
            first child follows.
        children: The first and the second child of each node; a leaf is its own.
        roots: The first node of each tree.
        depth: Steps from a root to the deepest leaf.
        trees: The tree of each node.
    """

    features: Array
    thresholds: Array
    outcomes: Array
    children: Array
    roots: Array
    depth: int
    trees: Array

    @classmethod
    def of(
        cls,
        features: Sequence[int],
        thresholds: Array,
        outcomes: Array,
        children: Array,
        roots: Array,
    ) -> Forest:
        """Return a forest, its depth and trees found by walking down."""
        count = len(features)
        if not count or not len(roots):
            raise Unsupported("the ensemble has no nodes")
        if not count == len(thresholds) == len(outcomes) == children.shape[1]:
            raise Unsupported(f"{count} features for {len(thresholds)} thresholds")
        trees, depth = _walk_trees(children.tolist(), roots.tolist())
        inner = children[0] != np.arange(count)
        compared = np.where(inner, np.array(features, np.int64), 0)
        wrong = compared[(compared < 0) | (compared > np.iinfo(np.int32).max)]
        if wrong.size:
            raise Unsupported(f"feature {wrong[0]} is compared")
        return cls(compared.astype(np.int32), thresholds, outcomes, children, roots, depth, trees)

    @property
    def leaves(self) -> Array:
        """Which nodes are leaves of a tree."""
        own = self.children[0] == np.arange(len(self.features))
        return own & (self.trees >= 0)


def _walk_trees(children: Sequence[Sequence[int]], roots: Sequence[int]) -> tuple[Array, int]:
    """Return the tree of each node, -1 where it is in none, and the depth of the deepest."""
    count = len(children[0])
    trees = [-1] * count
    height = [-1] * count
    for tree, root in enumerate(roots):
        pending = [(root, False)]
        while pending:
            node, done = pending.pop()
            below = [side[node] for side in children if side[node] != node]
            if done:
                height[node] = max((height[each] + 1 for each in below), default=0)
                continue
            if trees[node] == tree and height[node] >= 0:
                continue
            if trees[node] >= 0:
                raise Unsupported("a node is below itself, or in two trees")
            trees[node] = tree
            pending.append((node, True))
            pending += [(each, False) for each in below]
    return np.array(trees, np.int64), max(height[root] for root in roots)


def find_nodes(trees: Sequence[int], nodes: Sequence[int], wanted: tuple[Array, Array]) -> Array:
    """Return the indices of nodes that are named by tree and number.

    Args:
        trees: Tree of each node of the table.
        nodes: Its number there.
        wanted: Trees and numbers of those that are sought.
    """
    known = {pair: position for position, pair in enumerate(zip(trees, nodes, strict=True))}
    if len(known) < len(trees):
        raise Unsupported("a node is given twice")
    pairs = list(zip(*(each.tolist() for each in wanted), strict=True))
    absent = next((pair for pair in pairs if pair not in known), None)
    if absent is not None:
        raise Unsupported(f"tree {absent[0]} has no node {absent[1]}")
    return np.array([known[pair] for pair in pairs], np.int64)


def find_leaves(ctx: ImportContext, x: Expr, forest: Forest) -> Expr:
    """Return the leaf that each sample reaches in each tree, as indices into the table.

    Args:
        ctx: The context of the node.
        x: One row of features a sample.
        forest: The trees.
    """
    columns = ctx.type(x).shape[1]
    if isinstance(columns, int) and forest.features.max() >= columns:
        raise Unsupported(f"feature {forest.features.max()} of {columns} is compared")
    table = _Table(ctx, forest, numpy_dtype(ctx.type(x).dtype))
    roots = relay.const(forest.roots[None].astype(np.int32))
    values = relay.take(x, relay.Constant(forest.features[forest.roots]), axis=1, mode="fast")
    indices = table.follow(values, roots)
    if forest.depth <= MOST_UNROLLED:
        for _ in range(forest.depth - 1):
            indices = table.step(x, indices)
        return indices
    return _loop_steps(ctx, x, indices, table, forest.depth - 1)


def _loop_steps(ctx: ImportContext, x: Expr, indices: Expr, table: _Table, count: int) -> Expr:
    """Return the nodes after `count` further steps, as a loop."""
    columns = list(table.columns)
    given = [x, *(table.column(name) for name in columns)]
    number = Var("step", TensorType((), "int64"))
    at, rows = Var("places", ctx.type(indices)), Var("features", ctx.type(x))
    inner = [Var(name, ctx.type(column)) for name, column in zip(columns, given[1:], strict=True)]
    within = table.over(dict(zip(columns, inner, strict=True)))
    body = Tuple([relay.const(True, "bool"), within.step(rows, at)])
    function = Function([number, at, rows, *inner], body)
    limit = relay.Constant(np.array(count, np.int64))
    return TupleGetItem(call("serde.loop", limit, None, (indices,), tuple(given), body=function), 0)


class _Table:
    """The columns of a forest's table as expressions.

    Attributes:
        columns: The names of those that a step looks up.
    """

    def __init__(self, ctx: ImportContext, forest: Forest, dtype: np.dtype[np.generic]) -> None:
        inner = forest.children[0] != np.arange(len(forest.features))
        outcomes = forest.outcomes[inner]
        uniform = len(np.unique(outcomes, axis=0)) <= 1
        arrays = {
            "features": forest.features,
            "thresholds": forest.thresholds.astype(dtype),
            "first": forest.children[0].astype(np.int32),
            "second": forest.children[1].astype(np.int32),
        }
        if not uniform:
            used = [each for each in range(len(_HOLDS)) if outcomes[:, each].any()]
            arrays |= {f"outcome{each}": forest.outcomes[:, each] for each in used}
        self._outcomes = outcomes[0] if uniform and len(outcomes) else None
        self._expressions = {name: ctx.array(array) for name, array in arrays.items()}
        self.columns = tuple(arrays)

    def over(self, expressions: dict[str, Expr]) -> _Table:
        """Return the table with other expressions for its columns."""
        found = copy(self)
        found._expressions = expressions
        return found

    def column(self, name: str) -> Expr:
        """Return a column."""
        return self._expressions[name]

    def look_up(self, name: str, indices: Expr) -> Expr:
        """Return a column at each node."""
        return relay.take(self._expressions[name], indices, axis=0, mode="fast")

    def step(self, x: Expr, indices: Expr) -> Expr:
        """Return the child that follows each node."""
        values = relay.gather(x, 1, self.look_up("features", indices))
        return self.follow(values, indices)

    def follow(self, values: Expr, indices: Expr) -> Expr:
        """Return the child that follows, for the values of the features of nodes."""
        goes = self._compare(values, self.look_up("thresholds", indices), indices)
        return relay.where(goes, self.look_up("first", indices), self.look_up("second", indices))

    def _compare(self, values: Expr, threshold: Expr, indices: Expr) -> Expr:
        """Return whether the first child follows."""
        if self._outcomes is not None:
            return _compare_uniform(values, threshold, self._outcomes)
        found = relay.less(values, values)
        for name in self.columns:
            if name.startswith("outcome"):
                holds = _HOLDS[int(name.removeprefix("outcome"))](values, threshold)
                found = relay.logical_or(
                    found, relay.logical_and(holds, self.look_up(name, indices))
                )
        return found


_HOLDS = (relay.less, relay.equal, relay.greater, lambda x, y: relay.isnan(x))
"""For LESS, EQUAL, GREATER and UNORDERED, whether a value and a threshold compare so."""


_COMPARISONS = {
    (LESS, EQUAL): relay.less_equal,
    (LESS,): relay.less,
    (EQUAL, GREATER): relay.greater_equal,
    (GREATER,): relay.greater,
    (EQUAL,): relay.equal,
    (LESS, GREATER, UNORDERED): relay.not_equal,
}


def _compare_uniform(values: Expr, threshold: Expr, outcomes: Array) -> Expr:
    """Return the comparison that all nodes make."""
    wanted = tuple(int(each) for each in np.flatnonzero(outcomes))
    if wanted in _COMPARISONS:
        return _COMPARISONS[wanted](values, threshold)
    ordered = tuple(each for each in wanted if each != UNORDERED)
    return relay.logical_or(_COMPARISONS[ordered](values, threshold), relay.isnan(values))
