"""Functions that TVM's importers call by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue, Final

import serde.relay as relay
from serde.errors import Unsupported
from serde.relax.import_context import ImportContext as Import, Scalar, Shape
from serde.relay.ir import Expr, TensorType

__all__ = ["FUNCTIONS"]


def _pairs(ctx: Import, one: Shape, other: Shape) -> list[tuple[AnyValue, ...]]:
    return list(zip(ctx.known_dims(one), ctx.known_dims(other), strict=True))


def _space_to_batch_nd(
    ctx: Import, _type: TensorType, data: Expr, block: Shape, before: Shape, after: Shape,
    value: Scalar,
) -> Expr:  # fmt: skip
    sides = _pairs(ctx, before, after)
    return relay.nn.space_to_batch_nd(data, ctx.known_dims(block), sides, ctx.number(value))


def _batch_to_space_nd(
    ctx: Import, _type: TensorType, data: Expr, block: Shape, begin: Shape, end: Shape
) -> Expr:
    return relay.nn.batch_to_space_nd(data, ctx.known_dims(block), _pairs(ctx, begin, end))


def _sparse_to_dense(
    ctx: Import, _type: TensorType, indices: Expr, shape: Expr, values: Expr, default: Expr
) -> Expr:
    return relay.sparse_to_dense(indices, ctx.ints(shape), values, default)


def _matrix_set_diag(
    ctx: Import, _type: TensorType, data: Expr, diagonal: Expr, first: Expr, last: Expr,
    super_right: Expr, sub_right: Expr,
) -> Expr:  # fmt: skip
    sides = ("RIGHT" if ctx.item(each) else "LEFT" for each in (super_right, sub_right))
    k = int(ctx.item(first)), int(ctx.item(last))
    return relay.matrix_set_diag(data, diagonal, k, "_".join(sides))


def _draw(
    ctx: Import, type_: TensorType, _seed: Scalar, _second: Scalar, low: Scalar, high: Scalar,
    *, normal: bool,
) -> Expr:  # fmt: skip
    """TVM draws from one generator of its own, whatever the seeds are."""
    shape = type_.concrete_shape
    if shape is None:
        raise Unsupported("random numbers of a shape that is not fixed")
    numbers = ctx.number(low), ctx.number(high)
    if normal:
        named = {"mean": numbers[0], "scale": numbers[1]}
        return relay.serde.random_normal(shape=shape, dtype=type_.dtype, **named)
    named = {"low": numbers[0], "high": numbers[1]}
    return relay.serde.random_uniform(shape=shape, dtype=type_.dtype, **named)


FUNCTIONS: Final[Mapping[str, Callable[..., Expr]]] = {
    "topi.nn.space_to_batch_nd": _space_to_batch_nd,
    "topi.nn.batch_to_space_nd": _batch_to_space_nd,
    "topi.sparse_to_dense": _sparse_to_dense,
    "topi.matrix_set_diag": _matrix_set_diag,
    "tvm.contrib.random.uniform": lambda *args: _draw(*args, normal=False),
    "tvm.contrib.random.normal": lambda *args: _draw(*args, normal=True),
}
"""What they are; each gets the context, the type of its result, and the arguments."""
