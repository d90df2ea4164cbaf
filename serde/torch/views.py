"""Operators of PyTorch whose results share memory with their first argument.

Each is registered with its inverse: what the argument becomes when other elements are written to
the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue, Final, TypeAlias

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.relay.ir.expr import Constant, Expr
from serde.torch.import_context import ImportContext, SymInt

__all__ = ["VIEWS", "Call", "ViewOperator", "shares_memory", "view_operator"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operator that made a view.

    Attributes:
        op: The operator.
        arguments: Its arguments besides the tensor, by name.
        index: Which of several results the view is.
        begin: Of results that are neighbouring parts, how far from the front this one begins.
        length: How long it is.
    """

    op: str
    arguments: Mapping[str, AnyValue]
    index: int = 0
    begin: SymInt = 0
    length: SymInt = 0

    def get(self, *names: str, default: AnyValue = None) -> AnyValue:
        """Return an argument, which overloads may call differently."""
        return next((self.arguments[name] for name in names if name in self.arguments), default)


Put: TypeAlias = Callable[[ImportContext, Expr, Expr, Call], Expr]
"""Gives the argument, of its value before and of the view's new one."""


@dataclass(frozen=True, slots=True)
class ViewOperator:
    """An operator that makes views.

    Attributes:
        put: Its inverse.
        bijective: Whether every element of the argument is in the result.
        reorders: Whether the result's elements lie in memory in another order.
        axis: The axis that it takes a part of, given the call.
        maybe: Whether it copies where the argument is not contiguous.
    """

    put: Put
    bijective: bool = False
    reorders: bool = False
    axis: Callable[[Call], int] | None = None
    maybe: bool = False

    def contiguous(self, before: bool | None, shape: Sequence[AnyValue], call: Call) -> bool | None:
        """Return whether the elements of a view lie one after the other; None if not known.

        Args:
            before: Whether those of the argument do.
            shape: Its lengths.
            call: What made the view.
        """
        if self.axis is not None:
            outer = shape[: self.axis(call) % len(shape)]
            plain = call.get("step", default=1) == 1
            return before if plain and all(each == 1 for each in outer) else None
        return None if self.reorders else before


VIEWS: Final[dict[str, ViewOperator]] = {}
"""Operators that make views, by their names without overload."""


def view_operator(op: str) -> ViewOperator | None:
    """Return what is known of an operator that makes views."""
    return VIEWS.get(op.partition(".")[0])


def _register(names: str, operator: ViewOperator) -> None:
    VIEWS.update({f"aten::{name}": operator for name in names.split()})


# The same elements in another shape.


def _put_shape(ctx: ImportContext, base: Expr, new: Expr, call: Call) -> Expr:
    if call.op == "aten::view.dtype":
        raise Unsupported("a write through a view of other dtype")
    shape = ctx.type(base).concrete_shape
    if shape is not None:
        return ctx.fold(relay.reshape(new, newshape=shape))
    return ctx.fold(relay.reshape_like(new, base))


_register(
    "view view_as unflatten squeeze unsqueeze atleast_1d atleast_2d atleast_3d _reshape_alias",
    ViewOperator(_put_shape, bijective=True),
)
_register("reshape reshape_as flatten ravel", ViewOperator(_put_shape, bijective=True, maybe=True))


# The axes in another order.


def _put_axes(ctx: ImportContext, base: Expr, new: Expr, call: Call) -> Expr:
    order = _order(call, ctx.type(base).rank)
    return ctx.fold(relay.transpose(new, axes=[int(axis) for axis in np.argsort(order)]))


def _order(call: Call, rank: int) -> list[int]:
    """Return which axis of the argument each axis of the view is."""
    name = call.op.partition(".")[0].removeprefix("aten::")
    if name == "permute":
        return [axis % rank for axis in call.get("dims")]
    if name in ("movedim", "moveaxis"):
        return _moved(_list(call.get("source")), _list(call.get("destination")), rank)
    order = list(range(rank))
    if name == "numpy_T":
        return order[::-1]
    first, second = call.get("dim0", "axis0"), call.get("dim1", "axis1")
    if first is None:
        first, second = (0, 1) if name == "t" else (-2, -1)
    if rank > 1:
        order[first], order[second] = order[second], order[first]
    return order


def _moved(source: Sequence[int], destination: Sequence[int], rank: int) -> list[int]:
    places = {to % rank: axis % rank for axis, to in zip(source, destination, strict=True)}
    rest = iter([axis for axis in range(rank) if axis not in places.values()])
    return [places[place] if place in places else next(rest) for place in range(rank)]


def _list(value: int | Sequence[int]) -> Sequence[int]:
    return [value] if isinstance(value, int) else value


_register(
    "permute transpose t numpy_T mT mH adjoint swapaxes swapdims movedim moveaxis",
    ViewOperator(_put_axes, bijective=True, reorders=True),
)


# Parts along an axis.


def _dim(call: Call) -> int:
    name = call.op.partition(".")[0]
    fixed = {"aten::hsplit": 1, "aten::vsplit": 0, "aten::dsplit": 2}
    found: int = call.get("dim", default=fixed.get(name, 0))
    return found


def _set_part(
    ctx: ImportContext, base: Expr, new: Expr, axis: int, begin: SymInt, end: SymInt, step: int = 1
) -> Expr:
    """Return a tensor of which the entries of an axis from `begin` to `end` are replaced."""
    axis = ctx.axis(base, axis)
    first = ctx.shape_vector([0] * axis + [begin])
    last = ctx.shape_vector([_FAR] * axis + [end])
    strides = ctx.shape_vector([1] * axis + [step])
    return ctx.fold(relay.strided_set(base, new, first, last, strides))


_FAR: Final = 2**31 - 1
"""An end behind all entries."""


def _put_slice(ctx: ImportContext, base: Expr, new: Expr, call: Call) -> Expr:
    begin, end = call.get("start"), call.get("end")
    begin = 0 if begin is None else begin
    end = _FAR if end is None or (isinstance(end, int) and end > _FAR) else end
    return _set_part(ctx, base, new, _dim(call), begin, end, ctx.fixed(call.get("step", default=1)))


def _put_narrow(ctx: ImportContext, base: Expr, new: Expr, call: Call) -> Expr:
    axis, begin = ctx.axis(base, call.get("dim")), call.get("start")
    if isinstance(begin, int) and begin < 0:
        begin = _plus(ctx, ctx.size(base, axis), begin)
    return _set_part(ctx, base, new, axis, begin, _plus(ctx, begin, call.get("length")))


def _put_select(ctx: ImportContext, base: Expr, new: Expr, call: Call) -> Expr:
    """A computed index may count from behind."""
    axis, index = ctx.axis(base, call.get("dim")), call.get("index")
    new = ctx.fold(relay.expand_dims(new, axis=axis))
    if isinstance(index, Expr):
        size = ctx.number(ctx.size(base, axis))
        index = relay.where(
            relay.less(index, relay.const(0, "int64")), relay.add(index, size), index
        )
        return _set_part(ctx, base, new, axis, index, _plus(ctx, index, 1))
    return _set_part(ctx, base, new, axis, index, _FAR if index == -1 else index + 1)


def _put_neighbour(ctx: ImportContext, base: Expr, new: Expr, call: Call) -> Expr:
    end = _plus(ctx, call.begin, call.length)
    return _set_part(ctx, base, new, _dim(call), call.begin, end)


def _put_unbound(ctx: ImportContext, base: Expr, new: Expr, call: Call) -> Expr:
    axis = ctx.axis(base, _dim(call))
    new = ctx.fold(relay.expand_dims(new, axis=axis))
    return _set_part(ctx, base, new, axis, call.index, call.index + 1)


def _plus(ctx: ImportContext, one: SymInt, other: SymInt) -> SymInt:
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    return ctx.fold(relay.add(ctx.number(one), ctx.number(other)))


_register("slice", ViewOperator(_put_slice, axis=_dim))
_register("narrow", ViewOperator(_put_narrow, axis=_dim))
_register("select", ViewOperator(_put_select, axis=_dim))
_register("unbind", ViewOperator(_put_unbound, axis=_dim))
_register(
    "split split_with_sizes chunk tensor_split hsplit vsplit dsplit",
    ViewOperator(_put_neighbour, axis=_dim),
)


# Other views.


def _put_diagonal(ctx: ImportContext, base: Expr, new: Expr, call: Call) -> Expr:
    """The elements are gathered from those of both, by indices of the flat tensor."""
    shape = ctx.static_shape(base)
    numbers = allocation.arange(int(np.prod(shape))).reshape(shape)
    axes = call.get("dim1", default=0), call.get("dim2", default=1)
    found = numbers.diagonal(call.get("offset", default=0), *axes)
    places = allocation.arange(numbers.size)
    places[found.reshape(-1)] = numbers.size + allocation.arange(found.size)
    flat = [relay.reshape(each, newshape=(-1,)) for each in (base, new)]
    taken = relay.take(relay.concatenate(flat, axis=0), Constant(places), axis=0)
    return ctx.fold(relay.reshape(taken, newshape=shape))


_register("diagonal", ViewOperator(_put_diagonal, reorders=True))


def _put_repeated(ctx: ImportContext, base: Expr, new: Expr, call: Call) -> Expr:
    if ctx.type(base).shape == ctx.type(new).shape:
        return new
    raise Unsupported("a write to a tensor that is expanded, whose elements share memory")


_register("expand expand_as broadcast_to", ViewOperator(_put_repeated, reorders=True))


def _refuse(ctx: ImportContext, base: Expr, new: Expr, call: Call) -> Expr:
    raise Unsupported(f"a write through {call.op}, whose inverse is not known")


_register(
    "as_strided unfold real imag view_as_real view_as_complex", ViewOperator(_refuse, reorders=True)
)


# Operators that may return their argument itself.

_SELF: Final = frozenset(
    "alias conj cpu cuda detach lift positive resolve_conj resolve_neg set_data".split()  # noqa: SIM905
)
_CONVERTS: Final = frozenset(
    """
    _autocast_to_full_precision _autocast_to_reduced_precision bool double float half int long to
    type_as
    """.split()  # noqa: SIM905
)
_DROPS: Final = frozenset(["dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"])
_UNSURE: Final = frozenset(["einsum", "meshgrid", "broadcast_tensors", "sum_to_size", "pad"])


def shares_memory(
    op: str, arguments: Mapping[str, AnyValue], *, same: bool, contiguous: bool | None
) -> bool | None:
    """Return whether the result of an operator is its argument; None if that is not known.

    Args:
        op: An operator that makes no views.
        arguments: Its arguments.
        same: Whether the result has the dtype and the shape of the first.
        contiguous: Whether the elements of the first lie one after the other.
    """
    name = op.partition(".")[0].removeprefix("aten::")
    if name in _SELF:
        return True
    if name in _CONVERTS:
        return same and not arguments.get("copy", False)
    if name == "contiguous":
        return contiguous if contiguous else None
    if name in _DROPS:
        return not arguments.get("train", True) or arguments.get("p") == 0
    return None if name in _UNSURE else False
