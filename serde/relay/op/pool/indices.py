"""Max pooling that tells where the greatest elements are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Expr, TensorType, Tuple, call, const, lowest, relay_op, sample
from serde.relay.ir.shapes import pool_dim, require_window
from serde.relay.ir.traits import Fusion, FusionPattern, Ordering, Values
from serde.relay.ir.work import windows

__all__ = ["PooledPlaces"]


@dataclass(frozen=True, kw_only=True)
class PooledPlaces:
    """Attributes of ``serde.max_pool_with_places``."""

    pool_size: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    column_major: bool = False


def _pooled_type(data: TensorType, *, pool: PooledPlaces) -> tuple[TensorType, TensorType]:
    """Values and indices have the same shape; the layout is channels first."""
    ndim = len(pool.pool_size)
    if data.rank != ndim + 2 or ndim not in (1, 2, 3):
        raise TypeInferenceError(f"cannot pool {data!r} by windows of {list(pool.pool_size)}")
    require_window(ndim, pool_size=pool.pool_size, strides=pool.strides, dilation=pool.dilation)
    if len(pool.padding) != 2 * ndim:
        raise TypeInferenceError(f"expected {2 * ndim} pads, found {len(pool.padding)}")
    counts = [
        pool_dim(
            data.shape[2 + i],
            pool.pool_size[i],
            pool.strides[i],
            pool.padding[i] + pool.padding[ndim + i],
            pool.dilation[i],
            ceil_mode=False,
        )
        for i in range(ndim)
    ]
    shape = (*data.shape[:2], *counts)
    return TensorType(shape, data.dtype), TensorType(shape, "int64")


def _windows(
    lengths: Sequence[int], counts: Sequence[int], pool: PooledPlaces
) -> tuple[Array, Array, Array]:
    """Return, for each window and each place in it, which element it is, if any, and its number.

    Elements are counted row by row; their numbers may go down the columns first.
    """
    ndim = len(lengths)
    inside: Array = np.ones((1, 1), np.bool_)
    flat: Array = np.zeros((1, 1), np.int64)
    number: Array = np.zeros((1, 1), np.int64)
    for axis in range(ndim):
        starts = np.arange(counts[axis]) * pool.strides[axis] - pool.padding[axis]
        places = starts[:, None] + np.arange(pool.pool_size[axis]) * pool.dilation[axis]
        held = (places >= 0) & (places < lengths[axis])
        places = np.clip(places, 0, lengths[axis] - 1)
        step = int(np.prod(lengths[:axis] if pool.column_major else lengths[axis + 1 :]))

        def spread(left: Array, right: Array, operation: np.ufunc) -> Array:
            both = operation(left[:, None, :, None], right[None, :, None, :])
            rows, more, size, others = both.shape
            return both.reshape(rows * more, size * others)

        inside = spread(inside, held, np.logical_and)
        flat = spread(flat * lengths[axis], places, np.add)
        number = spread(number, places * step, np.add)
    return flat, inside, number


def _decompose_pooled(data: Expr, *, pool: PooledPlaces) -> Expr:
    """The elements of each window are looked up at constant places."""
    type_ = data.type
    shape = type_.concrete_shape if isinstance(type_, TensorType) else None
    if shape is None or not isinstance(type_, TensorType):
        raise TypeInferenceError(f"needs a fixed shape to count places in, found {type_!r}")
    result, _ = _pooled_type(type_, pool=pool)
    counts = (result.concrete_shape or ())[2:]
    flat, inside, number = _windows(shape[2:], counts, pool)
    windows, size = flat.shape
    rows = call("reshape", data, newshape=(*shape[:2], -1))
    found = call("take", rows, const(flat, "int64"), axis=2, mode="fast")
    if not inside.all():
        least = const(lowest(np.dtype(type_.dtype)), type_.dtype)
        found = call("where", const(inside, "bool"), found, least)
    most = call("max", found, axis=(3,))
    which = call("cast", call("argmax", found, axis=(3,)), dtype="int64")
    place = call("add", which, const(np.arange(windows) * size, "int64"))
    inner = call("take", const(number.reshape(-1), "int64"), place, axis=0, mode="fast")
    images = np.arange(shape[0] * shape[1]).reshape(*shape[:2], 1) * int(np.prod(shape[2:]))
    total = call("add", inner, const(images, "int64"))
    wanted = (*shape[:2], *counts)
    return Tuple([call("reshape", each, newshape=wanted) for each in (most, total)])


@relay_op(
    "serde.max_pool_with_places",
    traits=(
        windows("pool_size", factor=8),
        Values(0),
        Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),
        Ordering,
    ),
    infer=_pooled_type,
    decompose=_decompose_pooled,
    samples=[
        sample((1, 2, 7), pool_size=(3,), strides=(2,), dilation=(1,), padding=(1, 1)),
        sample(
            (2, 2, 6, 5), pool_size=(2, 3), strides=(2, 1), dilation=(2, 1), padding=(1, 0, 0, 2)
        ),
        sample(
            (1, 2, 6, 5),
            pool_size=(2, 2),
            strides=(2, 2),
            dilation=(1, 1),
            padding=(0, 0, 0, 0),
            column_major=True,
        ),
        sample(
            (1, 2, 3, 4, 5),
            pool_size=(2, 2, 2),
            strides=(1, 1, 1),
            dilation=(1, 1, 1),
            padding=(0, 0, 0, 0, 0, 0),
        ),
    ],
)
def max_pool_with_places(data: Array, *, pool: PooledPlaces) -> tuple[Array, Array]:
    """``max(x)`` and ``argmax(x)`` of each window, the index counted in the whole of `data`.

    Of equal ones it is the first. `column_major` numbers the spatial axes with the first fastest.
    """
    ndim = len(pool.pool_size)
    lengths = data.shape[2:]
    counts = [
        (
            n
            + pool.padding[i]
            + pool.padding[ndim + i]
            - (pool.pool_size[i] - 1) * pool.dilation[i]
            - 1
        )
        // pool.strides[i]
        + 1
        for i, n in enumerate(lengths)
    ]
    flat, inside, number = _windows(lengths, counts, pool)
    found = data.reshape(*data.shape[:2], -1)[..., flat]
    found = np.where(inside, found, np.array(lowest(data.dtype), data.dtype))
    which = found.argmax(3)
    most = np.take_along_axis(found, which[..., None], 3)[..., 0]
    inner = number[np.arange(len(number)), which]
    images = np.arange(data.shape[0] * data.shape[1]).reshape(*data.shape[:2], 1)
    total = inner + images * int(np.prod(lengths))
    shape = (*data.shape[:2], *counts)
    return most.reshape(shape), total.reshape(shape).astype(np.int64)
