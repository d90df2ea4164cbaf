"""Operators of ai.onnx.ml through Relay and back, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from support.onnx_suite import interpret
from support.runtime import open_session

import serde
from serde.errors import UnsupportedModelError

RNG = np.random.default_rng(11)
ROWS = RNG.normal(0, 1, (9, 4)).astype(np.float32)
ROWS[0] = 0
LABELS = [3, 7, 9]
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]


def model_of(
    op: str, inputs: Sequence[np.ndarray], outputs: Sequence[str], version: int, **attrs: Any
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one node; an output whose name begins with an underscore is not read."""
    given = {f"x{i}": x for i, x in enumerate(inputs)}
    node = helper.make_node(op, list(given), list(outputs), domain="ai.onnx.ml", **attrs)
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in given.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs if name[0] != "_"],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), given


def run_both(model: onnx.ModelProto, given: dict[str, np.ndarray]) -> list[list[np.ndarray]]:
    """What the interpreter and ONNX Runtime make of the model once it was read."""
    relay = serde.to_relay(model)
    again = serde.from_relay(relay, format="onnx", opset=17)
    assert {node.domain for node in again.graph.node} == {""}
    return [interpret(relay, given), open_session(again.SerializeToString()).run(None, given)]


def check(
    op: str, *inputs: np.ndarray, outputs: Sequence[str] = ("y",), version: int = 3, **attrs: Any
) -> None:
    model, given = model_of(op, inputs, outputs, version, **attrs)
    expected = open_session(model.SerializeToString()).run(None, given)
    for found in run_both(model, given):
        for wanted, value in zip(expected, found, strict=True):
            assert (value.dtype, value.shape) == (wanted.dtype, wanted.shape)
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(value, wanted, 2e-5, 2e-6)
            else:
                np.testing.assert_array_equal(value, wanted)


def refused(match: str, op: str, *inputs: np.ndarray, version: int = 3, **attrs: Any) -> None:
    outputs = attrs.pop("outputs", ("y",))
    model, _ = model_of(op, inputs, outputs, version, **attrs)
    with pytest.raises(UnsupportedModelError, match=match):
        serde.to_relay(model)


def numbers(*shape: int) -> list[float]:
    return RNG.normal(0, 1, shape).reshape(-1).tolist()


@pytest.mark.parametrize("transform", [*TRANSFORMS, "PROBIT"])
@pytest.mark.parametrize("shift", [True, False])
def test_linear_regressor(transform: str, shift: bool) -> None:
    given = {"intercepts": [0.5, 0.4]} if shift else {}
    x = ROWS[1:] / 10
    check(
        "LinearRegressor",
        x,
        coefficients=[0.1, 0.2, -0.1, 0.3, 0.3, 0.1, 0.2, -0.2],
        targets=2,
        post_transform=transform,
        **given,
    )


def test_linear_regressor_of_one_target() -> None:
    check("LinearRegressor", ROWS, coefficients=numbers(4), intercepts=[0.5])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_classifier(dtype: str, transform: str) -> None:
    check(
        "LinearClassifier",
        (4 * ROWS[1:]).astype(dtype),
        outputs=["label", "scores"],
        coefficients=numbers(3, 4),
        intercepts=numbers(3),
        classlabels_ints=LABELS,
        post_transform=transform,
    )


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_linear_classifier_of_one_score(transform: str) -> None:
    check(
        "LinearClassifier",
        ROWS,
        outputs=["label", "scores"],
        coefficients=numbers(4),
        intercepts=[0.25],
        classlabels_ints=[5, 2],
        post_transform=transform,
    )


def test_scores_of_a_classifier_with_strings_as_labels() -> None:
    check(
        "LinearClassifier",
        ROWS,
        outputs=["_label", "scores"],
        coefficients=numbers(2, 4),
        intercepts=numbers(2),
        classlabels_strings=["cat", "dog"],
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("count", [1, 4])
def test_scaler(dtype: str, count: int) -> None:
    x = (4 * ROWS).astype(dtype)
    check("Scaler", x, offset=numbers(count), scale=numbers(count))


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_normalizer(norm: str, dtype: str) -> None:
    check("Normalizer", (4 * ROWS).astype(dtype), norm=norm)


@pytest.mark.parametrize("replaced", [0.0, float("nan")])
@pytest.mark.parametrize("values", [[5.0], [5.0, 6.0, 7.0, 8.0]])
def test_imputer(replaced: float, values: list[float]) -> None:
    x = ROWS.copy()
    x[2:4, 1:3] = np.nan
    check("Imputer", x, imputed_value_floats=values, replaced_value_float=replaced)


def test_imputer_of_integers() -> None:
    x = RNG.integers(0, 3, (5, 3))
    check("Imputer", x, imputed_value_int64s=[7, 8, 9], replaced_value_int64=1)


def test_binarizer() -> None:
    check("Binarizer", ROWS, threshold=0.25)


def test_feature_vectorizer() -> None:
    given = (ROWS, ROWS[:, :2], ROWS[:, :1])
    check("FeatureVectorizer", *given, inputdimensions=[3, 4, 1])


@pytest.mark.parametrize("shape", [(3, 4), (4,), (2, 3, 4)])
@pytest.mark.parametrize("indices", [[1, 3], [[0, 2, 2]]])
def test_array_feature_extractor(shape: tuple[int, ...], indices: Any) -> None:
    x = RNG.normal(0, 1, shape).astype(np.float32)
    check("ArrayFeatureExtractor", x, np.array(indices, np.int64))


@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_one_hot_encoder(dtype: str) -> None:
    x = np.array([[1, 2], [7, 3]], dtype)
    check("OneHotEncoder", x, cats_int64s=[3, 1, 2], zeros=1)


@pytest.mark.parametrize("version", [2, 4])
def test_label_encoder(version: int) -> None:
    x = np.array([[1, 5], [9, 1]], np.int64)
    check("LabelEncoder", x, version=version, keys_int64s=[9, 1], values_floats=[0.5, 0.25])
    check(
        "LabelEncoder", x, version=version, keys_int64s=[9, 1], values_int64s=[4, 6],
        default_int64=12,
    )  # fmt: skip


@pytest.mark.parametrize("version", [2, 4])
def test_a_label_encoder_with_a_key_that_is_nan(version: int) -> None:
    x = np.array([np.nan, 0, 2, 7], np.float32)
    check(
        "LabelEncoder", x, version=version, keys_floats=[0.0, float("nan"), 2.0],
        values_int64s=[5, 1, 2], default_int64=-7,
    )  # fmt: skip


def test_label_encoder_of_tensors() -> None:
    keys = numpy_helper.from_array(np.array([1.5, np.nan], np.float32))
    values = numpy_helper.from_array(np.array([4, 6], np.int64))
    other = numpy_helper.from_array(np.array([-3], np.int64))
    x = np.array([1.5, 2.5, np.nan], np.float32)
    model, given = model_of(
        "LabelEncoder", [x], ["y"], 4, keys_tensor=keys, values_tensor=values, default_tensor=other
    )
    for (found,) in run_both(model, given):
        np.testing.assert_array_equal(found, np.array([4, -3, 6], np.int64), strict=True)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_svm_regressor(kernel: str) -> None:
    check(
        "SVMRegressor",
        ROWS,
        coefficients=numbers(5),
        kernel_params=[0.3, 0.5, 3.0],
        kernel_type=kernel,
        n_supports=5,
        rho=[0.25],
        support_vectors=numbers(5, 4),
    )


@pytest.mark.parametrize("supports", [0, 5])
def test_svm_regressor_of_one_class(supports: int) -> None:
    check(
        "SVMRegressor",
        ROWS,
        coefficients=numbers(supports or 4),
        kernel_params=[0.3, 0.5, 3.0],
        kernel_type="RBF" if supports else "LINEAR",
        n_supports=supports,
        one_class=1,
        rho=[0.1],
        **({"support_vectors": numbers(supports, 4)} if supports else {}),
    )


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("probable", [False, True])
def test_svm_classifier(kernel: str, classes: int, probable: bool) -> None:
    counts = [2, 3, 1, 2][:classes]
    pairs = classes * (classes - 1) // 2
    given = {"prob_a": [-1.0] * pairs, "prob_b": numbers(pairs)} if probable else {}
    check(
        "SVMClassifier",
        ROWS,
        outputs=["label", "scores"],
        classlabels_ints=[4, 2, 9, 1][:classes],
        coefficients=numbers(classes - 1, sum(counts)),
        kernel_params=[0.3, 0.5, 2.0],
        kernel_type=kernel,
        rho=numbers(pairs),
        support_vectors=numbers(sum(counts), 4),
        vectors_per_class=counts,
        **given,
    )


@pytest.mark.wide
@pytest.mark.parametrize(
    ("transform", "classes"), [*((name, 3) for name in TRANSFORMS), ("LOGISTIC", 2)]
)
def test_svm_classifier_transforms(transform: str, classes: int) -> None:
    counts = [2, 3, 1][:classes]
    pairs = classes * (classes - 1) // 2
    check(
        "SVMClassifier",
        ROWS,
        outputs=["label", "scores"],
        classlabels_ints=LABELS[:classes],
        coefficients=numbers(classes - 1, sum(counts)),
        kernel_params=[0.3, 0.5, 2.0],
        kernel_type="RBF",
        post_transform=transform,
        rho=numbers(pairs),
        support_vectors=numbers(sum(counts), 4),
        vectors_per_class=counts,
    )


MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def grown(
    trees: int, depth: int, modes: Sequence[str] = MODES[:1], missing: bool = False
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Random trees, as attributes of nodes, and their leaves."""
    nodes: dict[str, list[Any]] = {name: [] for name in (
        "treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
        "missing_value_tracks_true",
    )}  # fmt: skip
    leaves = []
    for tree in range(trees):
        pending, free = [(0, 0)], 1
        while pending:
            number, level = pending.pop()
            is_leaf = level == depth or (level > 1 and RNG.random() < 0.3)
            children = (0, 0) if is_leaf else (free, free + 1)
            row = {
                "treeids": tree,
                "nodeids": number,
                "featureids": 0 if is_leaf else int(RNG.integers(4)),
                "modes": "LEAF" if is_leaf else str(RNG.choice(modes)),
                "values": float(np.float32(RNG.choice(ROWS[:, 0]))),
                "truenodeids": children[0],
                "falsenodeids": children[1],
                "missing_value_tracks_true": int(missing and not is_leaf and RNG.random() < 0.5),
            }
            for name, value in row.items():
                nodes[name].append(value)
            if is_leaf:
                leaves.append((tree, number))
            else:
                pending += [(free, level + 1), (free + 1, level + 1)]
                free += 2
    return {f"nodes_{name}": values for name, values in nodes.items()}, leaves


def weighted(
    prefix: str, leaves: Sequence[tuple[int, int]], targets: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """Weights of leaves: each has one for every target in the list of its tree."""
    rows = [(tree, node, target) for tree, node in leaves for target in targets[tree]]
    return {
        f"{prefix}_treeids": [row[0] for row in rows],
        f"{prefix}_nodeids": [row[1] for row in rows],
        f"{prefix}_ids": [row[2] for row in rows],
        f"{prefix}_weights": numbers(len(rows)),
    }


@pytest.mark.wide
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("modes", [[mode] for mode in MODES] + [MODES[:4], MODES])
def test_branches_of_trees(modes: list[str], missing: bool) -> None:
    nodes, leaves = grown(5, 4, modes, missing)
    x = np.concatenate([ROWS, ROWS[::-1]])
    x[3:5, :2] = np.nan
    x[:, 2] = x[0, 0]
    weights = weighted("target", leaves, [[0]] * 5)
    check("TreeEnsembleRegressor", x, n_targets=1, **nodes, **weights)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [[[0]] * 3, [[0, 1]] * 3, [[0], [1], [0]]])
@pytest.mark.parametrize("based", [False, True])
def test_tree_regressor(aggregate: str, targets: list[list[int]], based: bool) -> None:
    nodes, leaves = grown(3, 5)
    count = 1 + max(map(max, targets))
    given = {"base_values": numbers(count)} if based else {}
    check(
        "TreeEnsembleRegressor",
        ROWS,
        aggregate_function=aggregate,
        n_targets=count,
        **nodes,
        **weighted("target", leaves, targets),
        **given,
    )


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_trees_of_other_dtypes(dtype: str) -> None:
    nodes, leaves = grown(3, 4)
    check(
        "TreeEnsembleClassifier",
        (3 * ROWS).astype(dtype),
        outputs=["label", "scores"],
        classlabels_int64s=LABELS,
        **nodes,
        **weighted("class", leaves, [[0, 1, 2]] * 3),
    )


def test_trees_in_double_precision() -> None:
    nodes, leaves = grown(3, 4)
    weights = weighted("target", leaves, [[0]] * 3)
    tensors = {
        "nodes_values_as_tensor": np.array(nodes.pop("nodes_values")) + 1e-12,
        "target_weights_as_tensor": np.array(weights.pop("target_weights")),
    }
    given = {name: numpy_helper.from_array(each) for name, each in tensors.items()}
    check(
        "TreeEnsembleRegressor", ROWS.astype(np.float64), n_targets=1, **nodes, **weights, **given
    )


def test_a_deep_tree_is_walked_by_a_loop() -> None:
    depth = 90
    nodes = {
        "nodes_treeids": [0] * (2 * depth + 1),
        "nodes_nodeids": list(range(2 * depth + 1)),
        "nodes_featureids": [i % 4 for i in range(depth)] + [0] * (depth + 1),
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_GT"] * (depth // 2) + ["LEAF"] * (depth + 1),
        "nodes_values": numbers(depth) + [0.0] * (depth + 1),
        "nodes_truenodeids": [*range(1, depth), 2 * depth] + [0] * (depth + 1),
        "nodes_falsenodeids": list(range(depth, 2 * depth)) + [0] * (depth + 1),
    }
    leaves = [(0, node) for node in range(depth, 2 * depth + 1)]
    x = RNG.normal(0, 3, (50, 4)).astype(np.float32)
    weights = weighted("target", leaves, [[0]])
    check("TreeEnsembleRegressor", x, n_targets=1, **nodes, **weights)
    model, _ = model_of("TreeEnsembleRegressor", [x], ["y"], 3, n_targets=1, **nodes, **weights)
    assert len(serde.export_model(model, format="onnx").graph.node) < 30


@pytest.mark.wide
@pytest.mark.thin(2)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [[[0, 1, 2]] * 3, [[0], [1], [2]], [[0, 1], [2], [1]]])
@pytest.mark.parametrize("based", [False, True])
def test_tree_classifier(transform: str, targets: list[list[int]], based: bool) -> None:
    nodes, leaves = grown(3, 4)
    given = {"base_values": numbers(3)} if based else {}
    check(
        "TreeEnsembleClassifier",
        ROWS,
        outputs=["label", "scores"],
        classlabels_int64s=LABELS,
        post_transform=transform,
        **nodes,
        **weighted("class", leaves, targets),
        **given,
    )


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("likely", [False, True])
@pytest.mark.parametrize("based", [False, True])
def test_tree_classifier_of_two(transform: str, likely: bool, based: bool) -> None:
    nodes, leaves = grown(3, 4)
    weights = weighted("class", leaves, [[0]] * 3)
    if likely:
        weights["class_weights"] = [abs(each) / 3 for each in weights["class_weights"]]
    given = {"base_values": [0.125]} if based else {}
    check(
        "TreeEnsembleClassifier",
        ROWS,
        outputs=["label", "scores"],
        classlabels_int64s=[4, 1],
        post_transform=transform,
        **nodes,
        **weights,
        **given,
    )


def ensemble(**changes: Any) -> dict[str, Any]:
    """Two trees in the form of version 5, one of which asks for one of several values."""
    tensors = {
        "nodes_modes": np.array([0, 6, 3, 5], np.uint8),
        "nodes_splits": np.array([0.5, 0, -0.25, 1], np.float32),
        "membership_values": np.array([1, 2, 7, np.nan], np.float32),
        "leaf_weights": np.array([0.5, -1, 2, 4, 8, 16], np.float32),
    }
    tensors |= {name: value for name, value in changes.items() if name in tensors}
    lists = {
        "tree_roots": [0, 2],
        "nodes_featureids": [0, 1, 2, 1],
        "nodes_truenodeids": [1, 0, 3, 3],
        "nodes_trueleafs": [0, 1, 0, 1],
        "nodes_falsenodeids": [2, 1, 5, 4],
        "nodes_falseleafs": [1, 1, 1, 1],
        "leaf_targetids": [0, 1, 0, 1, 0, 1],
        "n_targets": 2,
    }
    lists |= {name: value for name, value in changes.items() if name not in tensors}
    return {**{n: numpy_helper.from_array(t) for n, t in tensors.items()}, **lists}


@pytest.mark.wide
@pytest.mark.parametrize("aggregate", [0, 1])
@pytest.mark.parametrize("missing", [[], [1, 1, 0, 0]])
def test_tree_ensemble(aggregate: int, missing: list[int]) -> None:
    x = np.array(
        [[0, 1, 0], [0, 2, -1], [0, 3, 0], [1, 7, 0], [np.nan, 1, 1], [0, np.nan, 0]], np.float32
    )
    given = {"nodes_missing_value_tracks_true": missing} if missing else {}
    attrs = ensemble(aggregate_function=aggregate, **given)
    model, fed = model_of("TreeEnsemble", [x], ["y"], 5, **attrs)
    (expected,) = ReferenceEvaluator(model).run(None, fed)
    for (found,) in run_both(model, fed):
        np.testing.assert_allclose(found, expected, 1e-6)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"nodes_truenodeids": [1, 0, 0, 3]}, "below itself, or in two trees"),
        ({"nodes_falsenodeids": [2, 1, 6, 4]}, "leaf 6 of 6"),
        ({"tree_roots": [0, 4]}, "root names node 4 of 4"),
        ({"nodes_featureids": [0, 1, 3, 1]}, "feature 3 of 3"),
        ({"leaf_targetids": [0, 1, 0, 1, 0, 2]}, "target 2 of 2"),
        ({"membership_values": np.array([1, 2], np.float32)}, "0 sets of values for 1"),
    ],
)
def test_tree_ensembles_that_are_not_sound(changes: dict[str, Any], match: str) -> None:
    refused(match, "TreeEnsemble", ROWS[:, :3], version=5, **ensemble(**changes))


def test_trees_that_are_not_sound() -> None:
    nodes, leaves = grown(1, 2)
    weights = weighted("target", leaves, [[0]])
    kept = dict(nodes, n_targets=1, **weights)
    broken = {
        **kept,
        "nodes_truenodeids": [99 if each else 0 for each in nodes["nodes_truenodeids"]],
    }
    refused("tree 0 has no node 99", "TreeEnsembleRegressor", ROWS, **broken)
    broken = {**kept, "nodes_truenodeids": [0] * len(nodes["nodes_truenodeids"])}
    refused("below itself", "TreeEnsembleRegressor", ROWS, **broken)
    broken = {**kept, "nodes_modes": ["BRANCH_XOR"] * len(nodes["nodes_modes"])}
    refused("mode 'BRANCH_XOR'", "TreeEnsembleRegressor", ROWS, **broken)


def test_what_runtimes_read_differently_is_refused() -> None:
    nodes, leaves = grown(2, 3)
    some = weighted("target", leaves[:-1], [[0]] * 2)
    refused("post_transform 'LOGISTIC' of a single target", "TreeEnsembleRegressor", ROWS,
            n_targets=1, post_transform="LOGISTIC", **nodes, **some)  # fmt: skip
    refused("'MIN' of targets without weights", "TreeEnsembleRegressor", ROWS,
            n_targets=2, aggregate_function="MIN", **nodes, **some)  # fmt: skip
    refused("key is given twice", "LabelEncoder", np.zeros(2, np.int64), version=2,
            keys_int64s=[1, 1], values_int64s=[2, 3])  # fmt: skip


def test_the_label_of_a_machine_without_negative_factors_is_refused() -> None:
    attrs: dict[str, Any] = {
        "classlabels_ints": [2, 5], "coefficients": [0.5, 0.25, 1.0, 0.75],
        "kernel_params": [0.3, 0.5, 3.0], "rho": [-0.5], "support_vectors": numbers(4, 4),
        "vectors_per_class": [2, 2],
    }  # fmt: skip
    refused(
        "without a negative factor", "SVMClassifier", ROWS, outputs=("label", "scores"), **attrs
    )


def test_strings_and_maps_are_refused_with_a_hint() -> None:
    attrs = {"coefficients": numbers(2, 4), "intercepts": numbers(2)}
    refused(
        "labels that are strings", "LinearClassifier", ROWS, outputs=["label", "scores"],
        classlabels_strings=["a", "b"], **attrs,
    )  # fmt: skip
    refused("maps have no counterpart .*zipmap", "ZipMap", ROWS, classlabels_int64s=[1, 2, 3, 4])
