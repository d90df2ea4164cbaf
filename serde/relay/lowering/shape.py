"""Tensors cut, padded, spread, summed and put in other layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any as AnyValue, TypeAlias

import numpy as np

import serde.core.allocation as allocation
from serde.core.weights import Array
from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Constant, Dim, Expr, Tuple, call, const, same_length, tensor_type
from serde.relay.ir.layout import LayoutPlan
from serde.relay.ir.precision import as_dtype
from serde.relay.lowering.lengths import (
    LAST,
    length_of,
    permuted,
    positions,
    reshaped,
    scalars,
    shape_vector,
    sliced,
)

__all__ = [
    "continued", "decompose_collapse_sum_like", "decompose_collapse_sum_to",
    "decompose_layout_transform", "decompose_matrix_set_diag", "decompose_meshgrid",
    "decompose_mirror_pad", "decompose_pad", "decompose_repeat", "decompose_reshape_like",
    "decompose_sliding_window", "decompose_trilu",
]  # fmt: skip


def decompose_layout_transform(data: Expr, *, src_layout: str, dst_layout: str) -> Expr:
    """The pieces of each letter are brought together, filled, cut anew, and put in order."""

    def plan(shape: Sequence[Dim]) -> LayoutPlan:
        return LayoutPlan(shape, src_layout, dst_layout, filled=True)

    steps = plan(tensor_type(data).shape)
    if len(steps.gather) == len(steps.parts) == len(steps.merged):
        return permuted(data, [steps.gather[axis] for axis in steps.spread])
    whole = reshaped(permuted(data, steps.gather), data, lambda shape: plan(shape).merged)
    zero = const(0, tensor_type(data).dtype)
    widths = tuple((0, more) for more in steps.padding if isinstance(more, int))
    if len(widths) < len(steps.padding):
        columns = call("stack", scalars(data, lambda shape: plan(shape).padding), axis=0)
        pairs = call("stack", [call("zeros_like", columns), columns], axis=1)
        whole = call("dyn.nn.pad", whole, pairs, zero)
    elif any(more for _, more in widths):
        whole = call("nn.pad", whole, zero, pad_width=widths)
    whole = reshaped(whole, data, lambda shape: plan(shape).parts)
    return permuted(whole, steps.spread)


def _number_rows_and_columns(data: Expr, dtype: str) -> tuple[Expr, Expr]:
    """Return the numbers of rows, as a column, and of columns, as a row."""
    rows, columns = (positions(data, axis, dtype) for axis in (-2, -1))
    return call("expand_dims", rows, axis=1), call("expand_dims", columns, axis=0)


def decompose_trilu(data: Expr, k: Expr, *, upper: bool) -> Expr:
    """How far an element lies right of the main diagonal tells whether it is kept."""
    work = "int64" if tensor_type(k).dtype == "int64" else "int32"
    rows, columns = _number_rows_and_columns(data, work)
    apart = call("subtract", columns, rows)
    inside = call("greater_equal" if upper else "less_equal", apart, as_dtype(k, work))
    return call("where", inside, data, const(0, tensor_type(data).dtype))


def decompose_matrix_set_diag(
    input: Expr,
    diagonal: Expr,
    *,
    k1: int,
    k2: int,
    super_diag_right_align: bool,
    sub_diag_right_align: bool,
) -> Expr:
    """``y[i, j] = diagonal[k2 - (j - i), step]`` where there is such a diagonal.

    An element lies as far along its diagonal as the smaller of its row and column says.
    """
    rows, columns = _number_rows_and_columns(input, "int32")
    zero = const(0, "int32")
    number = call("subtract", columns, rows)
    height, width, longest = (
        length_of(x, axis, "int32") for x, axis in ((input, -2), (input, -1), (diagonal, -1))
    )
    step = call("minimum", rows, columns)
    if super_diag_right_align or sub_diag_right_align:
        tall = call("add", height, call("minimum", number, zero))
        wide = call("subtract", width, call("maximum", number, zero))
        skip = call("subtract", longest, call("minimum", tall, wide))
        if not (super_diag_right_align and sub_diag_right_align):
            side = call("greater_equal" if super_diag_right_align else "less", number, zero)
            skip = call("where", side, skip, zero)
        step = call("add", step, skip)
    line = call("subtract", const(k2, "int32"), number)
    inside = call(
        "logical_and",
        call("greater_equal", line, zero),
        call("less_equal", line, const(k2 - k1, "int32")),
    )
    place = call("where", inside, call("add", call("multiply", line, longest), step), zero)
    batch = tensor_type(input).rank - 2
    flat = call("reshape", diagonal, newshape=(*[0] * batch, -1)) if k1 != k2 else diagonal
    found = call("take", flat, place, axis=batch, mode="fast")
    return call("where", inside, found, input)


def decompose_sliding_window(
    data: Expr, *, axis: int, window_shape: tuple[int, ...], strides: tuple[int, ...]
) -> Expr:
    """Along each axis the positions of all windows are looked up; their own axes come last."""
    rank, count = tensor_type(data).rank, len(window_shape)
    first = axis % rank
    for number, (size, step) in enumerate(zip(window_shape, strides, strict=True)):
        along = first + 2 * number
        starts = positions(sliced(data, along, size - 1, step=step), along)
        starts = call("multiply", starts, const(step, "int64"))
        inner = const(list(range(size)), "int64")
        places = call("add", call("expand_dims", starts, axis=1), inner)
        data = call("take", data, places, axis=along, mode="fast")
    last = rank + count
    order = [*range(first), *range(first, last, 2), *range(first + 1, last, 2)]
    return permuted(data, order)


def decompose_meshgrid(data: tuple[Expr, ...], *, indexing: str) -> Expr:
    """Each vector lies along an axis of its own and is spread over the others."""
    order = list(range(len(data)))
    if indexing == "xy":
        order[:2] = order[1::-1]
    lines, sizes = [], [data[0]] * len(data)
    for place, each in zip(order, data, strict=True):
        sizes[place] = call("reshape", each, newshape=(-1,))
        shape = [1] * len(data)
        shape[place] = -1
        lines.append(call("reshape", each, newshape=tuple(shape)))
    wanted = tuple(tensor_type(each).shape[0] for each in sizes)
    if Any() not in wanted:
        return Tuple([call("broadcast_to", line, shape=wanted) for line in lines])
    vector = call("concatenate", [shape_vector(each) for each in sizes], axis=0)
    return Tuple([call("dyn.broadcast_to", line, vector) for line in lines])


def decompose_repeat(data: Expr, *, repeats: int, axis: int | None) -> Expr:
    """Copies along a new axis become one with the axis before it."""
    if axis is None:
        data, axis = call("reshape", data, newshape=(-1,)), 0
    rank = tensor_type(data).rank
    counts = [1] * rank
    counts.insert(axis % rank + 1, repeats)
    wide = call("tile", call("expand_dims", data, axis=axis % rank + 1), reps=tuple(counts))
    factors = [repeats if each == axis % rank else 1 for each in range(rank)]
    return reshaped(wide, data, lambda own: [n * k for n, k in zip(own, factors, strict=True)])


def decompose_reshape_like(
    data: Expr,
    shape_like: Expr,
    *,
    lhs_begin: int,
    lhs_end: int | None,
    rhs_begin: int,
    rhs_end: int | None,
) -> Expr:
    own, like = tensor_type(data).shape, tensor_type(shape_like).shape
    kept = range(len(own))[lhs_begin:lhs_end]
    start, stop = (kept.start, kept.stop)
    wanted = (*own[:start], *like[rhs_begin:rhs_end], *own[stop:])
    if Any() not in wanted:
        return call("reshape", data, newshape=wanted, allowzero=0 in wanted)
    new = range(len(like))[rhs_begin:rhs_end]
    parts = [
        shape_vector(data, 0, start),
        shape_vector(shape_like, new.start, new.stop),
        shape_vector(data, stop),
    ]
    lengths = [part for part in parts if tensor_type(part).shape != (0,)]
    vector = lengths[0] if len(lengths) == 1 else call("concatenate", lengths, axis=0)
    return call("dyn.reshape", data, vector)


def decompose_collapse_sum_like(data: Expr, collapse_type: Expr) -> Expr:
    wanted = tensor_type(collapse_type).shape
    return _collapse(data, wanted, partial(length_of, collapse_type))


def decompose_collapse_sum_to(data: Expr, shape: Expr, *, dtype: AnyValue) -> Expr:
    count = tensor_type(shape).shape[0]
    wanted: Sequence[Dim] = [Any()] * count if isinstance(count, int) else []
    if isinstance(shape, Constant):
        wanted = [int(each) for each in shape.data]
    return _collapse(
        data,
        wanted,
        lambda axis: call(
            "take", as_dtype(shape, "int64"), const(axis, "int64"), axis=0, mode="fast"
        ),
    )


_WIDE = {
    **dict.fromkeys(("int8", "uint8", "int16", "uint16"), "int32"),
    **dict.fromkeys(("uint32", "uint64"), "int64"),
}
"""In what integers are added that runtimes add no others of."""


def _collapse(data: Expr, wanted: Sequence[Dim], length_along: Callable[[int], Expr]) -> Expr:
    """Sum over the axes in front of `wanted` and those of length 1 there.

    Where it shows at run time only which these are, each sum is taken and as much as is wanted of
    it or of what was summed is kept.
    """
    dtype = tensor_type(data).dtype
    reduction, work = ("any", dtype) if dtype == "bool" else ("sum", _WIDE.get(dtype, dtype))
    data = as_dtype(data, work)
    own = tensor_type(data).shape
    offset = len(own) - len(wanted)
    pairs = list(enumerate(zip(own[offset:], wanted, strict=True)))
    short = [i + offset for i, (have, want) in pairs if want == 1 != have]
    axes = (*range(offset), *short)
    total = call(reduction, data, axis=axes, keepdims=True) if axes else data
    if offset:
        total = call("squeeze", total, axis=tuple(range(offset)))
    for axis, (have, want) in pairs:
        if want == 1 or same_length(have, want):
            continue
        length = length_along(axis)
        single = call("equal", length, const(1, "int64"))
        summed = call(reduction, total, axis=(axis,), keepdims=True)
        total = call("where", single, summed, total)
        bounds = [call("reshape", each, newshape=(1,)) for each in (const(0, "int64"), length)]
        total = call(
            "dyn.strided_slice", total, *bounds, const([1], "int64"), slice_mode="end", axes=(axis,)
        )
    known = Any() not in wanted and tensor_type(total).shape != tuple(wanted)
    total = as_dtype(total, dtype)
    return call("reshape", total, newshape=tuple(wanted)) if known else total


Widths: TypeAlias = Sequence[tuple[int, int]]


def decompose_pad(data: Expr, pad_val: Expr, *, pad_width: Widths, pad_mode: str) -> Expr:
    """Blocks of one value around each axis, or its own elements; what is cut off goes first."""
    if pad_mode != "constant":
        return continued(data, pad_width, pad_mode)
    value = as_dtype(pad_val, tensor_type(data).dtype)
    for axis, (before, after) in enumerate(pad_width):
        if before < 0 or after < 0:
            data = sliced(data, axis, max(-before, 0), after if after < 0 else LAST)
    for axis, sides in enumerate(pad_width):
        data = _between(data, axis, [_block(data, value, axis, width) for width in sides])
    return data


def decompose_mirror_pad(data: Expr, *, mode: str, pad_width: Widths) -> Expr:
    return continued(data, pad_width, mode.lower())


def continued(data: Expr, pad_width: Widths, mode: str) -> Expr:
    """Return a tensor continued by its own elements along each axis.

    Args:
        data: The tensor.
        pad_width: How many before and after each axis; of an open length at most as many.
        mode: NumPy's name of which they are: ``edge``, ``reflect``, ``symmetric`` or ``wrap``.
    """
    for axis, (before, after) in enumerate(pad_width):
        length = tensor_type(data).shape[axis]
        if not before and not after:
            continue
        if length == 0:
            raise TypeInferenceError(f"axis {axis}, which is empty, has nothing to continue it by")
        if isinstance(length, int):
            own = allocation.arange(length, dtype=np.int32)
            data = _taken(data, axis, allocation.pad(own, [(before, after)], mode))
            continue
        steps = allocation.arange(max(before, after), dtype=np.int32)
        first = {"edge": 0 * steps, "reflect": steps + 1, "symmetric": steps, "wrap": -1 - steps}
        front = first[mode][:before][::-1]
        behind = -1 - first[mode][:after]
        sides = [_taken(data, axis, each) if each.size else None for each in (front, behind)]
        data = _between(data, axis, sides)
    return data


def _taken(data: Expr, axis: int, indices: Array) -> Expr:
    """Return entries of an axis, those below 0 counted from its end."""
    mode = "wrap" if indices.min() < 0 else "fast"
    return call("take", data, Constant(indices), axis=axis, mode=mode)


def _between(data: Expr, axis: int, sides: Sequence[Expr | None]) -> Expr:
    before, after = sides
    parts = tuple(each for each in (before, data, after) if each is not None)
    return call("concatenate", parts, axis=axis) if len(parts) > 1 else data


def _block(data: Expr, value: Expr, axis: int, width: int) -> Expr | None:
    """Return one value as wide along an axis, and as long along the others as a tensor is."""
    if width <= 0:
        return None
    shape, dtype = tensor_type(data).shape, tensor_type(data).dtype
    wanted = (*shape[:axis], width, *shape[axis + 1 :])
    if all(isinstance(dim, int) for dim in wanted):
        return call("full", value, shape=wanted, dtype=dtype)
    if shape[axis] == 0:  # A sum of nothing is something to take.
        total = call("sum", as_dtype(data, "float32"), axis=(axis,), keepdims=True)
        data = as_dtype(total, dtype)
    return call("full_like", _taken(data, axis, allocation.zeros((width,), np.int32)), value)
