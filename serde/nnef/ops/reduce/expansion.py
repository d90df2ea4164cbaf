"""Reductions that NNEF has no fragment for."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any as AnyValue

import serde.relay as relay
from serde.nnef.ops.elementwise.integers import narrow_as_scalars
from serde.nnef.ops.index.gather import require_exact
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float, reduced_axes
from serde.walk.expansion.tensors import fixed_shape, tensor_type

__all__: list[str] = []


@OPS.expands("prod")
def expand_prod(data: Expr, *, axis: tuple[int, ...] | None, keepdims: bool, exclude: bool) -> Expr:
    """One half of an axis is multiplied by the other until one element is left."""
    axes = reduced_axes(len(fixed_shape(data)), axis, exclude)
    for place in axes:
        data = _multiply_along(data, place)
    return data if keepdims or not axes else relay.squeeze(data, axis=axes)


def _multiply_along(data: Expr, axis: int) -> Expr:
    """Return the product along an axis, which stays."""
    shape = list(fixed_shape(data))
    if not shape[axis]:
        shape[axis] = 1
        return relay.ones(shape, tensor_type(data).dtype)
    length = shape[axis]
    while length > 1:
        half = length // 2

        def part(begin: int, end: int, x: Expr = data) -> Expr:
            return relay.strided_slice(x, [begin], [end], axes=[axis])

        product = relay.multiply(part(0, half), part(half, 2 * half))
        rest = [part(2 * half, length)] if length % 2 else []
        data = relay.concatenate((product, *rest), axis=axis) if rest else product
        length = half + length % 2
    return data


def _extreme(name: str) -> Callable[..., Expr]:
    """Return what makes an extreme of integers that scalars hold."""

    def expand_extreme(
        data: Expr, *, axis: tuple[int, ...] | None, keepdims: bool, exclude: bool
    ) -> Expr:
        numbers = narrow_as_scalars(data)
        found = call(name, numbers, axis=axis, keepdims=keepdims, exclude=exclude)
        return relay.cast(found, tensor_type(data).dtype)

    return expand_extreme


def _place_of(name: str) -> Callable[..., Expr]:
    """Return what makes the place of an extreme of integers, or that of the last of equals."""

    def expand_place(
        data: Expr,
        *,
        axis: tuple[int, ...] | None,
        keepdims: bool,
        select_last_index: bool,
        exclude: bool,
    ) -> Expr:
        dtype = tensor_type(data).dtype
        numbers = data if is_float(dtype) or dtype == "bool" else narrow_as_scalars(data)
        attributes: dict[str, AnyValue] = {"axis": axis, "keepdims": keepdims, "exclude": exclude}
        if not select_last_index:
            return call(name, numbers, **attributes)
        shape = fixed_shape(data)
        axes = reduced_axes(len(shape), axis, exclude)
        for each in axes:
            numbers = relay.reverse(numbers, axis=each)
        count = prod(shape[each] for each in axes)
        scalar = dtype if is_float(dtype) else "float32"
        require_exact(count, scalar)
        first = relay.cast(call(name, numbers, **attributes), scalar)
        return relay.cast(relay.subtract(relay.const(count - 1, scalar), first), "int32")

    return expand_place


for _name in ("max", "min"):
    OPS.expands(_name)(_extreme(_name))
for _name in ("argmax", "argmin"):
    OPS.expands(_name)(_place_of(_name))
