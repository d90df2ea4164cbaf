"""Support vector machines.

Probabilities of many classes from those of each pair of them. The method of Wu, Lin and Weng
(Probability estimates for multi-class classification by pairwise coupling, 2004, second approach),
iterated as LIBSVM does; its stopping rule is part of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

import serde.relay as relay
from serde.core import Array, dataclass
from serde.core.allocation import eye, full, iterations, zeros
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.ml.scores import (
    pick_labels,
    read_labels,
    refuse_transform,
    to_feature_rows,
    transform,
)
from serde.onnx.ops.table import ML, Import
from serde.relay.ir import Expr, Function, TensorType, Tuple, TupleGetItem, Var, call

_MIN_ITERATIONS = 100

_TOLERANCE = 0.005
"""The greatest error with which the iteration stops, divided by the number of classes."""


def couple_probabilities(ctx: Import, chance: Expr, classes: int) -> Expr:
    """Return probabilities of the classes that fit those of each pair best.

    Args:
        ctx: The context of the node.
        chance: For each sample and each pair the probability of the first class of the pair.
        classes: Number of classes.
    """
    gram = _build_gram(ctx, chance, classes)
    rows = ctx.type(chance).shape[0]
    state = TensorType((rows, classes), "float32")
    number = Var("turn", TensorType((), "int64"))
    known, fit = Var("probabilities", state), Var("gram", ctx.type(gram))
    body = Tuple([relay.const(True, "bool"), _iterate(known, fit, classes)])
    function = Function([number, known, fit], body)
    limit = relay.const(max(_MIN_ITERATIONS, classes), "int64")
    start = relay.add(
        relay.multiply(relay.sum(chance, axis=1, keepdims=True), relay.const(np.float32(0.0))),
        ctx.array(full((1, classes), 1.0 / classes, np.float32)),
    )
    return TupleGetItem(call("serde.loop", limit, None, (start,), (gram,), body=function), 0)


def _build_gram(ctx: Import, chance: Expr, classes: int) -> Expr:
    """Return the quadratic form that is minimised, a matrix a sample.

    With r the matrix of pairwise probabilities: entry (t, t) is the sum of r[j, t]**2 over the
    others, entry (t, j) is -r[j, t] * r[t, j].
    """
    upper, lower = _pair_matrices(classes)
    rest = relay.subtract(relay.const(np.float32(1.0)), chance)
    pairs = relay.add(
        relay.nn.dense(chance, ctx.array(upper)), relay.nn.dense(rest, ctx.array(lower))
    )
    matrix = relay.reshape(pairs, newshape=(-1, classes, classes))
    transposed = relay.transpose(matrix, axes=(0, 2, 1))
    outside = relay.negative(relay.multiply(matrix, transposed))
    diagonal = relay.sum(relay.multiply(matrix, matrix), axis=1, keepdims=True)
    identity = ctx.array(eye(classes, dtype=np.float32))
    return relay.add(outside, relay.multiply(diagonal, identity))


def _pair_matrices(classes: int) -> tuple[Array, Array]:
    """Return where in a matrix of classes the probability of each pair goes, and its rest."""
    shape = (classes, classes, classes * (classes - 1) // 2)
    upper, lower = zeros(shape, np.float32), zeros(shape, np.float32)
    for column, (i, j) in enumerate(combinations(range(classes), 2)):
        upper[i, j, column] = lower[j, i, column] = 1.0
    return upper.reshape(classes**2, -1), lower.reshape(classes**2, -1)


def _iterate(known: Expr, gram: Expr, classes: int) -> Expr:
    """Return the probabilities after one turn; those of a sample that fits well enough stay."""
    p = known
    product = relay.sum(relay.multiply(gram, relay.expand_dims(p, axis=1)), axis=2)
    value = relay.sum(relay.multiply(p, product), axis=1, keepdims=True)
    error = relay.max(relay.abs(relay.subtract(product, value)), axis=1, keepdims=True)
    one, two = relay.const(np.float32(1.0)), relay.const(np.float32(2.0))
    for position in iterations(classes, "the steps of coupled probabilities"):
        row = relay.take(gram, relay.const(np.int32(position)), axis=1, mode="fast")
        own, linear = _take_column(row, position), _take_column(product, position)
        step = relay.divide(relay.subtract(value, linear), own)
        scale = relay.add(one, step)
        gain = relay.add(relay.multiply(step, own), relay.multiply(two, linear))
        value = relay.divide(
            relay.add(value, relay.multiply(step, gain)), relay.multiply(scale, scale)
        )
        unit = zeros((1, classes), np.float32)
        unit[0, position] = 1.0
        p = relay.divide(relay.add(p, relay.multiply(step, relay.Constant(unit))), scale)
        product = relay.divide(relay.add(product, relay.multiply(step, row)), scale)
    fits = relay.less(error, relay.const(np.float32(_TOLERANCE / classes)))
    return relay.where(fits, known, p)


def _take_column(x: Expr, position: int) -> Expr:
    return relay.strided_slice(x, begin=[position], end=[position + 1], strides=[1], axes=[1])


@ML.imports("SVMRegressor", ignored=["n_targets"])
def import_svm_regressor(
    ctx: Import, x: Expr,
    *, coefficients: tuple[float, ...], kernel_params: tuple[float, ...] = (),
    kernel_type: str = "LINEAR", n_supports: int = 0, one_class: bool = False,
    post_transform: str = "NONE", rho: tuple[float, ...], support_vectors: tuple[float, ...] = (),
) -> Expr:  # fmt: skip
    """Without support vectors it is linear; of one class, 1 is inside and -1 is outside."""
    refuse_transform(post_transform, "a single target")
    rows = to_feature_rows(ctx, x)
    if n_supports > 0:
        kernel = _Kernel(kernel_type, kernel_params)
        products = kernel.products(ctx, rows, _to_matrix(support_vectors, n_supports))
        found = relay.nn.dense(products, ctx.array(_to_matrix(coefficients, 1)))
    else:
        found = relay.nn.dense(rows, ctx.array(_to_matrix(coefficients, 1)))
    found = relay.add(found, scalar_like(ctx, found, _require_single(rho)))
    if not one_class:
        return found
    zero, one = scalar_like(ctx, found, 0.0), scalar_like(ctx, found, 1.0)
    return relay.where(relay.greater(found, zero), one, relay.negative(one))


@ML.imports("SVMClassifier")
def import_svm_classifier(
    ctx: Import, x: Expr,
    *, classlabels_ints: tuple[int, ...] = (), classlabels_strings: tuple[str, ...] = (),
    coefficients: tuple[float, ...], kernel_params: tuple[float, ...] = (),
    kernel_type: str = "LINEAR", post_transform: str = "NONE", prob_a: tuple[float, ...] = (),
    prob_b: tuple[float, ...] = (), rho: tuple[float, ...], support_vectors: tuple[float, ...] = (),
    vectors_per_class: tuple[int, ...] = (),
) -> list[Expr]:  # fmt: skip
    """Each pair of classes has a decision; the label has most votes of these."""
    labels = read_labels(ctx, classlabels_ints, classlabels_strings)
    rows = to_feature_rows(ctx, x)
    if not vectors_per_class:
        factors = ctx.array(_to_matrix(coefficients, len(labels)))
        scores = relay.nn.dense(rows, factors)
        scores = relay.add(scores, scalar_like(ctx, scores, rho[0]))
        return _classify_linear(ctx, scores, labels, len(rho), post_transform)
    if len(vectors_per_class) != len(labels) or len(labels) < 2:
        raise Unsupported(f"{len(vectors_per_class)} groups of vectors for {len(labels)} labels")
    pairs = _Pairs(vectors_per_class)
    if len(rho) != len(pairs.classes):
        raise Unsupported(f"{len(rho)} offsets for {len(pairs.classes)} pairs of classes")
    kernel = _Kernel(kernel_type, kernel_params)
    products = kernel.products(ctx, rows, _to_matrix(support_vectors, sum(vectors_per_class)))
    decisions = relay.nn.dense(products, ctx.array(pairs.factors(coefficients)))
    decisions = relay.add(decisions, ctx.array(np.array(rho, np.float32)))
    best = relay.argmax(_count_votes(ctx, decisions, pairs), axis=1)
    if len(labels) == 2 and not prob_a and min(coefficients) >= 0 and ctx.wants(0):
        # ONNX's reference gives every sample the second one, ONNX Runtime does not.
        raise Unsupported(
            "the label of two classes without a negative factor, which runtimes read differently"
        )
    label = pick_labels(ctx, best, labels)
    if prob_a:
        if not len(prob_a) == len(prob_b) == len(rho):
            raise Unsupported(f"{len(prob_a)} and {len(prob_b)} factors for {len(rho)} pairs")
        slope, shift = (ctx.array(np.array(each, np.float32)) for each in (prob_a, prob_b))
        linear = relay.add(relay.multiply(decisions, slope), shift)
        chance = relay.clip(relay.sigmoid(relay.negative(linear)), 1e-7, 1 - 1e-7)
        scores = couple_probabilities(ctx, chance, len(labels))
        return [label, transform(ctx, scores, post_transform)]
    if len(labels) == 2:
        decisions = relay.concatenate([relay.negative(decisions), decisions], axis=1)
        if post_transform != "LOGISTIC":
            refuse_transform(post_transform, "two classes of one score")
    return [label, transform(ctx, decisions, post_transform)]


def _classify_linear(
    ctx: Import, scores: Expr, labels: Sequence[int], offsets: int, post_transform: str
) -> list[Expr]:
    """Return label and scores of a machine without support vectors, one score a class."""
    if len(labels) < 2 or offsets != len(labels):
        # With one offset ONNX Runtime reads two classes as one decision.
        raise Unsupported(f"a linear machine of {len(labels)} classes and {offsets} offsets")
    best = relay.argmax(scores, axis=1)
    return [pick_labels(ctx, best, labels), transform(ctx, scores, post_transform)]


def _count_votes(ctx: Import, decisions: Expr, pairs: _Pairs) -> Expr:
    """Return how often each class wins: the first of a pair where the decision is positive."""
    positive = relay.greater(decisions, scalar_like(ctx, decisions, 0.0))
    won = relay.cast(positive, "float32")
    lost = relay.subtract(scalar_like(ctx, decisions, 1.0), won)
    first, second = (ctx.array(each) for each in pairs.members())
    return relay.add(relay.nn.dense(won, first), relay.nn.dense(lost, second))


class _Pairs:
    """The pairs of classes in the order of their decisions.

    Attributes:
        classes: Places of the first and of the second class of each.
    """

    def __init__(self, counts: Sequence[int]) -> None:
        self._counts = counts
        self._starts = np.cumsum([0, *counts])
        n = len(counts)
        iterations(n * (n - 1) // 2, "the decisions between pairs of classes")
        self.classes = list(combinations(range(n), 2))

    def factors(self, coefficients: Sequence[float]) -> Array:
        """Return the factor of every support vector in every decision.

        The file has, for each vector, one factor against each of the other classes.
        """
        given = _to_matrix(coefficients, len(self._counts) - 1)
        if given.shape[1] != self._starts[-1]:
            raise Unsupported(f"{given.size} coefficients for {self._starts[-1]} support vectors")
        found = zeros((len(self.classes), given.shape[1]), np.float32)
        for row, (i, j) in enumerate(self.classes):
            one, other = (slice(self._starts[k], self._starts[k + 1]) for k in (i, j))
            found[row, one] = given[j - 1, one]
            found[row, other] = given[i, other]
        return found

    def members(self) -> tuple[Array, Array]:
        """Return for each class which pairs it is the first of, and which the second."""
        found = zeros((2, len(self._counts), len(self.classes)), np.float32)
        for column, pair in enumerate(self.classes):
            for side, each in enumerate(pair):
                found[side, each, column] = 1.0
        return found[0], found[1]


@dataclass(frozen=True)
class _Kernel:
    """A kernel with its parameters: gamma, the constant, and the degree."""

    name: str
    params: tuple[float, ...]

    def products(self, ctx: Import, x: Expr, vectors: Array) -> Expr:
        """Return the kernel of every row of `x` with every support vector."""
        if self.name not in ("LINEAR", "POLY", "RBF", "SIGMOID"):
            raise Unsupported(f"kernel {self.name!r} is unknown")
        if len(self.params) not in (0, 3):
            raise Unsupported(f"expected 3 parameters of the kernel, found {len(self.params)}")
        gamma, constant, degree = self.params or (0.0, 0.0, 0.0)
        others = ctx.array(vectors)
        if self.name == "RBF":
            difference = relay.subtract(relay.expand_dims(x, axis=1), others)
            distance = relay.sum(relay.multiply(difference, difference), axis=-1)
            return relay.exp(relay.multiply(distance, scalar_like(ctx, x, -gamma)))
        found = relay.nn.dense(x, others)
        if self.name == "LINEAR":
            return found
        found = relay.multiply(found, scalar_like(ctx, x, gamma))
        found = relay.add(found, scalar_like(ctx, x, constant))
        if self.name == "SIGMOID":
            return relay.tanh(found)
        return relay.power(found, scalar_like(ctx, x, degree))


def _to_matrix(values: Sequence[float], rows: int) -> Array:
    if not values or rows < 1 or len(values) % rows:
        raise Unsupported(f"{len(values)} numbers do not make {rows} rows")
    return np.array(values, np.float32).reshape(rows, -1)


def _require_single(values: Sequence[float]) -> float:
    if len(values) != 1:
        raise Unsupported(f"expected one offset, found {len(values)}")
    return values[0]
