"""Convolutions at learned places."""

from __future__ import annotations

from typing import Any as AnyValue

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import split_padding
from serde.walk.expansion.tensors import fixed_shape, tensor_type

__all__: list[str] = []


@OPS.expands("nn.deformable_conv2d")
def expand_deformable_conv2d(
    data: Expr,
    offset: Expr,
    weight: Expr,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    deformable_groups: int,
    groups: int,
    channels: AnyValue,
    kernel_size: AnyValue,
    out_dtype: AnyValue,
    **_layouts: str,
) -> Expr:
    """Edges do not fade before the first pixel: taps that lie there are weighed by nothing."""
    dtype = tensor_type(data).dtype
    if out_dtype not in (None, dtype):
        raise Unsupported(f"a convolution of {dtype} in {out_dtype}")
    size, (batch, _, *counts) = fixed_shape(weight)[2:], fixed_shape(offset)
    before, after = split_padding(padding, 2)
    pairs = relay.reshape(offset, (batch, deformable_groups, *size, 2, *counts))
    sides = []
    for axis in range(2):
        starts = allocation.arange(counts[axis]) * strides[axis] - before[axis]
        taps = allocation.arange(size[axis]) * dilation[axis]
        places = allocation.outer_sum(taps, starts).reshape(
            [size[axis] if i == axis else counts[axis] if i == 2 + axis else 1 for i in range(4)]
        )
        moved = relay.squeeze(relay.strided_slice(pairs, [axis], [axis + 1], [1], axes=[4]), [4])
        place = relay.add(moved, relay.const(places, dtype))
        sides.append(relay.cast(relay.greater_equal(place, relay.const(0.0, dtype)), dtype))
    mask = relay.reshape(
        relay.multiply(*sides), (batch, deformable_groups * size[0] * size[1], *counts)
    )
    return call(
        "serde.deform_conv2d", data, weight, offset, relay.Tuple([]), mask,
        strides=strides, padding=(*before, *after), dilation=dilation, groups=groups,
        offset_groups=deformable_groups,
    )  # fmt: skip
