"""Some of the entries of an axis: those that are marked, and those that are distinct."""

from __future__ import annotations

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Dim, Expr, TensorType, Tuple, normalize_axis, ranges, tensor_type
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.traits import (
    Fusion,
    FusionPattern,
    Moves,
    Ordering,
    Selects,
    UsuallyInRange,
    Values,
)
from serde.relay.ir.work import times


def _compress_type(data: TensorType, condition: TensorType, *, axis: int | None) -> TensorType:
    if condition.rank != 1 or condition.dtype != "bool":
        raise TypeInferenceError(f"expected a vector of truth values, found {condition!r}")
    if axis is None:
        return TensorType([Any()], data.dtype)
    along = normalize_axis(axis, data.rank)
    return TensorType((*data.shape[:along], Any(), *data.shape[along + 1 :]), data.dtype)


def _decompose_compress(data: Expr, condition: Expr, *, axis: int | None) -> Expr:
    places = call("squeeze", call("argwhere", condition), axis=(1,))
    given = call("reshape", data, newshape=(-1,)) if axis is None else data
    along = 0 if axis is None else axis % tensor_type(data).rank
    return call("take", given, places, axis=along, mode="fast")


@relay_op(
    "serde.compress",
    traits=(
        Moves(),
        Selects,
        Fusion(FusionPattern.OPAQUE),
        UsuallyInRange(ranges.within(1, (0, 1))),
    ),
    infer=_compress_type,
    decompose=_decompose_compress,
    samples=[
        sample((3, 4), tensor((3,), "bool"), axis=0),
        sample((3, 4), np.array([False, True, True]), axis=-1),
        sample((3, 4), tensor((12,), "bool")),
    ],
)
def compress(data: Array, condition: Array, *, axis: int | None = None) -> Array:
    """The entries of `axis`, or of the flat tensor, that `condition` marks.

    It may be shorter than the axis, of which the rest is not marked.
    """
    return np.compress(condition, data, axis)


def _unique_type(
    data: TensorType, *, axis: int | None, sorted: bool
) -> tuple[TensorType, TensorType, TensorType, TensorType]:
    count = Any()
    if axis is None:
        values, length = TensorType([count], data.dtype), data.size
    else:
        along = normalize_axis(axis, data.rank)
        shape: list[Dim] = [*data.shape[:along], count, *data.shape[along + 1 :]]
        values, length = TensorType(shape, data.dtype), data.shape[along]
    return (
        values,
        TensorType([count], "int64"),
        TensorType([length], "int64"),
        TensorType([count], "int64"),
    )


def _decompose_unique(data: Expr, *, axis: int | None, sorted: bool) -> Expr:
    """Entries are compared in pairs: of two rows, the first number that differs decides."""
    type_ = tensor_type(data)
    along = 0 if axis is None else axis % type_.rank
    given = call("reshape", data, newshape=(-1,)) if axis is None else data
    rank = tensor_type(given).rank
    if rank == 1:
        rows = call("expand_dims", given, axis=1)
    else:
        order = (along, *(each for each in range(rank) if each != along))
        rows = call("reshape", call("transpose", given, axes=order), newshape=(0, -1))
    left, right = (call("expand_dims", rows, axis=each) for each in (1, 0))
    same = call("cast", call("equal", left, right), dtype="int32")
    ahead = call("cast", call("cumprod", same, axis=2, exclusive=True), dtype="bool")
    less = call("any", call("logical_and", ahead, call("less", left, right)), axis=(2,))
    equal = call("min", same, axis=(2,))
    first = call("cast", call("argmax", equal, axis=(1,)), dtype="int64")
    places = call("cumsum", call("ones_like", first), axis=0, exclusive=True)
    leads = call("equal", first, places)
    # Of each entry: how many distinct ones are before it.
    if sorted:
        before = call("logical_and", call("expand_dims", leads, axis=1), less)
    else:
        earlier = call(
            "less", call("expand_dims", places, axis=1), call("expand_dims", first, axis=0)
        )
        before = call("logical_and", call("expand_dims", leads, axis=1), earlier)
    inverse = call("sum", call("cast", before, dtype="int64"), axis=(0,))
    found = call("squeeze", call("argwhere", leads), axis=(1,))
    ranks = call("take", inverse, found, axis=0, mode="fast")
    kept = call("take", found, call("argsort", ranks, axis=0, dtype="int64"), axis=0, mode="fast")
    counts = call("sum", call("cast", equal, dtype="int64"), axis=(1,))
    return Tuple(
        [
            call("take", given, kept, axis=along, mode="fast"),
            call("cast", kept, dtype="int64"),
            inverse,
            call("take", counts, kept, axis=0, mode="fast"),
        ]
    )


@relay_op(
    "serde.unique",
    traits=(times(32), Values(0), Selects, Ordering),
    infer=_unique_type,
    decompose=_decompose_unique,
    samples=[
        sample(np.array([2, 1, 1, 3, 4, 3], np.float32)),
        sample(np.array([2, 1, 1, 3, 4, 3], np.int64), sorted=False),
        sample(np.array([[1, 0, 0], [1, 0, 0], [0, 2, 4]], np.float32), axis=0),
        sample(tensor((2, 3, 2), "int64", low=0, high=1), axis=-2),
        sample(tensor((4, 3), "int64", low=0, high=3)),
        sample(tensor((4, 3), "uint8", low=0, high=3), axis=0),
    ],
)
def unique(
    data: Array, *, axis: int | None = None, sorted: bool = True
) -> tuple[Array, Array, Array, Array]:
    """Distinct entries of `axis`, or of the flat tensor; then where they are first, and more.

    The third result is for each entry which of them it is, the fourth how often each occurs.
    They are in order, of rows by the first number that differs, or as they first appear.
    """
    values, places, inverse, counts = np.unique(
        data, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(places, kind="stable")
        values = np.take(values, order, axis or 0)
        places, counts = places[order], counts[order]
        inverse = np.argsort(order, kind="stable")[inverse]
    places, inverse, counts = (each.astype(np.int64) for each in (places, inverse, counts))
    return values, places, inverse, counts
