"""The ensemble of trees that serves for every purpose, from version 5 on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx

import serde.relay as relay
from serde.core import Array, dataclass
from serde.core.allocation import bincount, full, zeros
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.ml.scores import refuse_transform, to_feature_rows, transform
from serde.onnx.ops.ml.trees import MODES, UNORDERED, Forest, find_leaves
from serde.onnx.ops.table import ML, Import
from serde.relay.ir.expr import Expr


@dataclass(frozen=True)
class Leaves:
    """What the leaves of a forest add to the scores: a number each for some of the targets."""

    forest: Forest
    nodes: Array
    targets: Array
    values: Array
    count: int

    def __post_init__(self) -> None:
        if not len(self.nodes) == len(self.targets) == len(self.values):
            raise Unsupported(f"{len(self.values)} weights for {len(self.targets)} targets")
        if len(self.targets) and not 0 <= self.targets.min() <= self.targets.max() < self.count:
            raise Unsupported(f"target {self.targets.max()} of {self.count}")

    @property
    def single(self) -> bool:
        """Whether each tree adds one number to one target, whatever leaf is reached."""
        leaves = np.flatnonzero(self.forest.leaves)
        if not np.array_equal(np.sort(self.nodes), leaves) or not np.isfinite(self.values).all():
            return False
        trees = self.forest.trees[self.nodes]
        first = full(len(self.forest.roots), -1, np.int64)
        first[trees] = self.targets
        return bool((first[trees] == self.targets).all())

    @property
    def covered(self) -> bool:
        """Whether every target gets something from some tree, whatever leaf is reached."""
        given = np.unique(np.stack([self.nodes, self.targets]), axis=1)
        shape = (len(self.forest.roots), self.count)
        found = zeros(shape, np.int64)
        np.add.at(found, (self.forest.trees[given[0]], given[1]), 1)
        leaves = bincount(self.forest.trees[self.forest.leaves], minlength=shape[0])
        return bool((found == leaves[:, None]).any(axis=0).all())

    def table(self, filler: float) -> Array:
        """Return a row of targets for each node, `filler` where a leaf says nothing.

        Raises:
            LimitError: It would be very large.
            Unsupported: A leaf gives one target two weights.
        """
        rows = len(self.forest.features)
        found = full((rows, self.count), filler, self.values.dtype)
        if filler == 0:
            np.add.at(found, (self.nodes, self.targets), self.values)
        elif len(np.unique(np.stack([self.nodes, self.targets]), axis=1).T) < len(self.nodes):
            raise Unsupported("a leaf gives one target two weights")
        else:
            found[self.nodes, self.targets] = self.values
        return found

    def scores(self, ctx: Import, x: Expr, aggregate: str) -> Expr:
        """Return what the reached leaves give each target, put together."""
        if aggregate not in ("SUM", "AVERAGE", "MIN", "MAX"):
            raise Unsupported(f"aggregate_function {aggregate!r} is unknown")
        indices = find_leaves(ctx, x, self.forest)
        if aggregate in ("MIN", "MAX"):
            if not self.covered:
                raise Unsupported(f"aggregate_function {aggregate!r} of targets without weights")
            reduce, filler = (relay.min, np.inf) if aggregate == "MIN" else (relay.max, -np.inf)
            rows = relay.take(ctx.array(self.table(filler)), indices, axis=0, mode="fast")
            return reduce(rows, axis=1)
        found = self._sums(ctx, indices)
        if aggregate == "SUM":
            return found
        return relay.divide(found, scalar_like(ctx, found, len(self.forest.roots)))

    def _sums(self, ctx: Import, indices: Expr) -> Expr:
        if not self.single:
            rows = relay.take(ctx.array(self.table(0.0)), indices, axis=0, mode="fast")
            return relay.sum(rows, axis=1)
        values = zeros(len(self.forest.features), self.values.dtype)
        values[self.nodes] = self.values
        found = relay.take(ctx.array(values), indices, axis=0, mode="fast")
        if self.count == 1:
            return relay.sum(found, axis=1, keepdims=True)
        owners = zeros((self.count, len(self.forest.roots)), values.dtype)
        owners[self.targets, self.forest.trees[self.nodes]] = 1
        return relay.nn.dense(found, ctx.array(owners))


_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")

_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")

_BRANCHES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "EQ")

_MEMBER = 6
"""The mode of a node that asks whether a feature is one of several values."""


@ML.imports("TreeEnsemble", since=5, ignored=["nodes_hitrates"])
def import_tree_ensemble(
    ctx: Import, x: Expr,
    *, aggregate_function: int = 1, leaf_targetids: tuple[int, ...], leaf_weights: onnx.TensorProto,
    membership_values: onnx.TensorProto | None = None, n_targets: int,
    nodes_falseleafs: tuple[int, ...], nodes_falsenodeids: tuple[int, ...],
    nodes_featureids: tuple[int, ...], nodes_missing_value_tracks_true: tuple[int, ...] = (),
    nodes_modes: onnx.TensorProto, nodes_splits: onnx.TensorProto, nodes_trueleafs: tuple[int, ...],
    nodes_truenodeids: tuple[int, ...], post_transform: int = 0, tree_roots: tuple[int, ...],
) -> Expr:  # fmt: skip
    """Whether a child is a leaf or a node is in ``nodes_trueleafs`` and ``nodes_falseleafs``."""
    if not (0 <= aggregate_function < len(_AGGREGATES) and 0 <= post_transform < len(_TRANSFORMS)):
        raise Unsupported(
            f"aggregate_function {aggregate_function} or post_transform {post_transform}"
        )
    branches = _Branches(
        nodes_featureids,
        _read_vector(ctx, nodes_splits, "float"),
        _read_vector(ctx, nodes_modes, "uint8").tolist(),
        (nodes_truenodeids, nodes_falsenodeids),
        (nodes_trueleafs, nodes_falseleafs),
        nodes_missing_value_tracks_true or (0,) * len(nodes_featureids),
        np.zeros(0) if membership_values is None else _read_vector(ctx, membership_values, "float"),
    )
    forest = branches.forest(tree_roots, leaf_targetids)
    indices = np.flatnonzero(forest.children[0] == np.arange(len(forest.features)))
    values = _read_vector(ctx, leaf_weights, "float")
    used = forest.trees[indices] >= 0
    if len(values) != len(leaf_targetids):
        raise Unsupported(f"{len(values)} weights for {len(leaf_targetids)} leaves")
    targets = np.array(leaf_targetids, np.int64)
    leaves = Leaves(forest, indices[used], targets[used], values[used], n_targets)
    rows = to_feature_rows(ctx, x, ctx.type(x).dtype)
    scores = leaves.scores(ctx, rows, _AGGREGATES[aggregate_function])
    if n_targets == 1:
        refuse_transform(_TRANSFORMS[post_transform], "a single target")
    return transform(ctx, scores, _TRANSFORMS[post_transform])


def _read_vector(ctx: Import, tensor: onnx.TensorProto, kind: str) -> Array:
    """Return the elements of a tensor."""
    found = ctx.values(tensor)
    if found.ndim != 1 or not str(found.dtype).startswith(kind):
        raise Unsupported(f"expected a vector of {kind}, found {found.dtype}{list(found.shape)}")
    return found


@dataclass(frozen=True)
class _Branches:
    """The nodes of an ensemble without its leaves; children are branches or leaves by number."""

    features: Sequence[int]
    splits: Array
    modes: Sequence[int]
    children: tuple[Sequence[int], Sequence[int]]
    are_leaves: tuple[Sequence[int], Sequence[int]]
    missing: Sequence[int]
    members: Array

    def forest(self, roots: Sequence[int], leaves: Sequence[int]) -> Forest:
        """Return a table of the branches, then of what sets need besides, then of the leaves.

        Args:
            roots: The number of the first branch of each tree.
            leaves: Anything of every leaf.
        """
        count = len(self.features)
        lists = (self.splits, self.modes, *self.children, *self.are_leaves, self.missing)
        if any(len(each) != count for each in lists):
            raise Unsupported(f"the lists of {count} nodes have several lengths")
        sets = dict(self._sets())
        total = count + sum(max(len(each), 1) - 1 for each in sets.values())
        size = total + len(leaves)
        features = np.zeros(size, np.int64)
        thresholds = np.zeros(size, self.splits.dtype)
        outcomes = np.zeros((size, 4), bool)
        children = np.tile(np.arange(size), (2, 1))
        free = count
        for node in range(count):
            following = [self._child(side, node, total, len(leaves)) for side in (0, 1)]
            rows = [node, *range(free, free + max(len(sets.get(node, ())), 1) - 1)]
            free += len(rows) - 1
            features[rows] = self.features[node]
            children[0, rows] = following[0]
            children[1, rows] = [*rows[1:], following[1]]
            thresholds[rows] = self._thresholds(node, sets)
            outcomes[rows] = self._outcomes(node, bool(len(sets.get(node, (0,)))))
        starts = np.array([self._check_node(root, "root") for root in roots], np.int64)
        return Forest.of(features.tolist(), thresholds, outcomes, children, starts)

    def _sets(self) -> Iterator[tuple[int, Array]]:
        """Yield the values of each node that asks for one of several; NaN ends each list."""
        nodes = [node for node, mode in enumerate(self.modes) if mode == _MEMBER]
        ends = np.flatnonzero(np.isnan(self.members))
        if len(ends) != len(nodes):
            raise Unsupported(f"{len(ends)} sets of values for {len(nodes)} nodes")
        start = 0
        for node, end in zip(nodes, ends, strict=True):
            yield node, self.members[start:end]
            start = end + 1

    def _thresholds(self, node: int, sets: dict[int, Array]) -> Array:
        found = sets.get(node, self.splits[node : node + 1])
        return found if len(found) else np.zeros(1, self.splits.dtype)

    def _outcomes(self, node: int, possible: bool) -> Array:
        """Return how feature and threshold must compare, which for an empty set they cannot."""
        mode = self.modes[node]
        if not 0 <= mode <= _MEMBER:
            raise Unsupported(f"mode {mode} of node {node} is unknown")
        found = np.zeros(4, bool)
        if possible:
            found[list(MODES[f"BRANCH_{_BRANCHES[mode]}"])] = True
        found[UNORDERED] |= bool(self.missing[node])
        return found

    def _child(self, side: int, node: int, total: int, leaves: int) -> int:
        number = self.children[side][node]
        if not self.are_leaves[side][node]:
            return self._check_node(number, f"node {node}")
        if not 0 <= number < leaves:
            raise Unsupported(f"node {node} names leaf {number} of {leaves}")
        return total + number

    def _check_node(self, number: int, what: str) -> int:
        if not 0 <= number < len(self.features):
            raise Unsupported(f"{what} names node {number} of {len(self.features)}")
        return number
