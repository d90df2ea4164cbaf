"""Ensembles of decision trees that are regressors or classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.ml.leaves import Leaves
from serde.onnx.ops.ml.scores import (
    cast_to_float32,
    pick_labels,
    read_labels,
    refuse_transform,
    to_feature_rows,
    transform,
)
from serde.onnx.ops.ml.trees import MODES, UNORDERED, Forest, find_nodes
from serde.onnx.ops.table import ML
from serde.relay.ir.expr import Expr
from serde.weights import Array

_UNUSED = ("nodes_hitrates", "nodes_hitrates_as_tensor")


@dataclass(frozen=True)
class _Nodes:
    """The attributes that describe nodes by tree and number."""

    trees: tuple[int, ...]
    numbers: tuple[int, ...]
    features: tuple[int, ...]
    modes: tuple[str, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    missing: tuple[int, ...]
    thresholds: Array

    def forest(self) -> Forest:
        """Return the nodes as a table.

        Raises:
            Unsupported: The lists do not fit together, or a mode is unknown.
        """
        count = len(self.numbers)
        lists = (self.trees, self.features, self.modes, self.first, self.second, self.thresholds)
        if any(len(each) != count for each in lists) or len(self.missing) not in (0, count):
            raise Unsupported(f"the lists of {count} nodes have several lengths")
        unknown = next((mode for mode in self.modes if mode not in MODES), None)
        if unknown is not None:
            raise Unsupported(f"mode {unknown!r} of a node is unknown")
        outcomes = np.zeros((count, 4), bool)
        for row, mode in enumerate(self.modes):
            outcomes[row, list(MODES[mode])] = True
        inner = np.array([mode != "LEAF" for mode in self.modes], bool)
        if self.missing:
            outcomes[:, UNORDERED] |= np.array(self.missing, bool) & inner
        trees = np.array(self.trees, np.int64)
        children = np.tile(np.arange(count), (2, 1))
        for row, numbers in enumerate((self.first, self.second)):
            wanted = (trees[inner], np.array(numbers, np.int64)[inner])
            children[row, inner] = find_nodes(self.trees, self.numbers, wanted)
        _, roots = np.unique(trees, return_index=True)
        return Forest.of(self.features, self.thresholds, outcomes, children, roots)

    def leaves(
        self, trees: Sequence[int], numbers: Sequence[int], targets: Sequence[int],
        values: Array, count: int,
    ) -> Leaves:  # fmt: skip
        """Return what leaves, named by tree and number, give to targets."""
        if not len(trees) == len(numbers) == len(targets):
            raise Unsupported(f"{len(targets)} targets for {len(numbers)} leaves")
        wanted = (np.array(trees, np.int64), np.array(numbers, np.int64))
        indices = find_nodes(self.trees, self.numbers, wanted)
        return Leaves(self.forest(), indices, np.array(targets, np.int64), values, count)


def _read_numbers(given: Sequence[float], tensor: onnx.TensorProto | None) -> Array:
    """Return numbers that are floats, or doubles in a tensor."""
    return np.array(given, np.float32) if tensor is None else numpy_helper.to_array(tensor)


def _to_rows(ctx: ImportContext, x: Expr, thresholds: Array) -> Expr:
    """Return the rows in the precision in which they are compared."""
    doubled = "float64" in (ctx.type(x).dtype, str(thresholds.dtype))
    return to_feature_rows(ctx, x, "float64" if doubled else "float32")


def _add_base(ctx: ImportContext, scores: Expr, base: Array) -> Expr:
    """Return scores on top of base values, where there are such, in float32."""
    if base.size:
        scores = relay.add(scores, ctx.array(base.astype(ctx.type(scores).dtype)))
    return cast_to_float32(ctx, scores)


@ML.imports("TreeEnsembleRegressor", since=(1, 3, 5), ignored=_UNUSED)
def import_tree_ensemble_regressor(
    ctx: ImportContext,
    x: Expr,
    *,
    aggregate_function: str = "SUM",
    base_values: tuple[float, ...] = (),
    base_values_as_tensor: onnx.TensorProto | None = None,
    n_targets: int,
    nodes_falsenodeids: tuple[int, ...],
    nodes_featureids: tuple[int, ...],
    nodes_missing_value_tracks_true: tuple[int, ...] = (),
    nodes_modes: tuple[str, ...],
    nodes_nodeids: tuple[int, ...],
    nodes_treeids: tuple[int, ...],
    nodes_truenodeids: tuple[int, ...],
    nodes_values: tuple[float, ...] = (),
    nodes_values_as_tensor: onnx.TensorProto | None = None,
    post_transform: str = "NONE",
    target_ids: tuple[int, ...],
    target_nodeids: tuple[int, ...],
    target_treeids: tuple[int, ...],
    target_weights: tuple[float, ...] = (),
    target_weights_as_tensor: onnx.TensorProto | None = None,
) -> Expr:
    nodes = _Nodes(
        nodes_treeids,
        nodes_nodeids,
        nodes_featureids,
        nodes_modes,
        nodes_truenodeids,
        nodes_falsenodeids,
        nodes_missing_value_tracks_true,
        _read_numbers(nodes_values, nodes_values_as_tensor),
    )
    values = _read_numbers(target_weights, target_weights_as_tensor)
    leaves = nodes.leaves(target_treeids, target_nodeids, target_ids, values, n_targets)
    base = _read_numbers(base_values, base_values_as_tensor)
    if base.size not in (0, n_targets):
        raise Unsupported(f"{base.size} base values for {n_targets} targets")
    if base.any() and not leaves.covered:
        raise Unsupported("a base value of a target without weights, read differently by runtimes")
    scores = leaves.scores(ctx, _to_rows(ctx, x, nodes.thresholds), aggregate_function)
    scores = _add_base(ctx, scores, base)
    if n_targets == 1:
        refuse_transform(post_transform, "a single target")
    return transform(ctx, scores, post_transform)


@ML.imports("TreeEnsembleClassifier", since=(1, 3, 5), ignored=_UNUSED)
def import_tree_ensemble_classifier(
    ctx: ImportContext,
    x: Expr,
    *,
    base_values: tuple[float, ...] = (),
    base_values_as_tensor: onnx.TensorProto | None = None,
    class_ids: tuple[int, ...],
    class_nodeids: tuple[int, ...],
    class_treeids: tuple[int, ...],
    class_weights: tuple[float, ...] = (),
    class_weights_as_tensor: onnx.TensorProto | None = None,
    classlabels_int64s: tuple[int, ...] = (),
    classlabels_strings: tuple[str, ...] = (),
    nodes_falsenodeids: tuple[int, ...],
    nodes_featureids: tuple[int, ...],
    nodes_missing_value_tracks_true: tuple[int, ...] = (),
    nodes_modes: tuple[str, ...],
    nodes_nodeids: tuple[int, ...],
    nodes_treeids: tuple[int, ...],
    nodes_truenodeids: tuple[int, ...],
    nodes_values: tuple[float, ...] = (),
    nodes_values_as_tensor: onnx.TensorProto | None = None,
    post_transform: str = "NONE",
) -> list[Expr]:
    labels = read_labels(ctx, classlabels_int64s, classlabels_strings)
    nodes = _Nodes(
        nodes_treeids,
        nodes_nodeids,
        nodes_featureids,
        nodes_modes,
        nodes_truenodeids,
        nodes_falsenodeids,
        nodes_missing_value_tracks_true,
        _read_numbers(nodes_values, nodes_values_as_tensor),
    )
    values = _read_numbers(class_weights, class_weights_as_tensor)
    base = _read_numbers(base_values, base_values_as_tensor)
    rows = _to_rows(ctx, x, nodes.thresholds)
    if len(labels) == 2 and set(class_ids) == {0}:
        leaves = nodes.leaves(class_treeids, class_nodeids, class_ids, values, 1)
        return _classify_two(
            ctx, leaves.scores(ctx, rows, "SUM"), values, base, labels, post_transform
        )
    if len(labels) < 3 and ctx.wants(0):
        raise Unsupported(f"the label of {len(labels)} classes, read differently by runtimes")
    if base.size not in (0, len(labels)) or (base.size and len(labels) < 3):
        raise Unsupported(f"{base.size} base values for {len(labels)} classes")
    leaves = nodes.leaves(class_treeids, class_nodeids, class_ids, values, len(labels))
    if len(labels) < 3 and not leaves.covered:
        raise Unsupported("two classes of which one has no weights")
    scores = leaves.scores(ctx, rows, "SUM")
    scores = _add_base(ctx, scores, base)
    label = pick_labels(ctx, relay.argmax(scores, axis=1), labels)
    return [label, transform(ctx, scores, post_transform)]


def _classify_two(
    ctx: ImportContext,
    score: Expr,
    values: Array,
    base: Array,
    labels: Sequence[int],
    post_transform: str,
) -> list[Expr]:
    """Return label and scores of two classes where the trees speak of the second one alone.

    Weights of which none is negative make a probability, others a margin.
    """
    if base.size > 1:
        raise Unsupported(f"{base.size} base values for one score")
    score = _add_base(ctx, score, base)
    likely = bool((values >= 0).all())
    bound = scalar_like(ctx, score, 0.5 if likely else 0.0)
    second = relay.squeeze(relay.greater(score, bound), axis=[1])
    label = pick_labels(ctx, relay.cast(second, "int32"), labels)
    if post_transform == "LOGISTIC":
        both = relay.concatenate([relay.negative(score), score], axis=1)
        return [label, relay.sigmoid(both)]
    refuse_transform(post_transform, "two classes of one score")
    first = relay.negative(score)
    if likely:
        first = relay.subtract(scalar_like(ctx, score, 1.0), score)
    return [label, relay.concatenate([first, score], axis=1)]
