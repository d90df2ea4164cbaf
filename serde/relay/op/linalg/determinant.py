"""Determinants."""

from __future__ import annotations

from typing import Final

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.expr import Expr, const
from serde.relay.precision import widen
from serde.relay.registry import Array, call, relay_op, sample, tensor
from serde.relay.shapes import join_dim, require_float
from serde.relay.types import TensorType

__all__: list[str] = []

_MOST_ROWS: Final = 32


def _det_type(data: TensorType) -> TensorType:
    require_float(data)
    if data.rank < 2:
        raise TypeInferenceError(f"expected matrices, found {data!r}")
    join_dim(data.shape[-2], data.shape[-1])
    return TensorType(data.shape[:-2], data.dtype)


def _decompose_det(data: Expr) -> Expr:
    """Rows are eliminated one after the other, each time by the one that begins greatest."""
    type_ = data.type
    size = type_.shape[-1] if isinstance(type_, TensorType) else None
    if not isinstance(type_, TensorType) or not isinstance(size, int) or size > _MOST_ROWS:
        raise TypeInferenceError(f"a determinant of {type_!r} has no body of fixed length")
    narrow = type_.dtype in ("float16", "bfloat16")
    dtype = "float32" if narrow else type_.dtype
    rest: Expr = call("cast", data, dtype=dtype) if narrow else data
    if not size:
        return call("ones", shape=type_.shape[:-2], dtype=type_.dtype)
    result, rest = _eliminated(rest, size, dtype)
    for length in range(size - 1, 0, -1):
        factor, rest = _eliminated(rest, length, dtype)
        result = call("multiply", result, factor)
    return call("cast", result, dtype=type_.dtype) if narrow else result


def _eliminated(rows: Expr, length: int, dtype: str) -> tuple[Expr, Expr]:
    """Return the factor of the determinant that one row is, and the rows that remain."""
    rank = rows.type.rank if isinstance(rows.type, TensorType) else 0
    down, along = rank - 2, rank - 1
    column = call("squeeze", _cut(rows, along, 0, 1), axis=(along,))
    place = call("argmax", call("abs", column), axis=(along - 1,), keepdims=True)
    chosen = call("equal", place, const(np.arange(length, dtype=np.int32)))
    mask = call("expand_dims", chosen, axis=along)
    pivot = call("sum", call("where", mask, rows, const(0, dtype)), axis=(down,), keepdims=True)
    first = call("squeeze", _cut(pivot, along, 0, 1), axis=(down, along))
    stays = call("equal", call("squeeze", place, axis=(along - 1,)), const(0, "int32"))
    factor = call("where", stays, first, call("negative", first))
    if length == 1:
        return factor, rows
    moved = call(
        "where", _cut(mask, down, 1, length), _cut(rows, down, 0, 1), _cut(rows, down, 1, length)
    )
    head = _cut(pivot, along, 0, 1)
    divisor = call("where", call("equal", head, const(0, dtype)), const(1, dtype), head)
    scale = call("divide", _cut(moved, along, 0, 1), divisor)
    taken = call("multiply", scale, _cut(pivot, along, 1, length))
    return factor, call("subtract", _cut(moved, along, 1, length), taken)


def _cut(x: Expr, axis: int, start: int, stop: int) -> Expr:
    return call("strided_slice", x, begin=(start,), end=(stop,), strides=(1,), axes=(axis,))


@relay_op(
    "serde.det",
    infer=_det_type,
    decompose=_decompose_det,
    samples=[sample((3, 3)), sample((2, 4, 2, 2)), sample(tensor((2, 3, 3), "float64"))],
)
def det(data: Array) -> Array:
    """The determinant of each square matrix that the last two axes hold."""
    return np.linalg.det(widen(data)).astype(data.dtype)
