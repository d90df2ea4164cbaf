"""Systems of equations, inverses and logarithms of determinants, by elimination with pivots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.relay.ir import Expr, TensorType, Tuple, const, tensor_type, widen
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.work import powers
from serde.relay.lowering.lengths import positions
from serde.relay.op.linalg.columns import (
    identity_like,
    narrow_like,
    select_where,
    square_type,
    take_column,
    take_row,
    walk,
    widen_narrow,
)
from serde.relay.op.linalg.triangular import system

REGULAR = np.array([[[0, 2, 1], [1, -1, 0.5], [3, 0.5, 1]], [[2, 1, 0], [4, -1, 1], [1, 1, 5]]])
"""Matrices of which none can be eliminated in the order of its rows."""


def _greatest(found: Expr, place: Expr, index: Expr) -> Expr:
    """Return where the greatest element of each column stands, from the row `place` on."""
    open_ = select_where(call("greater_equal", index, place), call("abs", found), -1.0)
    last = tensor_type(found).rank - 1
    return call("cast", call("argmax", open_, axis=(last,), keepdims=True), dtype="int64")


def _exchange_rows(data: Expr, chosen: Expr, place: Expr) -> tuple[Expr, Expr]:
    """Return the chosen row of each matrix, and the matrices with row `place` in its stead."""
    rank = tensor_type(data).rank
    mask = call("expand_dims", chosen, axis=rank - 1)
    pivot = call("sum", select_where(mask, data), axis=(rank - 2,), keepdims=True)
    first = call("expand_dims", take_row(data, place), axis=rank - 2)
    return pivot, call("where", mask, first, data)


def _decompose_solve(a: Expr, b: Expr) -> Expr:
    """The row whose element is greatest is scaled, put in place, and taken off all the others."""
    if 0 in tensor_type(a).shape:
        return b
    rank = tensor_type(a).rank
    index = positions(a, -1)

    def step(
        place: Expr, left: Expr, right: Expr, index: Expr
    ) -> tuple[Sequence[Expr], Sequence[Expr]]:
        greatest = _greatest(take_column(left, place), place, index)
        chosen = call("equal", index, greatest)
        own = call("expand_dims", call("equal", index, place), axis=1)
        pivot, moved = _exchange_rows(left, chosen, place)
        head = call("expand_dims", take_column(pivot, place), axis=rank - 1)
        scale = call("expand_dims", take_column(moved, place), axis=rank - 1)
        following = []
        for line, rest in ((pivot, moved), _exchange_rows(right, chosen, place)):
            scaled = call("divide", line, head)
            others = call("subtract", rest, call("multiply", scale, scaled))
            following.append(call("where", own, scaled, others))
        return following, []

    _, found = walk(index, [widen_narrow(a), widen_narrow(b)], [index], step)
    return narrow_like(found, b)


@relay_op(
    "serde.solve",
    traits=(powers(),),
    infer=system,
    decompose=_decompose_solve,
    samples=[
        sample(REGULAR[0].astype(np.float32), (3, 2)),
        sample(REGULAR.astype(np.float32), (2, 3, 1)),
        sample(REGULAR[:, None], tensor((2, 1, 3, 4), "float64")),
    ],
)
def solve(a: Array, b: Array) -> Array:
    """The x of a x = b, whose columns are systems of their own.

    Running it fails where a matrix has no inverse; targets may give any numbers there.
    """
    return np.linalg.solve(widen(a), widen(b)).astype(b.dtype)


def _decompose_inverse(data: Expr) -> Expr:
    return call("serde.solve", data, identity_like(data))


@relay_op(
    "serde.inverse",
    traits=(powers(),),
    infer=square_type,
    decompose=_decompose_inverse,
    samples=[sample(REGULAR[0].astype(np.float32)), sample(REGULAR)],
)
def inverse(data: Array) -> Array:
    """The inverse of each matrix that the last two axes hold.

    Running it fails where there is none; targets may give any numbers there.
    """
    return np.linalg.inv(widen(data)).astype(data.dtype)


def _factors(data: Expr) -> Expr:
    """Return the numbers whose product is the determinant, as the last axis.

    Rows are eliminated one after the other; each exchange of two turns the sign.
    """
    rank = tensor_type(data).rank
    index = positions(data, -1)

    def step(place: Expr, rest: Expr, index: Expr) -> tuple[Sequence[Expr], Sequence[Expr]]:
        greatest = _greatest(take_column(rest, place), place, index)
        pivot, moved = _exchange_rows(rest, call("equal", index, greatest), place)
        head = take_column(pivot, place)
        zero = call("equal", head, const(0.0, tensor_type(head).dtype))
        divisor = call("where", zero, const(1.0, tensor_type(head).dtype), head)
        scale = call("divide", take_column(moved, place), divisor)
        taken = call("multiply", call("expand_dims", scale, axis=rank - 1), pivot)
        stays = call("equal", greatest, place)
        signed = call("where", stays, head, call("negative", head))
        return [call("subtract", moved, taken)], [call("squeeze", signed, axis=(rank - 2,))]

    _, factors = walk(index, [widen_narrow(data)], [index], step, out_axes=[rank - 2])
    return factors


def _det_type(data: TensorType) -> TensorType:
    return TensorType(square_type(data).shape[:-2], data.dtype)


def _decompose_det(data: Expr) -> Expr:
    last = tensor_type(data).rank - 2
    if 0 in tensor_type(data).shape:
        return call("prod", data, axis=(last, last + 1))
    return narrow_like(call("prod", _factors(data), axis=(last,)), data)


@relay_op(
    "serde.det",
    traits=(powers(),),
    infer=_det_type,
    decompose=_decompose_det,
    samples=[sample((3, 3)), sample((2, 4, 2, 2)), sample(REGULAR)],
)
def det(data: Array) -> Array:
    """The determinant of each square matrix that the last two axes hold."""
    return np.linalg.det(widen(data)).astype(data.dtype)


def _slogdet_type(data: TensorType) -> tuple[TensorType, TensorType]:
    result = _det_type(data)
    return result, result


def _decompose_slogdet(data: Expr) -> Expr:
    last = tensor_type(data).rank - 2
    if 0 in tensor_type(data).shape:
        return Tuple([call(name, data, axis=(last, last + 1)) for name in ("prod", "sum")])
    factors = _factors(data)
    sign = call("prod", call("sign", factors), axis=(last,))
    size = call("sum", call("log", call("abs", factors)), axis=(last,))
    return Tuple([narrow_like(sign, data), narrow_like(size, data)])


@relay_op(
    "serde.slogdet",
    traits=(powers(),),
    infer=_slogdet_type,
    decompose=_decompose_slogdet,
    samples=[
        sample(REGULAR[0].astype(np.float32)),
        sample(REGULAR),
        sample(np.ones((2, 2), np.float32)),
    ],
)
def slogdet(data: Array) -> tuple[Array, Array]:
    """Sign of the determinant of each matrix, and the logarithm of its absolute value.

    They are 0 and minus infinity where there is no inverse.
    """
    sign, size = np.linalg.slogdet(widen(data))
    return np.asarray(sign).astype(data.dtype), np.asarray(size).astype(data.dtype)
