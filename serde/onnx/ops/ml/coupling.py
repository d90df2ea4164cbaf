"""Probabilities of many classes from those of each pair of them.

The method of Wu, Lin and Weng (Probability estimates for multi-class classification by pairwise
coupling, 2004, second approach), iterated as LIBSVM does; its stopping rule is part of the result.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

import serde.relay as relay
from serde.core.allocation import eye, full, iterations, zeros
from serde.core.weights import Array
from serde.onnx.import_context import ImportContext
from serde.relay.ir.expr import Expr, Function, Tuple, TupleGetItem, Var
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType

_MIN_ITERATIONS = 100


_TOLERANCE = 0.005
"""The greatest error with which the iteration stops, divided by the number of classes."""


def couple_probabilities(ctx: ImportContext, chance: Expr, classes: int) -> Expr:
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


def _build_gram(ctx: ImportContext, chance: Expr, classes: int) -> Expr:
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
