"""Functions that TVM's importers call by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any as AnyValue, Final

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext as Import, Scalar, Shape
from serde.relay.ir import Expr, TensorType, call

__all__ = ["FUNCTIONS"]


def _pairs(ctx: Import, *sides: Shape) -> AnyValue:
    return list(zip(*map(ctx.known_dims, sides), strict=True))


def _set_diagonal(ctx: Import, _type: TensorType, data: Expr, diagonal: Expr, *rest: Expr) -> Expr:
    first, last, *right = (int(ctx.item(each)) for each in rest)
    align = "_".join("RIGHT" if each else "LEFT" for each in right)
    return relay.matrix_set_diag(data, diagonal, (first, last), align)


def _draw(ctx: Import, type_: TensorType, *given: Scalar, op: str, names: tuple[str, str]) -> Expr:
    """TVM draws from one generator of its own, whatever the seeds are."""
    if type_.concrete_shape is None:
        raise Unsupported("random numbers of a shape that is not fixed")
    numbers = dict(zip(names, map(ctx.number, given[2:]), strict=True))
    return call(op, None, shape=type_.concrete_shape, dtype=type_.dtype, **numbers)


def _space_to_batch(
    ctx: Import,
    _type: TensorType,
    x: Expr,
    block: Shape,
    before: Shape,
    after: Shape,
    value: Scalar,
) -> Expr:
    sides, number = _pairs(ctx, before, after), ctx.number(value)
    named = {"block_shape": ctx.known_dims(block), "paddings": sides, "pad_value": number}
    return call("nn.space_to_batch_nd", x, **named)


def _batch_to_space(
    ctx: Import, _type: TensorType, x: Expr, block: Shape, begin: Shape, end: Shape
) -> Expr:
    crops = _pairs(ctx, begin, end)
    return call("nn.batch_to_space_nd", x, block_shape=ctx.known_dims(block), crops=crops)


def _to_dense(
    ctx: Import, _type: TensorType, indices: Expr, shape: Expr, values: Expr, default: Expr
) -> Expr:
    return relay.sparse_to_dense(indices, ctx.ints(shape), values, default)


_uniform = partial(_draw, op="serde.random_uniform", names=("low", "high"))
_normal = partial(_draw, op="serde.random_normal", names=("mean", "scale"))

FUNCTIONS: Final[Mapping[str, tuple[tuple[type, ...], Callable[..., Expr]]]] = {
    "topi.nn.space_to_batch_nd": ((Expr, Shape, Shape, Shape, Scalar), _space_to_batch),
    "topi.nn.batch_to_space_nd": ((Expr, Shape, Shape, Shape), _batch_to_space),
    "topi.sparse_to_dense": ((Expr,) * 4, _to_dense),
    "topi.matrix_set_diag": ((Expr,) * 6, _set_diagonal),
    "tvm.contrib.random.uniform": ((Scalar,) * 4, _uniform),
    "tvm.contrib.random.normal": ((Scalar,) * 4, _normal),
}
"""Their arguments, and what they are; that gets the context and the type of its result first."""
