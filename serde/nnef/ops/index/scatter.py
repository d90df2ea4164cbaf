"""Elements written to constant places: each of the result is looked up in what is there.

What comes where is what the operators' kernels make of the numbers of elements.
"""

from __future__ import annotations

from math import prod
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array
from serde.errors import RelayError, Unsupported
from serde.nnef.ops.table import OPS
from serde.relay.ir import Constant, Expr, get
from serde.relay.run.interpreter import apply_kernel
from serde.walk.expansion.tensors import fixed_shape


def _known(*places: Expr) -> list[Array]:
    """Return places that are constant."""
    found: list[Array] = [each.data for each in places if isinstance(each, Constant)]
    if len(found) < len(places):
        raise Unsupported("NNEF has no fragment that writes elements to places that are computed")
    return found


def _require_update(how: str) -> None:
    if how != "update":
        raise Unsupported(f"elements that are written by {how!r}; NNEF does not accumulate so")


def _numbers(*sources: Expr) -> list[Array]:
    """Return the numbers of the elements of tensors that lie behind one another."""
    found, start = [], 0
    for each in sources:
        shape = fixed_shape(each)
        found.append(allocation.arange(start, start + prod(shape), dtype=np.int64).reshape(shape))
        start += prod(shape)
    return found


def _look_up(name: str, sources: list[Expr], operands: list[Array], **attrs: AnyValue) -> Expr:
    """Return elements of tensors where the kernel of an operator puts their numbers."""
    try:
        result: Array = np.asarray(apply_kernel(get(name), operands, attrs))
    except RelayError as error:
        raise Unsupported(f"places that are not there: {error}") from None
    flat = [relay.reshape(each, [prod(fixed_shape(each))]) for each in sources]
    together = relay.concatenate(flat, axis=0)
    return relay.take(together, Constant(result.astype(np.int32)), axis=0, mode="fast")


@OPS.expands("scatter_elements")
def expand_scatter_elements(
    data: Expr, indices: Expr, updates: Expr, *, axis: int, reduction: str
) -> Expr:
    (places,) = _known(indices)
    _require_update(reduction)
    old, new = _numbers(data, updates)
    operands = [old, places, new]
    return _look_up("scatter_elements", [data, updates], operands, axis=axis, reduction=reduction)


@OPS.expands("scatter_nd")
def expand_scatter_nd(data: Expr, indices: Expr, updates: Expr, *, mode: str) -> Expr:
    (places,) = _known(indices)
    _require_update(mode)
    old, new = _numbers(data, updates)
    return _look_up("scatter_nd", [data, updates], [old, places, new], mode=mode)


@OPS.expands("serde.tensor_scatter")
def expand_tensor_scatter(
    data: Expr, update: Expr, write_indices: Expr | None, *, axis: int, mode: str
) -> Expr:
    first = () if write_indices is None else _known(write_indices)[0]
    old, new = _numbers(data, update)
    operands: list[AnyValue] = [old, new, first]
    return _look_up("serde.tensor_scatter", [data, update], operands, axis=axis, mode=mode)
