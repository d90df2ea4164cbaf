"""Pooling over all of an image, and over parts of each axis, as reductions and windows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Final, Literal

import numpy as np

import serde.core.allocation as allocation
from serde.core.records import dataclass
from serde.relay.ir import Dim, Expr, as_dtype, call, const, is_float, tensor_type
from serde.relay.lowering.layout import arranged
from serde.relay.lowering.lengths import length_of

__all__ = ["decompose_adaptive_pool", "decompose_global_pool"]

_REDUCTIONS: Final = {"avg": "mean", "max": "max"}


def decompose_global_pool(kind: Literal["avg", "max"]) -> Callable[..., Expr]:
    def decompose(data: Expr, *, layout: str, out_layout: str) -> Expr:
        axes = tuple(layout.index(letter) for letter in "HW")
        result = call(_REDUCTIONS[kind], data, axis=axes, keepdims=True)
        return arranged(result, layout, out_layout or layout)

    return decompose


def decompose_adaptive_pool(
    kind: Literal["avg", "max"], rank: int, *, windows: bool = False
) -> Callable[..., Expr]:
    """Return what makes an adaptive pooling, axis by axis.

    Args:
        kind: The pooling.
        rank: How many axes have parts.
        windows: Whether maxima are those of one pooling of parts that are of one length by
            repetition, which is fewer nodes where a target pools along three axes.
    """
    usual = "NC" + "DHW"[3 - rank :]
    axes = tuple(range(2, 2 + rank))

    def decompose(
        data: Expr, *, output_size: tuple[int, ...], layout: str, out_layout: str
    ) -> Expr:
        counts = output_size * rank if len(output_size) == 1 else output_size
        shape = tensor_type(data).shape
        images = arranged(data, layout, usual)
        result = pool_evenly(images, counts) if counts else images
        if result is not None:
            pass
        elif rank < 3 or not all(isinstance(length, int) for length in shape):
            result = reduce_parts(images, counts)
        elif windows and is_float(tensor_type(data).dtype):
            result = _greatest_of_windows(images, counts)
        else:
            # Few axes suffice where images and channels are one.
            batch = tensor_type(images).shape
            flat = call("reshape", images, newshape=(-1, *batch[2:]))
            result = call("reshape", reduce_parts(flat, counts), newshape=(*batch[:2], *counts))
        return arranged(result, usual, out_layout or layout)

    def reduce_parts(data: Expr, counts: tuple[int, ...]) -> Expr:
        return _greatest(data, counts) if kind == "max" else _mean(data, counts)

    def pool_evenly(data: Expr, counts: tuple[int, ...]) -> Expr | None:
        """Return a pooling of windows, or of all; None where parts of an axis differ in length."""
        dtype = tensor_type(data).dtype
        if counts == (1,) * rank and (kind == "max" or is_float(dtype)):
            return call(_REDUCTIONS[kind], data, axis=axes, keepdims=True)
        pairs = list(zip(tensor_type(data).shape[2:], counts, strict=True))
        if not all(isinstance(length, int) and length % count == 0 for length, count in pairs):
            return None
        step = tuple(length // count for length, count in pairs)
        sides, name = (0,) * (2 * rank), f"nn.{kind}_pool{rank}d"
        return call(name, data, pool_size=step, strides=step, padding=sides)

    return decompose


def _greatest_of_windows(data: Expr, counts: tuple[int, ...]) -> Expr:
    """Return the maxima of parts whose last elements are repeated up to one length."""
    window = list[Dim]()
    for axis, count in enumerate(counts, start=2):
        most: Dim = 1
        parts = _Parts.of(data, axis, count).indices
        if tensor_type(data).shape[axis] != count:
            most = tensor_type(parts).shape[1]
            flat = call("reshape", parts, newshape=(-1,))
            data = call("take", data, flat, axis=axis, mode="fast")
        window.append(most)
    sides = (0,) * (2 * len(window))
    name = f"nn.max_pool{len(window)}d"
    return call(name, data, pool_size=tuple(window), strides=tuple(window), padding=sides)


def _greatest(data: Expr, counts: tuple[int, ...]) -> Expr:
    for axis, count in enumerate(counts, start=tensor_type(data).rank - len(counts)):
        if tensor_type(data).shape[axis] != count:
            indices = _Parts.of(data, axis, count).indices
            found = call("take", data, indices, axis=axis, mode="fast")
            data = call("max", found, axis=(axis + 1,))
    return data


def _mean(data: Expr, counts: tuple[int, ...]) -> Expr:
    """Integers are summed in int64, and the quotient is cut towards zero."""
    dtype = tensor_type(data).dtype
    floats = is_float(dtype)
    work = ("float64" if dtype == "float64" else "float32") if floats else "int64"
    result, sizes = as_dtype(data, work), list[Expr]()
    rank = tensor_type(data).rank
    for axis, count in enumerate(counts, start=rank - len(counts)):
        if tensor_type(result).shape[axis] == count:
            continue
        parts, behind = _Parts.of(result, axis, count), rank - 1 - axis
        found = call("take", result, parts.indices, axis=axis, mode="fast")
        if parts.inside is None and floats:
            result = call("mean", found, axis=(axis + 1,))
            continue
        if parts.inside is not None:
            found = call("where", _before(parts.inside, behind), found, const(0, work))
        result = call("sum", found, axis=(axis + 1,))
        size = _before(as_dtype(parts.size, work), behind)
        if floats:
            result = call("divide", result, size)
        else:
            sizes.append(size)
    if sizes:
        result = call("divide", result, reduce(partial(call, "multiply"), sizes))
    return as_dtype(result, dtype)


def _before(x: Expr, behind: int) -> Expr:
    """Return a tensor with more axes behind its own."""
    return call("expand_dims", x, axis=-1, num_newaxis=behind) if behind else x


@dataclass(frozen=True)
class _Parts:
    """The parts of an axis, which may overlap.

    Attributes:
        indices: Of the elements of each, ``(count, most)``; the last is repeated.
        inside: Which of them are no repetitions; None if none is.
        size: How many elements each has, ``(count,)``.
    """

    indices: Expr
    inside: Expr | None
    size: Expr

    @classmethod
    def of(cls, data: Expr, axis: int, count: int) -> _Parts:
        length, number = tensor_type(data).shape[axis], allocation.arange(count)
        if isinstance(length, int):
            starts, stops = number * length // count, -(-(number + 1) * length // count)
            sizes = stops - starts
            longest = int(sizes.max())
            found = allocation.repeat(starts[:, None], longest, axis=1) + np.arange(longest)
            held = const(np.minimum(found, stops[:, None] - 1), "int64")
            alike = bool((sizes == longest).all())
            real = None if alike else const(found < stops[:, None], "bool")
            return cls(held, real, const(sizes, "int64"))
        total, parts = length_of(data, axis), const(count, "int64")
        first = call("divide", call("multiply", const(number, "int64"), total), parts)
        reach = call("multiply", const(number + 1, "int64"), total)
        stop = call("divide", call("add", reach, const(count - 1, "int64")), parts)
        size = call("subtract", stop, first)
        most = call("max", size)
        steps = call("arange", const(0, "int64"), most, const(1, "int64"), dtype="int64")
        reads, end = call("expand_dims", first, axis=1), call("expand_dims", stop, axis=1)
        reads = call("add", reads, steps)
        inside = call("less", reads, end)
        own = call("where", inside, reads, call("subtract", end, const(1, "int64")))
        return cls(own, inside, size)
