"""Pooling of padded data, by slices where a target lacks the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any as AnyValue, Literal

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.relay.ir import Expr, as_dtype, call, is_float, lowest, split_padding, tensor_type
from serde.relay.ir.types import TensorType
from serde.relay.lowering.lengths import LAST, sliced

__all__ = ["USUAL", "combine_windows", "pool_expansion"]

USUAL = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
"""The layout in which parts are taken, by the number of spatial axes."""


def combine_windows(
    data: Expr,
    sizes: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    combine: Callable[[Expr, Expr], Expr],
) -> Expr:
    """Combine the elements of every window, slices of one spatial axis after the other.

    Args:
        data: (batch, channels, *lengths), padded.
        sizes: Elements of a window along each spatial axis.
        strides: Steps from one window to the next.
        dilation: Steps from one element of a window to the next.
        combine: What joins two tensors element by element.

    Raises:
        LimitError: A window has more elements than nodes may be made.
    """
    allocation.iterations(sum(sizes), f"a window of {list(sizes)}, written element by element,")
    for axis, (size, stride, gap) in enumerate(zip(sizes, strides, dilation, strict=True), start=2):
        span = (size - 1) * gap
        parts = [
            sliced(data, axis, at, at - span if at < span else LAST, stride)
            for at in range(0, size * gap, gap)
        ]
        data = reduce(combine, parts)
    return data


def pool_expansion(
    kind: Literal["max", "avg"], work_dtype: Callable[[str, str], str], *, direct: bool = True
) -> Callable[..., Expr]:
    """Return what makes a pooling of one of padded data, or of slices.

    Slices are combined of integers and where windows have gaps. What rounding up adds is padding.

    Args:
        kind: The pooling.
        work_dtype: Gives the dtype to compute in, of a dtype and of the kind. That of a maximum
            may be another kind of number, which the target has windows of.
        direct: Whether the target pools padded data at all.
    """

    def expand_pool(data: Expr, **attrs: AnyValue) -> Expr:
        dtype = tensor_type(data).dtype
        work = work_dtype(dtype, kind)
        window = _PaddedWindow(work, attrs, direct)
        result = window.maximum(data) if kind == "max" else window.mean(data)
        if kind == "avg" and is_float(work) and not is_float(dtype):
            result = relay.trunc(result)
        return as_dtype(result, dtype)

    return expand_pool


_LEAST = 2.0**-60
"""Less than the share of one element in any window."""


class _PaddedWindow:
    """A window over data that are padded beforehand, computed in a dtype."""

    def __init__(self, dtype: str, attrs: Mapping[str, AnyValue], direct: bool) -> None:
        self.dtype = dtype
        self.size, self.strides, self.dilation = (
            tuple(attrs[name]) for name in ("pool_size", "strides", "dilation")
        )
        self.counts_padding = attrs.get("count_include_pad", False)
        before, after = split_padding(attrs["padding"], len(self.size))
        spare = [stride - 1 if attrs["ceil_mode"] else 0 for stride in self.strides]
        ends = [last + more for last, more in zip(after, spare, strict=True)]
        self.sides = [(0, 0), (0, 0), *zip(before, ends, strict=True)]
        self.is_direct = direct and is_float(dtype) and set(self.dilation) == {1}

    def maximum(self, data: Expr) -> Expr:
        """Return the maximum; padding is the least finite value, as in TVM."""
        wide = self._pad(as_dtype(data, self.dtype), lowest(tensor_type(data).dtype))
        return self._pool("max", wide) if self.is_direct else self._combine(wide, relay.maximum)

    def mean(self, data: Expr) -> Expr:
        """Return the mean of all elements, or of those inside the data."""
        wide = self._pad(as_dtype(data, self.dtype), 0)
        whole = self.counts_padding or not any(map(any, self.sides))
        if self.is_direct and is_float(tensor_type(data).dtype):
            mean = self._pool("avg", wide)
            share = None if whole else self._pool("avg", self._ones(data))
            return mean if share is None else relay.divide(mean, self._at_least(share, _LEAST))
        total = self._combine(wide, relay.add)
        if self.counts_padding:
            return relay.divide(total, relay.const(prod(self.size), self.dtype))
        counts = self._combine(self._ones(data), relay.add)
        return relay.divide(total, self._at_least(counts, 1))

    def _at_least(self, x: Expr, value: float) -> Expr:
        return relay.maximum(x, relay.const(value, self.dtype))

    def _ones(self, data: Expr) -> Expr:
        """Return padded ones where `data` are; of one image and channel if lengths are fixed."""
        lengths = TensorType(tensor_type(data).shape[2:]).concrete_shape
        if lengths is None:
            return self._pad(as_dtype(relay.ones_like(data), self.dtype), 0)
        ones = allocation.ones((1, 1, *lengths), numpy_dtype(self.dtype))
        return self._pad(relay.Constant(ones), 0)

    def _pad(self, data: Expr, value: AnyValue) -> Expr:
        if not any(map(any, self.sides)):
            return data
        return relay.nn.pad(data, self.sides, relay.const(value, self.dtype))

    def _pool(self, kind: str, data: Expr) -> Expr:
        attrs: dict[str, AnyValue] = {"count_include_pad": True} if kind == "avg" else {}
        name, sides = f"nn.{kind}_pool{len(self.size)}d", (0,) * (2 * len(self.size))
        return call(name, data, pool_size=self.size, strides=self.strides, padding=sides, **attrs)

    def _combine(self, data: Expr, join: Callable[[Expr, Expr], Expr]) -> Expr:
        return combine_windows(data, self.size, self.strides, self.dilation, join)
