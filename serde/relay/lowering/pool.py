"""Pooling over all of an image, and over parts of each axis, as reductions and windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from serde.errors import Unsupported
from serde.relay.ir import Expr, call, is_float, tensor_type
from serde.relay.lowering.layout import arranged
from serde.relay.lowering.lengths import sliced

__all__ = ["decompose_adaptive_pool", "decompose_global_pool"]

_MOST_PARTS: Final = 1024
"""Parts that overlap are written one by one."""

_REDUCTIONS: Final = {"avg": "mean", "max": "max"}


def decompose_global_pool(kind: Literal["avg", "max"]) -> Callable[..., Expr]:
    def decompose(data: Expr, *, layout: str, out_layout: str) -> Expr:
        axes = tuple(layout.index(letter) for letter in "HW")
        result = call(_REDUCTIONS[kind], data, axis=axes, keepdims=True)
        return arranged(result, layout, out_layout or layout)

    return decompose


def decompose_adaptive_pool(kind: Literal["avg", "max"], rank: int) -> Callable[..., Expr]:
    usual = "NC" + "DHW"[3 - rank :]
    axes = tuple(range(2, 2 + rank))

    def decompose(
        data: Expr, *, output_size: tuple[int, ...], layout: str, out_layout: str
    ) -> Expr:
        dtype = tensor_type(data).dtype
        if kind == "avg" and not is_float(dtype):
            raise Unsupported(f"a mean over parts of {dtype}")
        counts = output_size * rank if len(output_size) == 1 else output_size
        result = reduce_parts(arranged(data, layout, usual), counts)
        return arranged(result, usual, out_layout or layout)

    def reduce_parts(data: Expr, counts: tuple[int, ...]) -> Expr:
        """One axis after the other; parts of one length are windows of a pooling."""
        if not counts:
            return data
        if counts == (1,) * rank:
            return call(_REDUCTIONS[kind], data, axis=axes, keepdims=True)
        lengths = tensor_type(data).shape[2:]
        fixed = [length for length in lengths if isinstance(length, int)]
        if len(fixed) < rank:
            raise Unsupported(f"needs fixed lengths, found {tensor_type(data)!r}")
        pairs = list(zip(fixed, counts, strict=True))
        if all(length % count == 0 for length, count in pairs):
            step = tuple(length // count for length, count in pairs)
            sides = (0,) * (2 * rank)
            name = f"nn.{kind}_pool{rank}d"
            return call(name, data, pool_size=step, strides=step, padding=sides)
        for axis, (length, count) in zip(axes, pairs, strict=True):
            if length != count:
                data = _parts(data, axis, length, count, kind)
        return data

    return decompose


def _parts(data: Expr, axis: int, length: int, count: int, kind: str) -> Expr:
    """Return what a part of an axis comes to, for each of as many parts; they may overlap."""
    if count > _MOST_PARTS:
        raise Unsupported(f"{count} parts of an axis of {length} are too many to write")
    places = []
    for index in range(count):
        part = sliced(data, axis, index * length // count, -(-(index + 1) * length // count))
        places.append(call(_REDUCTIONS[kind], part, axis=(axis,), keepdims=True))
    return call("concatenate", places, axis=axis)
