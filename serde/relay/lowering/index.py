"""Elements that are looked up, marked and overwritten by their numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any as AnyValue, Final

import serde.core.allocation as allocation
from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.relay.ir import Any, Call, Constant, Expr, as_dtype, call, const, tensor_type
from serde.relay.ir.shapes import broadcast, is_float
from serde.relay.lowering.lengths import length_of, permuted, positions, reshaped
from serde.relay.lowering.rules import NO_SIMPLER

__all__ = [
    "RULES", "bring_inside", "decompose_adv_index", "decompose_dyn_one_hot",
    "decompose_invert_permutation", "decompose_one_hot", "decompose_sequence_mask",
    "decompose_strided_set", "decompose_unravel_index", "from_start", "shares_no_axis",
    "take_from_one_axis", "within",
]  # fmt: skip


def from_start(indices: Expr, lengths: Expr) -> Expr:
    """Return indices with negative ones counted from the start; lengths broadcast against them."""
    dtype = tensor_type(indices).dtype
    if dtype.startswith("uint"):
        return indices
    negative = call("less", indices, const(0, dtype))
    return call("where", negative, call("add", indices, lengths), indices)


def bring_inside(indices: Expr, data: Expr, axis: int, mode: str) -> Expr:
    """Return indices that are inside an axis of data: brought to its ends, or counted around it."""
    dtype = tensor_type(indices).dtype
    if mode == "fast":
        return indices
    if dtype not in ("int32", "int64"):
        indices, dtype = as_dtype(indices, "int64"), "int64"
    return within(indices, length_of(data, axis, dtype), mode)


def within(indices: Expr, count: Expr, mode: str) -> Expr:
    """Return indices that are below a count of their dtype: clipped, or counted around it."""
    if mode == "wrap":
        return call("floor_mod", indices, count)
    if isinstance(count, Constant):
        return call("clip", indices, a_min=0.0, a_max=float(max(int(count.data) - 1, 0)))
    dtype = tensor_type(indices).dtype
    last = call("subtract", count, const(1, dtype))
    return call("minimum", call("maximum", indices, const(0, dtype)), last)


def shares_no_axis(node: Call) -> bool:
    """Whether indices of a ``take`` have no axes in common with the data."""
    rank = tensor_type(node.args[1]).rank
    return node.attrs["axis"] is None or node.attrs["batch_dims"] in (0, -rank)


def take_from_one_axis(
    data: Expr, indices: Expr, *, batch_dims: int, axis: int | None, mode: str
) -> Expr:
    """Axes that indices share with the data become one with `axis`: they count on from there."""
    rank, own = tensor_type(data).rank, tensor_type(indices).rank
    shared = batch_dims + own if batch_dims < 0 else batch_dims
    if axis is None or not shared:
        raise Unsupported(NO_SIMPLER)
    place = axis % rank
    index = bring_inside(indices, data, place, mode)
    dtype = tensor_type(index).dtype
    first: Expr = const(0, dtype)
    for each in range(shared):
        shape = [-1 if other == each else 1 for other in range(own)]
        line = call("reshape", positions(indices, each, dtype), newshape=tuple(shape))
        first = call("multiply", first, length_of(data, each, dtype)) if each else first
        first = call("add", first, line)
    index = call("add", index, call("multiply", first, length_of(data, place, dtype)))
    passed, behind = list(range(shared, place)), list(range(place + 1, rank))
    moved = permuted(data, [*range(shared), place, *passed, *behind])
    flat = reshaped(
        moved, data,
        lambda dims: (
            math.prod((*dims[:shared], dims[place])), *(dims[each] for each in passed + behind)
        ),
    )  # fmt: skip
    found = call("take", flat, index, axis=0, mode="fast")
    middle = [own + each for each in range(len(passed))]
    rest = range(own + len(passed), own + len(passed) + len(behind))
    return permuted(found, [*range(shared), *middle, *range(shared, own), *rest])


def _counted(dtype: str) -> str:
    """Return the dtype in which numbers of one dtype and positions are compared."""
    if dtype in ("int32", "int64", "float32", "float64"):
        return dtype
    return "float32" if is_float(dtype) else "int64" if dtype in ("uint32", "uint64") else "int32"


def _mark(
    indices: Expr, steps: Expr, on_value: Expr, off_value: Expr, axis: int, dtype: AnyValue
) -> Expr:
    """Return `on_value` where the steps of a new axis are the indices: none outside is another."""
    rank = tensor_type(indices).rank + 1
    work = tensor_type(steps).dtype
    shape = [1] * rank
    shape[axis % rank] = -1
    keys = call("expand_dims", as_dtype(indices, work), axis=axis % rank)
    marks = call("equal", keys, call("reshape", steps, newshape=tuple(shape)))
    wanted = tensor_type(on_value).dtype if dtype is None else dtype_name(dtype)
    return call("where", marks, as_dtype(on_value, wanted), as_dtype(off_value, wanted))


def decompose_one_hot(
    indices: Expr, on_value: Expr, off_value: Expr, *, depth: int, axis: int, dtype: AnyValue
) -> Expr:
    steps = const(allocation.arange(depth), _counted(tensor_type(indices).dtype))
    return _mark(indices, steps, on_value, off_value, axis, dtype)


def decompose_dyn_one_hot(
    indices: Expr, on_value: Expr, off_value: Expr, depth: Expr, *, axis: int, dtype: AnyValue
) -> Expr:
    work = _counted(tensor_type(indices).dtype)
    counted = tensor_type(depth).dtype
    end = call("reshape", depth, newshape=())
    steps = call("arange", const(0, counted), end, const(1, counted), dtype=counted)
    return _mark(indices, as_dtype(steps, work), on_value, off_value, axis, dtype)


def decompose_sequence_mask(
    data: Expr, valid_length: Expr, *, mask_value: float, axis: int
) -> Expr:
    """Positions run along `axis` (0 or 1), sequences along the other of the two."""
    type_ = tensor_type(data)
    work = _counted(tensor_type(valid_length).dtype)
    position_shape, length_shape = [1] * type_.rank, [1] * type_.rank
    position_shape[axis] = length_shape[1 - axis] = -1
    steps = call("reshape", positions(data, axis, work), newshape=tuple(position_shape))
    bounds = call("reshape", as_dtype(valid_length, work), newshape=tuple(length_shape))
    return call("where", call("less", steps, bounds), data, const(mask_value, type_.dtype))


def decompose_invert_permutation(data: Expr) -> Expr:
    return call("argsort", data, axis=0, dtype=tensor_type(data).dtype)


def decompose_unravel_index(data: Expr, shape: Expr) -> Expr:
    """From the last axis on: ``index[k] = x % shape[k]``, then ``x = x // shape[k]``."""
    dtype, count = tensor_type(data).dtype, tensor_type(shape).shape[0]
    if not isinstance(count, int):
        raise Unsupported("a number of axes that only the model's run shows")
    rest, found = data, list[Expr]()
    for axis in reversed(allocation.iterations(count, f"{count} coordinates")):
        if isinstance(shape, Constant):
            length: Expr = const(shape.data[axis], dtype)
        else:
            place = const(axis, "int32")
            length = as_dtype(call("take", shape, place, axis=0, mode="fast"), dtype)
        found.append(call("floor_mod", rest, length))
        rest = call("floor_divide", rest, length)
    return call("stack", found[::-1], axis=0)


def decompose_adv_index(inputs: tuple[Expr, ...]) -> Expr:
    """The indices broadcast, then stand side by side as rows."""
    data, *indices = inputs
    if len(indices) == 1:
        return call("serde.take", data, indices[0], axis=0)
    wide = "int64" if any(tensor_type(x).dtype == "int64" for x in indices) else "int32"
    numbers = [as_dtype(each, wide) for each in indices]
    shape = broadcast(*(tensor_type(each).shape for each in numbers))
    if Any() in shape:
        whole = reduce(partial(call, "add"), numbers)
        numbers = [call("broadcast_to_like", each, whole) for each in numbers]
    else:
        numbers = [
            each if tensor_type(each).shape == shape else call("broadcast_to", each, shape=shape)
            for each in numbers
        ]
    return call("serde.gather_nd", data, call("stack", numbers, axis=-1), batch_dims=0)


def decompose_strided_set(data: Expr, v: Expr, begin: Expr, end: Expr, strides: Expr) -> Expr:
    """A slice of the flat positions of all elements gives those that the region goes to."""
    flat = call("reshape", data, newshape=(-1,))
    numbers = call("reshape_like", positions(flat, 0), data)
    bounds = [begin, end, strides]
    known = [tuple(map(int, each.data)) for each in bounds if isinstance(each, Constant)]
    if len(known) == len(bounds):
        first, last, steps = known
        places = call("strided_slice", numbers, begin=first, end=last, strides=steps, axes=None)
    else:
        places = call("dyn.strided_slice", numbers, *bounds, axes=None)
    new = call("reshape", call("broadcast_to_like", v, places), newshape=(-1,))
    where = call("reshape", places, newshape=(-1,))
    written = call("scatter_elements", flat, where, new, axis=0, reduction="update")
    return call("reshape_like", written, data)


def _searchsorted(sorted_sequence: Expr, values: Expr, *, right: bool, dtype: AnyValue) -> Expr:
    """Return how many elements are before each value, which is compared with all of them."""
    own = tensor_type(sorted_sequence).rank
    row = call("expand_dims", sorted_sequence, axis=own - 1) if own > 1 else sorted_sequence
    keys = call("expand_dims", values, axis=tensor_type(values).rank)
    before = call("less_equal" if right else "less", row, keys)
    count = call("sum", call("cast", before, dtype="int32"), axis=(-1,))
    return as_dtype(count, dtype_name(dtype))


RULES: Final[dict[str, Callable[..., Expr]]] = {"searchsorted": _searchsorted}
"""What operators are made of where a target lacks them."""
