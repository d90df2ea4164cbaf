"""Ensembles of decision trees that are regressors or classifiers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

import serde.relay as relay
from serde.core import Array, dataclass
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.ml.ensemble import Leaves
from serde.onnx.ops.ml.scores import (
    cast_to_float32,
    pick_labels,
    read_labels,
    refuse_transform,
    to_feature_rows,
    transform,
)
from serde.onnx.ops.ml.trees import MODES, UNORDERED, Forest, find_nodes
from serde.onnx.ops.table import ML, Import
from serde.relay.ir.expr import Expr

_UNUSED = ("nodes_hitrates", "nodes_hitrates_as_tensor")


def _read_numbers(ctx: Import, given: Sequence[float], tensor: onnx.TensorProto | None) -> Array:
    """Return numbers that are floats, or doubles in a tensor."""
    found = np.array(given, np.float32) if tensor is None else ctx.values(tensor)
    if found.ndim != 1 or found.dtype not in (np.float32, np.float64):
        raise Unsupported(f"numbers in {found.dtype}{list(found.shape)}")
    return found


@dataclass(frozen=True, kw_only=True)
class EnsembleAttributes:
    """Attributes that both ensembles share: nodes by tree and number, and what is added."""

    base_values: tuple[float, ...] = ()
    base_values_as_tensor: onnx.TensorProto | None = None
    nodes_falsenodeids: tuple[int, ...]
    nodes_featureids: tuple[int, ...]
    nodes_missing_value_tracks_true: tuple[int, ...] = ()
    nodes_modes: tuple[str, ...]
    nodes_nodeids: tuple[int, ...]
    nodes_treeids: tuple[int, ...]
    nodes_truenodeids: tuple[int, ...]
    nodes_values: tuple[float, ...] = ()
    nodes_values_as_tensor: onnx.TensorProto | None = None
    post_transform: str = "NONE"

    def base(self, ctx: Import) -> Array:
        """Return what is added to each score; nothing, or one number a target."""
        return _read_numbers(ctx, self.base_values, self.base_values_as_tensor)

    def thresholds(self, ctx: Import) -> Array:
        """Return what the feature of each node is compared with."""
        return _read_numbers(ctx, self.nodes_values, self.nodes_values_as_tensor)

    def forest(self, thresholds: Array) -> Forest:
        """Return the nodes as a table."""
        count, missing = len(self.nodes_nodeids), self.nodes_missing_value_tracks_true
        next_nodes = (self.nodes_truenodeids, self.nodes_falsenodeids)
        lists = (
            self.nodes_treeids,
            self.nodes_featureids,
            self.nodes_modes,
            *next_nodes,
            thresholds,
        )
        if any(len(each) != count for each in (*lists, *next_nodes)) or len(missing) not in (
            0,
            count,
        ):
            raise Unsupported(f"the lists of {count} nodes have several lengths")
        unknown = next((mode for mode in self.nodes_modes if mode not in MODES), None)
        if unknown is not None:
            raise Unsupported(f"mode {unknown!r} of a node is unknown")
        outcomes = np.zeros((count, 4), bool)
        for row, mode in enumerate(self.nodes_modes):
            outcomes[row, list(MODES[mode])] = True
        inner = np.array([mode != "LEAF" for mode in self.nodes_modes], bool)
        if missing:
            outcomes[:, UNORDERED] |= np.array(missing, bool) & inner
        trees = np.array(self.nodes_treeids, np.int64)
        children = np.tile(np.arange(count), (2, 1))
        for row, numbers in enumerate(next_nodes):
            wanted = (trees[inner], np.array(numbers, np.int64)[inner])
            children[row, inner] = find_nodes(self.nodes_treeids, self.nodes_nodeids, wanted)
        _, roots = np.unique(trees, return_index=True)
        return Forest.of(self.nodes_featureids, thresholds, outcomes, children, roots)

    def leaves(
        self, thresholds: Array, trees: Sequence[int], numbers: Sequence[int],
        targets: Sequence[int], values: Array, count: int,
    ) -> Leaves:  # fmt: skip
        """Return what leaves, named by tree and number, give to targets."""
        if not len(trees) == len(numbers) == len(targets):
            raise Unsupported(f"{len(targets)} targets for {len(numbers)} leaves")
        wanted = (np.array(trees, np.int64), np.array(numbers, np.int64))
        indices = find_nodes(self.nodes_treeids, self.nodes_nodeids, wanted)
        return Leaves(self.forest(thresholds), indices, np.array(targets, np.int64), values, count)


def _to_rows(ctx: Import, x: Expr, thresholds: Array) -> Expr:
    """Return the rows in the precision in which they are compared."""
    doubled = "float64" in (ctx.type(x).dtype, str(thresholds.dtype))
    return to_feature_rows(ctx, x, "float64" if doubled else "float32")


def _add_base(ctx: Import, scores: Expr, base: Array) -> Expr:
    """Return scores on top of base values, where there are such, in float32."""
    if base.size:
        scores = relay.add(scores, ctx.array(base.astype(ctx.type(scores).dtype)))
    return cast_to_float32(ctx, scores)


@ML.imports("TreeEnsembleRegressor", since=(1, 3, 5), ignored=_UNUSED)
def import_tree_ensemble_regressor(
    ctx: Import, x: Expr,
    *, aggregate_function: str = "SUM", n_targets: int, ensemble: EnsembleAttributes,
    target_ids: tuple[int, ...], target_nodeids: tuple[int, ...], target_treeids: tuple[int, ...],
    target_weights: tuple[float, ...] = (),
    target_weights_as_tensor: onnx.TensorProto | None = None,
) -> Expr:  # fmt: skip
    values = _read_numbers(ctx, target_weights, target_weights_as_tensor)
    base, thresholds = ensemble.base(ctx), ensemble.thresholds(ctx)
    leaves = ensemble.leaves(
        thresholds, target_treeids, target_nodeids, target_ids, values, n_targets
    )
    if base.size not in (0, n_targets):
        raise Unsupported(f"{base.size} base values for {n_targets} targets")
    if base.any() and not leaves.covered:
        raise Unsupported("a base value of a target without weights, read differently by runtimes")
    scores = leaves.scores(ctx, _to_rows(ctx, x, thresholds), aggregate_function)
    scores = _add_base(ctx, scores, base)
    if n_targets == 1:
        refuse_transform(ensemble.post_transform, "a single target")
    return transform(ctx, scores, ensemble.post_transform)


@ML.imports("TreeEnsembleClassifier", since=(1, 3, 5), ignored=_UNUSED)
def import_tree_ensemble_classifier(
    ctx: Import, x: Expr,
    *, class_ids: tuple[int, ...], class_nodeids: tuple[int, ...], class_treeids: tuple[int, ...],
    class_weights: tuple[float, ...] = (), class_weights_as_tensor: onnx.TensorProto | None = None,
    classlabels_int64s: tuple[int, ...] = (), classlabels_strings: tuple[str, ...] = (),
    ensemble: EnsembleAttributes,
) -> list[Expr]:  # fmt: skip
    labels = read_labels(ctx, classlabels_int64s, classlabels_strings)
    values = _read_numbers(ctx, class_weights, class_weights_as_tensor)
    base, thresholds = ensemble.base(ctx), ensemble.thresholds(ctx)
    rows = _to_rows(ctx, x, thresholds)
    if len(labels) == 2 and set(class_ids) == {0}:
        leaves = ensemble.leaves(thresholds, class_treeids, class_nodeids, class_ids, values, 1)
        return _classify_two(
            ctx, leaves.scores(ctx, rows, "SUM"), values, base, labels, ensemble.post_transform
        )
    if len(labels) < 3 and ctx.wants(0):
        raise Unsupported(f"the label of {len(labels)} classes, read differently by runtimes")
    if base.size not in (0, len(labels)) or (base.size and len(labels) < 3):
        raise Unsupported(f"{base.size} base values for {len(labels)} classes")
    leaves = ensemble.leaves(
        thresholds, class_treeids, class_nodeids, class_ids, values, len(labels)
    )
    if len(labels) < 3 and not leaves.covered:
        raise Unsupported("two classes of which one has no weights")
    scores = leaves.scores(ctx, rows, "SUM")
    scores = _add_base(ctx, scores, base)
    label = pick_labels(ctx, relay.argmax(scores, axis=1), labels)
    return [label, transform(ctx, scores, ensemble.post_transform)]


def _classify_two(
    ctx: Import, score: Expr, values: Array, base: Array, labels: Sequence[int], post_transform: str
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
