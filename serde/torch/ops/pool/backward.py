"""Gradients of poolings."""

from __future__ import annotations

import math

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, call
from serde.torch.ops.conv.windows import over_batch
from serde.torch.ops.pool.geometry import PoolAttributes
from serde.torch.ops.table import OPS, Import


@OPS.imports(
    "aten::max_pool2d_with_indices_backward",
    ignored=("kernel_size", "stride", "padding", "dilation", "ceil_mode"),
)
def import_max_pool_backward(ctx: Import, grad_output: Expr, self: Expr, indices: Expr) -> Expr:
    """Gradients are added where the indices, which count in a channel, say."""
    lengths = ctx.static_lengths(self, [-2, -1])
    head = [ctx.size(self, axis) for axis in range(ctx.type(self).rank - 2)]
    flat = ctx.shape_vector([*head, math.prod(lengths)])
    empty = relay.reshape(relay.zeros_like(self), flat)
    rows = ctx.shape_vector([*head, -1])
    places, given = (relay.reshape(x, rows) for x in (indices, grad_output))
    found = relay.scatter_elements(empty, places, given, axis=-1, reduction="add")
    return relay.reshape_like(found, self)


@OPS.imports("aten::_adaptive_avg_pool2d_backward")
def import_adaptive_avg_pool_backward(ctx: Import, grad_output: Expr, self: Expr) -> Expr:
    """Each axis is a product with the matrix of shares that elements have in parts."""
    lengths = ctx.static_lengths(self, [-2, -1])
    counts = ctx.static_lengths(grad_output, [-2, -1])
    if 0 in (*lengths, *counts):
        raise Unsupported(f"the gradient of {list(counts)} means over {list(lengths)} elements")
    rows, columns = (
        _shares(length, count, ctx.dtype(self))
        for length, count in zip(lengths, counts, strict=True)
    )
    left = call("serde.matmul", Constant(np.ascontiguousarray(rows.data.T)), grad_output)
    return call("serde.matmul", left, columns)


def _shares(length: int, count: int, dtype: str) -> Constant:
    found = allocation.zeros((count, length))
    for part in range(count):
        start, stop = part * length // count, -(-(part + 1) * length // count)
        found[part, start:stop] = 1 / (stop - start)
    return Constant(found.astype(numpy_dtype(dtype)))


@OPS.imports("aten::avg_pool2d_backward")
def import_avg_pool_backward(
    ctx: Import,
    grad_output: Expr,
    self: Expr,
    *,
    pool: PoolAttributes,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> Expr:
    """Each gradient is spread over its window: a transposed convolution with ones."""
    window = pool.window(ctx, self, 2)
    if window.ceil_mode or any(window.past):
        raise Unsupported("the gradient of a mean over windows that are cut")
    if any(window.padding) and not count_include_pad and divisor_override is None:
        raise Unsupported("the gradient of a mean that does not count padding")
    dtype = ctx.dtype(self)
    (channels,) = ctx.static_lengths(self, [-3])
    lengths = ctx.static_lengths(self, [-2, -1])
    counts = ctx.static_lengths(grad_output, [-2, -1])
    divisor = divisor_override or math.prod(window.size)
    missing = [
        length + 2 * pad - (count - 1) * step - reach
        for length, pad, count, step, reach in zip(
            lengths, window.padding, counts, window.strides, window.reach, strict=False
        )
    ]
    ones = allocation.full((channels, 1, *window.size), 1 / divisor).astype(numpy_dtype(dtype))

    def spread(x: Expr) -> Expr:
        padded = _conv_transpose(x, Constant(ones), window.strides, channels)
        widths = [(0, 0), (0, 0), *((0, each) for each in missing)]
        padded = relay.nn.pad(padded, widths, ctx.scalar(0, dtype))
        begin = list(window.padding[:2])
        end = [a + b for a, b in zip(begin, lengths, strict=True)]
        return relay.strided_slice(padded, begin=begin, end=end, strides=[1, 1], axes=[2, 3])

    return over_batch(ctx, grad_output, 2, spread)


def _conv_transpose(x: Expr, weight: Expr, strides: tuple[int, ...], channels: int) -> Expr:
    return relay.nn.conv2d_transpose(x, weight, strides=strides, groups=channels, channels=channels)
