"""Walks over the rows or columns of matrices: what factorisations are decomposed into."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from serde.errors import TypeInferenceError
from serde.relay.ir import TensorType, call, join_dim, require_float
from serde.relay.ir.expr import Expr, Function, Tuple, TupleGetItem, Var, const, tensor_type
from serde.relay.lowering.lengths import positions

__all__ = [
    "identity_like", "narrow_like", "select_where", "square_type", "take_column", "take_row",
    "walk", "widen_narrow",
]  # fmt: skip

Step = Callable[..., tuple[Sequence[Expr], Sequence[Expr]]]


def square_type(data: TensorType) -> TensorType:
    """Return the type of floating-point matrices of as many rows as columns."""
    require_float(data)
    if data.rank < 2:
        raise TypeInferenceError(f"expected matrices, found {data!r}")
    size = join_dim(data.shape[-2], data.shape[-1])
    return TensorType((*data.shape[:-2], size, size), data.dtype)


def widen_narrow(data: Expr) -> Expr:
    """Return `data` in the dtype to compute in: float32 for what is narrower."""
    narrow = tensor_type(data).dtype in ("float16", "bfloat16")
    return call("cast", data, dtype="float32") if narrow else data


def narrow_like(result: Expr, like: Expr) -> Expr:
    """Return what was computed of :func:`widen_narrow` data in the dtype of that data."""
    dtype = tensor_type(like).dtype
    return result if tensor_type(result).dtype == dtype else call("cast", result, dtype=dtype)


def take_row(data: Expr, place: Expr) -> Expr:
    """Return one row of each matrix, without its axis."""
    return call("take", data, place, axis=tensor_type(data).rank - 2, mode="fast")


def take_column(data: Expr, place: Expr) -> Expr:
    """Return one column of each matrix, without its axis."""
    return call("take", data, place, axis=tensor_type(data).rank - 1, mode="fast")


def select_where(mask: Expr, data: Expr, other: float = 0.0) -> Expr:
    """Return `data` where `mask` holds, and elsewhere one number."""
    return call("where", mask, data, const(other, tensor_type(data).dtype))


def identity_like(data: Expr) -> Expr:
    """Return ones on the diagonal, zeros elsewhere, in the shape and dtype of `data`."""
    down = call("expand_dims", positions(data, -2), axis=1)
    mask = call("equal", down, positions(data, -1))
    return call("where", mask, const(1.0, tensor_type(data).dtype), call("zeros_like", data))


def walk(
    along: Expr, states: Sequence[Expr], captures: Sequence[Expr], step: Step,
    *, slices: Sequence[Expr] = (), axes: Sequence[int] = (), out_axes: Sequence[int] = (),
    reverse: bool = False,
) -> list[Expr]:  # fmt: skip
    """Return the last states and what is stacked of a ``serde.scan``.

    Args:
        along: A vector to walk along, see :func:`positions`.
        states: What goes into the first step.
        captures: What every step gets alike.
        step: Gets an element of `along`, the states, slices and captures; returns the next
            states and what is stacked.
        slices: What is walked along besides.
        axes: The axis of each of `slices`.
        out_axes: The axis of each stack.
        reverse: Whether to walk from the end.
    """
    state = [Var(f"state{i}", tensor_type(each)) for i, each in enumerate(states)]
    place = Var("place", TensorType((), tensor_type(along).dtype))
    parts = [
        Var(f"part{i}", _without(tensor_type(each), axis))
        for i, (each, axis) in enumerate(zip(slices, axes, strict=True))
    ]
    kept = [Var(f"capture{i}", tensor_type(each)) for i, each in enumerate(captures)]
    following, stacked = step(place, *state, *parts, *kept)
    body = Function([*state, place, *parts, *kept], Tuple([*following, *stacked]))
    found = call(
        "serde.scan", tuple(states), (along, *slices), tuple(captures), body=body, axes=(0, *axes),
        reverse=(reverse,) * (1 + len(slices)), out_axes=tuple(out_axes),
        out_reverse=(reverse,) * len(out_axes),
    )  # fmt: skip
    return [TupleGetItem(found, index) for index in range(len(states) + len(out_axes))]


def _without(type_: TensorType, axis: int) -> TensorType:
    shape = list(type_.shape)
    del shape[axis]
    return TensorType(shape, type_.dtype)
