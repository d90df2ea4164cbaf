"""What the leaves of an ensemble of trees add up to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import serde.relay as relay
from serde.core.allocation import bincount, full, zeros
from serde.core.weights import Array
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.ml.trees import Forest, find_leaves
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

    def scores(self, ctx: ImportContext, x: Expr, aggregate: str) -> Expr:
        """Return what the reached leaves give each target, put together.

        Raises:
            Unsupported: There is no such function, or a target may get nothing of which it
                would be the least or the greatest.
        """
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

    def _sums(self, ctx: ImportContext, indices: Expr) -> Expr:
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
