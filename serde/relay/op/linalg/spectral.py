"""Orthogonal factors, eigenvalues and singular values of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Dim, Expr, Tuple, const, require_float, tensor_type, widen
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.types import TensorType
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
from serde.relay.op.linalg.triangular import POSITIVE


def _lq_type(data: TensorType) -> tuple[TensorType, TensorType]:
    require_float(data)
    if data.rank < 2:
        raise TypeInferenceError(f"expected matrices, found {data!r}")
    rows, columns = data.shape[-2:]
    if isinstance(rows, int) and isinstance(columns, int) and rows > columns:
        raise TypeInferenceError(f"expected no more rows than columns, found {data!r}")
    return TensorType((*data.shape[:-1], rows), data.dtype), data


def _reflect_rows(data: Expr, vector: Expr, scale: Expr) -> Expr:
    """Return the rows of `data` reflected at what `vector` is normal to."""
    rank = tensor_type(data).rank
    along = call("expand_dims", vector, axis=rank - 2)
    shares = call("sum", call("multiply", data, along), axis=(rank - 1,), keepdims=True)
    scaled = call("multiply", shares, call("expand_dims", scale, axis=rank - 2))
    return call("subtract", data, call("multiply", scaled, along))


def _decompose_lq(data: Expr) -> Expr:
    """Householder reflections, of which each takes a row to its diagonal; Q is their product.

    As in LAPACK, the diagonal gets the sign opposite to that of what stood there, and a row that
    has nothing behind its diagonal is left alone.
    """
    if tensor_type(data).shape[-2] == 0:
        raise TypeInferenceError(f"factors of {tensor_type(data)!r} have no body")
    rank = tensor_type(data).rank
    matrix = widen_narrow(data)
    dtype = tensor_type(matrix).dtype
    down, along = positions(data, -2), positions(data, -1)
    zero, one = const(0.0, dtype), const(1.0, dtype)

    def reflect(
        place: Expr, rest: Expr, down: Expr, along: Expr
    ) -> tuple[Sequence[Expr], Sequence[Expr]]:
        line = take_row(rest, place)
        behind = select_where(call("greater", along, place), line)
        head = call(
            "sum", select_where(call("equal", along, place), line), axis=(-1,), keepdims=True
        )
        tail = call("sum", call("multiply", behind, behind), axis=(-1,), keepdims=True)
        length = call("sqrt", call("add", call("multiply", head, head), tail))
        still = call("equal", tail, zero)
        positive = call("greater_equal", head, zero)
        end = call("where", positive, call("negative", length), length)
        scale = call("divide", call("subtract", end, head), call("where", still, one, end))
        scale = call("where", still, zero, scale)
        divisor = call("where", still, one, call("subtract", head, end))
        vector = call("where", call("equal", along, place), one, call("divide", behind, divisor))
        following = _reflect_rows(rest, vector, scale)
        factor = select_where(call("greater_equal", down, place), take_column(following, place))
        return [following], [factor, vector, scale]

    def multiply(
        place: Expr, rows: Expr, vector: Expr, scale: Expr
    ) -> tuple[Sequence[Expr], Sequence[Expr]]:
        return [_reflect_rows(rows, vector, scale)], []

    _, lower, vectors, scales = walk(
        down, [matrix], [down, along], reflect, out_axes=[rank - 1, rank - 2, rank - 2]
    )
    (orthogonal,) = walk(
        down, [identity_like(matrix)], [], multiply, slices=[vectors, scales],
        axes=[rank - 2, rank - 2], reverse=True,
    )  # fmt: skip
    return Tuple([narrow_like(lower, data), narrow_like(orthogonal, data)])


@relay_op(
    "serde.lq",
    traits=(powers(20),),
    infer=_lq_type,
    decompose=_decompose_lq,
    samples=[
        sample((2, 4)),
        sample((2, 3, 3)),
        sample(np.array([[0, 3, 0], [0, 0, -2]], np.float64)),
    ],
)
def lq(data: Array) -> tuple[Array, Array]:
    """The lower triangular L and the Q with orthonormal rows whose product each matrix is.

    Signs are those of Householder's reflections as LAPACK chooses them.
    """
    q, r = np.linalg.qr(np.swapaxes(widen(data), -1, -2))
    lower, orthogonal = np.swapaxes(r, -1, -2), np.swapaxes(q, -1, -2)
    return np.ascontiguousarray(lower.astype(data.dtype)), np.ascontiguousarray(
        orthogonal.astype(data.dtype)
    )


def _eigen_type(data: TensorType, **_attrs: str) -> tuple[TensorType, TensorType]:
    type_ = square_type(data)
    return TensorType(type_.shape[:-1], data.dtype), type_


@relay_op(
    "serde.eigh",
    traits=(powers(20),),
    infer=_eigen_type,
    samples=[
        sample(POSITIVE[0]),
        sample(POSITIVE),
        sample(POSITIVE.astype(np.float64), triangle="upper"),
    ],
)
def eigh(data: Array, *, triangle: Literal["lower", "upper"] = "lower") -> tuple[Array, Array]:
    """Eigenvalues of each symmetric matrix in ascending order, and its eigenvectors as columns.

    One triangle of the matrix is read alone. The greatest component of a vector is positive.
    """
    values, vectors = np.linalg.eigh(widen(data), "L" if triangle == "lower" else "U")
    if data.size:
        peaks = np.abs(vectors).argmax(-2)[..., None, :]
        vectors = vectors * np.where(np.take_along_axis(vectors, peaks, -2) < 0, -1, 1)
    return values.astype(data.dtype), vectors.astype(data.dtype)


REAL = np.array([[[2, 0, 0], [1, 3, 0], [-1, 2, -4]], [[1, 2, 0], [3, 1, 1], [0, 1, 5]]])
"""Matrices that are not symmetric, with real eigenvalues."""


@relay_op(
    "serde.eig",
    traits=(powers(20),),
    infer=_eigen_type,
    samples=[sample(REAL[0].astype(np.float32)), sample(REAL.astype(np.float64))],
)
def eig(data: Array) -> tuple[Array, Array]:
    """Eigenvalues of each matrix, and its eigenvectors of length 1 as columns.

    Running it fails where an eigenvalue is not real.
    """
    values, vectors = np.linalg.eig(widen(data))
    if np.iscomplexobj(values) and np.abs(values.imag).max(initial=0.0) > 0:
        raise ValueError("an eigenvalue is not real")
    return values.real.astype(data.dtype), vectors.real.astype(data.dtype)


def _svd_type(data: TensorType) -> tuple[TensorType, TensorType, TensorType]:
    require_float(data)
    if data.rank < 2:
        raise TypeInferenceError(f"expected matrices, found {data!r}")
    batch, (rows, columns) = data.shape[:-2], data.shape[-2:]
    least: Dim = rows if rows == columns else Any()
    if isinstance(rows, int) and isinstance(columns, int):
        least = min(rows, columns)
    return (
        TensorType((*batch, rows, least), data.dtype),
        TensorType((*batch, least), data.dtype),
        TensorType((*batch, least, columns), data.dtype),
    )


@relay_op(
    "serde.svd",
    traits=(powers(20),),
    infer=_svd_type,
    samples=[sample((2, 4)), sample((2, 4, 3)), sample(tensor((3, 3), "float64"))],
)
def svd(data: Array) -> tuple[Array, Array, Array]:
    """U, s and V^T of each matrix U diag(s) V^T, with the singular values s in descending order.

    As many vectors as there are values; their signs are LAPACK's choice.
    """
    parts = np.linalg.svd(widen(data), full_matrices=False)
    left, values, right = (part.astype(data.dtype) for part in parts)
    return left, values, right
