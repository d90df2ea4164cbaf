"""Triangular systems, and the factor of positive definite matrices that makes two of one system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Expr, TensorType, join_dim, require_same_dtype, tensor_type, widen
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.work import powers
from serde.relay.lowering.lengths import positions
from serde.relay.op.linalg.columns import (
    narrow_like,
    select_where,
    square_type,
    take_column,
    take_row,
    walk,
    widen_narrow,
)

__all__ = ["system"]

POSITIVE = np.array(
    [[[4, 1, -2], [1, 3, 0.5], [-2, 0.5, 5]], [[2, 9, 9], [0.5, 1, 9], [1, -0.25, 3]]], np.float32
)
"""Positive definite matrices, the second told by its lower triangle alone."""

TRIANGLES = np.array([[[2, 1, -2], [1, -3, 0.5], [-2, 0.5, 4]], [[1, 3, 0], [9, 2, 1], [1, 0, 5]]])


def _decompose_cholesky(data: Expr) -> Expr:
    """Column by column: what a column explains is taken off the rest of the matrix."""
    if tensor_type(data).shape[-1] == 0:
        return data
    rank = tensor_type(data).rank
    index = positions(data, -1)

    def step(place: Expr, rest: Expr, index: Expr) -> tuple[Sequence[Expr], Sequence[Expr]]:
        found = take_column(rest, place)
        head = call("take", found, place, axis=rank - 2, mode="fast")
        head = call("sqrt", call("expand_dims", head, axis=rank - 2))
        factor = select_where(call("greater_equal", index, place), call("divide", found, head))
        down, along = (call("expand_dims", factor, axis=axis) for axis in (rank - 1, rank - 2))
        return [call("subtract", rest, call("multiply", down, along))], [factor]

    _, factor = walk(index, [widen_narrow(data)], [index], step, out_axes=[rank - 1])
    return narrow_like(factor, data)


@relay_op(
    "serde.cholesky",
    traits=(powers(),),
    infer=square_type,
    decompose=_decompose_cholesky,
    samples=[sample(POSITIVE[0]), sample(POSITIVE), sample(POSITIVE.astype(np.float64)[:, None])],
)
def cholesky(data: Array) -> Array:
    """The lower triangular L of each positive definite matrix A = L L^T.

    The lower triangle of A is read alone. What is not positive definite has no such factor: NaN.
    """
    rest = widen(data).copy()
    factor = np.zeros_like(rest)
    with np.errstate(all="ignore"):
        for index in range(data.shape[-1]):
            found = rest[..., index:, index] / np.sqrt(rest[..., index, index, None])
            factor[..., index:, index] = found
            rest[..., index:, index:] -= found[..., :, None] * found[..., None, :]
    return factor.astype(data.dtype)


def system(a: TensorType, b: TensorType) -> TensorType:
    """Return the type of the solution of a x = b, whose right sides are columns."""
    require_same_dtype(a, b)
    square_type(a)
    if a.rank != b.rank:
        raise TypeInferenceError(f"expected right sides of rank {a.rank}, found {b!r}")
    batch = [join_dim(m, n) for m, n in zip(a.shape[:-2], b.shape[:-2], strict=True)]
    return TensorType((*batch, join_dim(b.shape[-2], a.shape[-1]), b.shape[-1]), b.dtype)


def _system_type(a: TensorType, b: TensorType, **_: AnyValue) -> TensorType:
    return system(a, b)


def _decompose_triangular_solve(a: Expr, b: Expr, *, lower: bool, transpose: bool) -> Expr:
    """Unknown by unknown: each leaves the equations of those that follow."""
    if tensor_type(a).shape[-1] == 0:
        return b
    rank = tensor_type(a).rank
    index = positions(a, -1)
    forward = lower != transpose
    later = "greater" if forward else "less"

    def step(
        place: Expr, rest: Expr, part: Expr, index: Expr
    ) -> tuple[Sequence[Expr], Sequence[Expr]]:
        head = call(
            "expand_dims", call("take", part, place, axis=rank - 2, mode="fast"), axis=rank - 2
        )
        found = call("divide", take_row(rest, place), head)
        others = select_where(call(later, index, place), part)
        taken = call(
            "multiply",
            call("expand_dims", others, axis=rank - 1),
            call("expand_dims", found, axis=rank - 2),
        )
        return [call("subtract", rest, taken)], [found]

    _, found = walk(
        index, [widen_narrow(b)], [index], step, slices=[widen_narrow(a)],
        axes=[rank - 2 if transpose else rank - 1], out_axes=[rank - 2], reverse=not forward,
    )  # fmt: skip
    return narrow_like(found, b)


@relay_op(
    "serde.triangular_solve",
    traits=(powers(),),
    infer=_system_type,
    decompose=_decompose_triangular_solve,
    samples=[
        sample(TRIANGLES[0].astype(np.float32), (3, 2)),
        sample(TRIANGLES.astype(np.float32), (2, 3, 4), lower=False),
        sample(TRIANGLES, tensor((2, 3, 1), "float64"), transpose=True),
        sample(TRIANGLES.astype(np.float32), (2, 3, 2), lower=False, transpose=True),
    ],
)
def triangular_solve(a: Array, b: Array, *, lower: bool = True, transpose: bool = False) -> Array:
    """The x of T x = b, or of T^T x = b, where T is a triangle of each matrix of `a`.

    What lies outside the triangle is not read.
    """
    matrix = np.swapaxes(widen(a), -1, -2) if transpose else widen(a)
    rest = widen(b).copy()
    result = np.zeros_like(rest)
    order = range(a.shape[-1])
    with np.errstate(all="ignore"):
        for place in order if lower != transpose else reversed(order):
            others = slice(place + 1, None) if lower != transpose else slice(0, place)
            found = rest[..., place, :] / matrix[..., place, place, None]
            result[..., place, :] = found
            rest[..., others, :] -= matrix[..., others, place, None] * found[..., None, :]
    return result.astype(b.dtype)
