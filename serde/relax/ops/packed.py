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


FUNCTIONS: Final[Mapping[str, Callable[..., Expr]]] = {
    "topi.nn.space_to_batch_nd": lambda ctx, _, x, block, before, after, value: call(
        "nn.space_to_batch_nd", x, block_shape=ctx.known_dims(block),
        paddings=_pairs(ctx, before, after), pad_value=ctx.number(value),
    ),
    "topi.nn.batch_to_space_nd": lambda ctx, _, x, block, begin, end: call(
        "nn.batch_to_space_nd", x, block_shape=ctx.known_dims(block),
        crops=_pairs(ctx, begin, end),
    ),
    "topi.sparse_to_dense": lambda ctx, _, indices, shape, values, default: (
        relay.sparse_to_dense(indices, ctx.ints(shape), values, default)
    ),
    "topi.matrix_set_diag": _set_diagonal,
    "tvm.contrib.random.uniform": partial(_draw, op="serde.random_uniform", names=("low", "high")),
    "tvm.contrib.random.normal": partial(_draw, op="serde.random_normal", names=("mean", "scale")),
}  # fmt: skip
"""What they are; each gets the context, the type of its result, and the arguments."""
