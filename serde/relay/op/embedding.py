"""Rows of a table, looked up and put together in bags."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final, Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, InRange, TensorType, const, ranges, tensor_type, widen
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import join_dim, require_float, require_same_dtype
from serde.relay.ir.work import times

Mode = Literal["sum", "mean", "max"]


def _bag_type(
    weight: TensorType, indices: TensorType, offsets: TensorType | None,
    sample_weights: TensorType | None,
    *, mode: str, include_last_offset: bool, padding_idx: int | None,
) -> TensorType:  # fmt: skip
    """Bags are rows of `indices`, or begin in them where `offsets` says."""
    require_float(weight)
    if weight.rank != 2:
        raise TypeInferenceError(f"expected a table of rank 2, found {weight!r}")
    for given in (indices, offsets):
        if given is not None and given.dtype not in ("int32", "int64"):
            raise TypeInferenceError(f"expected int32 or int64, found {given!r}")
    if indices.rank != (2 if offsets is None else 1):
        raise TypeInferenceError(f"indices {indices!r} need offsets if they have one axis only")
    if sample_weights is not None:
        _check_weights(weight, indices, sample_weights, mode)
    _check_padding(weight, padding_idx)
    if offsets is None and include_last_offset:
        raise TypeInferenceError("include_last_offset without offsets")
    return TensorType((_bags(indices, offsets, include_last_offset), weight.shape[1]), weight.dtype)


def _check_weights(
    weight: TensorType, indices: TensorType, sample_weights: TensorType, mode: str
) -> None:
    if mode != "sum":
        raise TypeInferenceError(f"sample_weights are for mode sum, not {mode}")
    require_same_dtype(weight, sample_weights)
    if sample_weights.rank != indices.rank:
        raise TypeInferenceError(f"expected a weight for each of {indices!r}")
    for a, b in zip(sample_weights.shape, indices.shape, strict=True):
        join_dim(a, b)


def _bags(indices: TensorType, offsets: TensorType | None, last: bool) -> Dim:
    if offsets is None:
        return indices.shape[0]
    if offsets.rank != 1 or (last and offsets.shape[0] == 0):
        raise TypeInferenceError(f"offsets {offsets!r} begin no bags")
    return offsets.shape[0] - 1 if last else offsets.shape[0]


def _check_padding(weight: TensorType, padding_idx: int | None) -> None:
    rows = weight.shape[0]
    if padding_idx is not None and isinstance(rows, int) and not -rows <= padding_idx < rows:
        raise TypeInferenceError(f"padding_idx {padding_idx} is no row of {weight!r}")


def _padding(weight: Expr, padding_idx: int, dtype: str) -> Expr:
    """Return the row that does not count, numbered from the first."""
    rows = tensor_type(weight).shape[0]
    if padding_idx >= 0 or isinstance(rows, int):
        return const(padding_idx % rows if isinstance(rows, int) else padding_idx, dtype)
    shape = call("shape_of", weight, dtype=dtype)
    length = call("take", shape, const(0, "int64"), axis=0, mode="clip")
    return call("add", length, const(padding_idx, dtype))


def _within(indices: Expr, offsets: Expr, include_last_offset: bool) -> Expr:
    """Return for each bag and index whether the one holds the other."""
    kind = tensor_type(offsets).dtype
    count = tensor_type(indices).shape[0]
    if isinstance(count, int):
        end: Expr = const([count], kind)
        places: Expr = const(np.arange(count), kind)
    else:
        end = call("shape_of", indices, dtype=kind)
        length = call("squeeze", end, axis=(0,))
        counted = call("arange", const(0, kind), length, const(1, kind), dtype=kind)
        places = call("reshape_like", counted, indices)  # Of a length that the types tell.
    bounds = offsets if include_last_offset else call("concatenate", [offsets, end], axis=0)
    first = call("strided_slice", bounds, begin=(0,), end=(-1,), strides=(1,), axes=(0,))
    last = call("strided_slice", bounds, begin=(1,), end=(2**31 - 1,), strides=(1,), axes=(0,))
    starts, ends = (call("expand_dims", each, axis=1) for each in (first, last))
    return call("logical_and", call("less_equal", starts, places), call("less", places, ends))


def _decompose_bag(
    weight: Expr, indices: Expr, offsets: Expr | None, sample_weights: Expr | None,
    *, mode: Mode, include_last_offset: bool, padding_idx: int | None,
) -> Expr:  # fmt: skip
    """Every bag looks at every row, so that no loop is needed: what is no row of it is left out."""
    rows = call("take", weight, indices, axis=0, mode="fast")
    if sample_weights is not None:
        rows = call("multiply", rows, call("expand_dims", sample_weights, axis=-1))
    counted: Expr | None = None
    if padding_idx is not None:
        padding = _padding(weight, padding_idx, tensor_type(indices).dtype)
        counted = call("not_equal", indices, padding)
    if offsets is not None:
        rows = call("expand_dims", rows, axis=0)
        within = _within(indices, offsets, include_last_offset)
        counted = within if counted is None else call("logical_and", within, counted)
    if counted is None:
        counted = call("equal", indices, indices)
    return _reduce_rows(rows, counted, mode, tensor_type(weight).dtype)


def _reduce_rows(rows: Expr, counted: Expr, mode: Mode, dtype: str) -> Expr:
    """Return sums, means or maxima of the rows that are counted; of none, zeros."""
    mask = call("expand_dims", counted, axis=2)
    zero = const(0, dtype)
    if mode == "max":
        return _greatest(rows, mask, dtype)
    total = call("sum", call("where", mask, rows, zero), axis=(1,))
    if mode == "sum":
        return total
    number = call("sum", call("cast", counted, dtype="int32"), axis=(1,), keepdims=True)
    divisor = call("cast", call("maximum", number, const(1, "int32")), dtype=dtype)
    return call("divide", total, divisor)


def _greatest(rows: Expr, mask: Expr, dtype: str) -> Expr:
    """One more row that is never counted keeps the maximum of no rows defined."""
    kept = call("where", mask, rows, const(-np.inf, dtype))
    kept = call("nn.pad", kept, const(-np.inf, dtype), pad_width=((0, 0), (0, 1), (0, 0)))
    number = call("sum", call("cast", mask, dtype="int32"), axis=(1,))
    there = call("greater", number, const(0, "int32"))
    return call("where", there, call("max", kept, axis=(1,)), const(0, dtype))


_REDUCE: Final[dict[str, Callable[..., Array]]] = {"sum": np.sum, "mean": np.mean, "max": np.max}
_TABLE = (6, 3)
_INDICES = np.array([1, 2, 4, 5, 4, 3, 2, 0], np.int64)
_OFFSETS = np.array([0, 3, 3, 6], np.int64)


@relay_op(
    "serde.embedding_bag",
    traits=(times(1000), InRange(ranges.bag_indices)),
    infer=_bag_type,
    decompose=_decompose_bag,
    samples=[
        sample(_TABLE, tensor((2, 4), "int64", low=0, high=5)),
        sample(_TABLE, tensor((2, 4), "int32", low=0, high=5), mode="max", padding_idx=-1),
        sample(_TABLE, tensor((2, 4), "int64", low=0, high=2), None, (2, 4), mode="sum"),
        sample(_TABLE, _INDICES, _OFFSETS),
        sample(_TABLE, _INDICES, _OFFSETS, mode="max"),
        sample(_TABLE, _INDICES, _OFFSETS, (8,), mode="sum", padding_idx=4),
        sample(
            tensor(_TABLE, "float64"),
            tensor((5,), "int64", low=0, high=5),
            np.array([0, 2, 5], np.int64),
            mode="mean",
            include_last_offset=True,
            padding_idx=2,
        ),
    ],
)
def embedding_bag(
    weight: Array, indices: Array, offsets: Array | None, sample_weights: Array | None,
    *, mode: Literal["sum", "mean", "max"] = "mean", include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Array:  # fmt: skip
    """Sums, means or maxima of the rows of a table that the indices of each bag name.

    A bag of none yields zeros. Source: ``torch.nn.functional.embedding_bag``.

    Args:
        weight: The table: (rows, width).
        indices: (bags, indices of each), or with `offsets` the indices of all bags in a row.
        offsets: Where each bag begins in `indices`, ascending from 0.
        sample_weights: For mode sum, a factor for each index.
        mode: What is made of the rows of a bag.
        include_last_offset: Whether `offsets` ends with where the last bag ends; otherwise that
            is the end of `indices`.
        padding_idx: A row that does not count, neither in sums nor in the number that a mean is
            divided by; counted from the end where it is negative.

    Returns:
        (bags, width).
    """
    table, padding = widen(weight), None if padding_idx is None else padding_idx % len(weight)
    flat = indices.reshape(-1)
    factors = None if sample_weights is None else widen(sample_weights).reshape(-1, 1)
    if offsets is None:
        bounds = np.arange(len(indices) + 1) * indices.shape[1]
    else:
        bounds = offsets if include_last_offset else np.append(offsets, len(indices))
    result = np.zeros((len(bounds) - 1, weight.shape[1]), table.dtype)
    for bag, (start, stop) in enumerate(pairwise(bounds)):
        rows = table[flat[start:stop]]
        rows = rows if factors is None else rows * factors[start:stop]
        rows = rows[flat[start:stop] != padding]
        if len(rows):
            result[bag] = _REDUCE[mode](rows, axis=0)
    return result.astype(weight.dtype)
