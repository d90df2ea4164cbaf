"""Lists, tuples and dicts of TorchScript, which are Python's while the program is walked.

Lists are shared by identity, as in TorchScript, so that what one name appends another sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any as AnyValue, Final, TypeVar

import serde.relay as relay
from serde.core.limits import budget
from serde.errors import Unsupported
from serde.relay.ir import Any, Expr, call
from serde.torch.host.numbers import add, both, equals
from serde.torch.host.registry import evaluates
from serde.torch.host.values import DynamicEntries, as_sequence, element_type, is_dynamic
from serde.torch.import_context import ImportContext, Scalar, SymInt

__all__ = ["DYNAMIC_LIST_EVALUATORS", "changed", "draw_entries", "new_list", "require_known"]

Items = list[AnyValue]
ItemsT = TypeVar("ItemsT", list[AnyValue], dict[AnyValue, AnyValue])


def new_list(ctx: ImportContext, items: Sequence[AnyValue]) -> Items:
    """Return a list that the program makes."""
    draw_entries(len(items))
    found = list(items)
    ctx.changes.create(found)
    return found


def draw_entries(count: int) -> None:
    """Draw the memory of a list or a text of so many entries.

    Raises:
        LimitError: It takes more than is left.
    """
    budget().draw("constants", 8 * max(count, 0), f"a list or text of {count:,} entries")


def _repeat(items: Items, count: int) -> Items:
    draw_entries(len(items) * count)
    return items * count


def require_known(items: AnyValue) -> None:
    """Refuse a list whose length is only known when the model runs.

    Raises:
        Unsupported: It is one.
    """
    if is_dynamic(items):
        raise Unsupported("a list whose length is only known when the model runs")


def _place(ctx: ImportContext, items: Sequence[AnyValue], index: SymInt, *, end: int = 0) -> int:
    """Return an index counted from the front."""
    require_known(items)
    place = ctx.fixed(index)
    if not -len(items) <= place < len(items) + end:
        raise Unsupported(f"index {place} is outside a list of {len(items)}")
    return place if place >= 0 else place + len(items)


# Made and taken apart.
@evaluates("prim::ListConstruct", moves=True)
def make_list(ctx: ImportContext, *items: AnyValue) -> Items:
    return new_list(ctx, items)


@evaluates("prim::TupleConstruct", moves=True)
def make_tuple(ctx: ImportContext, *items: AnyValue) -> tuple[AnyValue, ...]:
    return items


@evaluates("prim::DictConstruct", moves=True)
def make_dict(ctx: ImportContext, *items: AnyValue) -> dict[AnyValue, AnyValue]:
    found = dict(zip(items[::2], items[1::2], strict=True))
    ctx.changes.create(found)
    return found


@evaluates("prim::ListUnpack", "prim::TupleUnpack", moves=True)
def unpack(ctx: ImportContext, items: Sequence[AnyValue]) -> AnyValue:
    require_known(items)
    if len(items) != ctx.outputs:
        raise Unsupported(f"expected {ctx.outputs} values, found {len(items)}")
    return items[0] if ctx.outputs == 1 else list(items)


@evaluates("prim::TupleIndex", moves=True)
def index_tuple(ctx: ImportContext, tup: Sequence[AnyValue], i: int) -> AnyValue:
    return tup[_place(ctx, tup, i)]


@evaluates("prim::TupleSlice", moves=True)
def slice_tuple(
    ctx: ImportContext, tup: Sequence[AnyValue], start: int, end: int, step: int = 1
) -> tuple[AnyValue, ...]:
    return tuple(tup[start:end:step])


@evaluates("aten::list.t", "aten::copy.t", moves=True)
def copy_list(ctx: ImportContext, items: Items) -> Items:
    return new_list(ctx, items)


# Read.
@evaluates("_operator::getitem", "aten::__getitem__.t", "aten::select.t", moves=True)
def get_item(ctx: ImportContext, items: AnyValue, index: SymInt) -> AnyValue:
    if isinstance(items, list) and is_dynamic(items):
        return _get_of_dynamic(ctx, items, index)
    if isinstance(index, Expr) and not isinstance(ctx.dim(index), int):
        return _choose(ctx, items, index)
    return items[_place(ctx, items, index)]


def _get_of_dynamic(ctx: ImportContext, items: Items, index: SymInt) -> AnyValue:
    """Return an entry of a list of unknown length."""
    known = index if isinstance(index, int) else None
    head = next(place for place, each in enumerate(items) if isinstance(each, DynamicEntries))
    if known is not None and 0 <= known < head:
        return items[known]
    if known is not None and known < 0 and not is_dynamic(items[known:]) and -known <= len(items):
        return items[known]
    place = ctx.number(index)
    first = items[0]
    if len(items) == 1 and first.is_stacked:
        rows = first.entries
        found = relay.take(rows, _from_front(ctx, rows, place), axis=0, mode="clip")
        return ctx.as_number(found) if first.number else ctx.fold(found)
    element = element_type(ctx, items)
    if element is None:
        raise Unsupported("an entry of an empty list")
    entries = as_sequence(ctx, items, element)
    found = call("serde.sequence_at", entries.entries, place)
    return ctx.as_number(found) if entries.number else ctx.fold(found)


def _from_front(ctx: ImportContext, rows: Expr, place: Expr) -> Expr:
    known = ctx.known(place)
    if known is not None and known >= 0:
        return place
    length = ctx.number(ctx.size(rows, 0))
    zero = ctx.number(0)
    return ctx.fold(relay.where(relay.less(place, zero), relay.add(place, length), place))


def _choose(ctx: ImportContext, items: Sequence[AnyValue], index: Expr) -> AnyValue:
    """Return the entry at an index that is computed, of numbers or tensors of one shape."""
    element = element_type(ctx, list(items))
    if element is None or any(isinstance(dim, Any) for dim in element.shape):
        raise Unsupported("an index that is computed into a list of tensors of several shapes")
    rows = relay.stack([ctx.cast(ctx.number(each), element.dtype) for each in items], axis=0)
    found = relay.take(rows, _from_front(ctx, rows, index), axis=0, mode="clip")
    plain = all(not isinstance(each, Expr) or ctx.is_number(each) for each in items)
    return ctx.as_number(found) if plain else ctx.fold(found)


@evaluates("aten::len.t", moves=True)
def length_of_list(ctx: ImportContext, items: Items) -> Scalar:
    total: Scalar = sum(not isinstance(each, DynamicEntries) for each in items)
    for each in items:
        if isinstance(each, DynamicEntries) and each.is_stacked:
            total = add(ctx, total, ctx.size(each.entries, 0))
        elif isinstance(each, DynamicEntries):
            count = call("serde.sequence_length", each.entries)
            total = add(ctx, total, ctx.as_number(count))
    return total


@evaluates("aten::slice.t", moves=True)
def slice_list(
    ctx: ImportContext,
    items: Items,
    start: SymInt | None = None,
    end: SymInt | None = None,
    step: int = 1,
) -> Items:
    require_known(items)
    first = None if start is None else ctx.fixed(start)
    last = None if end is None else ctx.fixed(end)
    return new_list(ctx, items[first:last:step])


@evaluates("aten::add.t", moves=True)
def join_lists(ctx: ImportContext, a: Items, b: Items) -> Items:
    draw_entries(len(a) + len(b))
    return new_list(ctx, [*a, *b])


@evaluates("aten::mul.left_t", moves=True)
def repeat_list(ctx: ImportContext, items: Items, count: SymInt) -> Items:
    require_known(items)
    return new_list(ctx, _repeat(items, ctx.fixed(count)))


@evaluates("aten::mul.right_", moves=True)
def repeat_list_right(ctx: ImportContext, count: SymInt, items: Items) -> Items:
    return repeat_list(ctx, items, count)


# Changed in place.
def changed(ctx: ImportContext, items: ItemsT) -> ItemsT:
    """Return a list or dict that is about to be changed in place."""
    ctx.changes.before(items)
    return items


@evaluates("aten::append.t", moves=True)
def append(ctx: ImportContext, items: Items, element: AnyValue) -> Items:
    changed(ctx, items).append(element)
    return items


@evaluates("aten::extend.t", "aten::add_.t", moves=True)
def extend(ctx: ImportContext, items: Items, other: Items) -> Items:
    draw_entries(len(other))
    changed(ctx, items).extend(list(other))
    return items


@evaluates("aten::mul_.t", moves=True)
def repeat_in_place(ctx: ImportContext, items: Items, count: SymInt) -> Items:
    require_known(items)
    changed(ctx, items)[:] = _repeat(items, ctx.fixed(count))
    return items


@evaluates("aten::insert.t", moves=True)
def insert(ctx: ImportContext, items: Items, index: SymInt, element: AnyValue) -> None:
    require_known(items)
    changed(ctx, items).insert(ctx.fixed(index), element)


@evaluates("aten::pop.t", moves=True)
def pop(ctx: ImportContext, items: Items, index: SymInt = -1) -> AnyValue:
    place = _place(ctx, items, index)
    return changed(ctx, items).pop(place)


@evaluates("aten::Delete.t", moves=True)
def delete(ctx: ImportContext, items: Items, index: SymInt) -> None:
    del changed(ctx, items)[_place(ctx, items, index)]


@evaluates("aten::_set_item.t", moves=True)
def set_item(ctx: ImportContext, items: Items, index: SymInt, element: AnyValue) -> Items:
    place = _place(ctx, items, index)
    changed(ctx, items)[place] = element
    return items


@evaluates("aten::clear.t", moves=True)
def clear(ctx: ImportContext, items: Items) -> None:
    changed(ctx, items).clear()


@evaluates("aten::reverse.t", moves=True)
def reverse(ctx: ImportContext, items: Items) -> None:
    require_known(items)
    changed(ctx, items).reverse()


# Numbers in lists.
def _known_numbers(items: Sequence[AnyValue]) -> list[AnyValue]:
    require_known(items)
    if any(isinstance(each, Expr) for each in items):
        raise Unsupported("needs a list of numbers that are known beforehand")
    return list(items)


@evaluates("aten::sort.int", "aten::sort.float", "aten::sort.bool", "aten::sort.str")
def sort(ctx: ImportContext, items: Items, reverse: bool = False) -> None:
    changed(ctx, items)[:] = sorted(_known_numbers(items), reverse=reverse)


@evaluates("aten::sorted.int", "aten::sorted.float", "aten::sorted.bool", "aten::sorted.str")
def sorted_list(ctx: ImportContext, items: Items) -> Items:
    return new_list(ctx, sorted(_known_numbers(items)))


def _register_python(function: Callable[[Items], AnyValue], *names: str) -> None:
    """Let Python's own function compute what is asked of a list of known numbers."""
    evaluates(*names)(lambda _ctx, items: function(_known_numbers(items)))


_register_python(min, "prim::min.self_int", "prim::min.self_float", "prim::min.self_bool")
_register_python(max, "prim::max.self_int", "prim::max.self_float", "prim::max.self_bool")
_register_python(any, "aten::any.int", "aten::any.float", "aten::any.bool", "aten::any.str")
_register_python(all, "aten::all.int", "aten::all.float", "aten::all.bool")


@evaluates("aten::sum.int", "aten::sum.float", "aten::sum.bool", "aten::sum.complex")
def sum_of_list(ctx: ImportContext, items: Items) -> Scalar:
    require_known(items)
    return reduce(partial(add, ctx), items, 0)


@evaluates(*(f"aten::index.list_{kind}" for kind in ("int", "float", "bool", "str")))
def find_in_list(ctx: ImportContext, items: Items, element: AnyValue) -> int:
    known = _known_numbers([*items, element])[:-1]
    if element not in known:
        raise Unsupported(f"{element!r} is not in the list")
    return known.index(element)


@evaluates(*(f"aten::count.{kind}" for kind in ("int", "float", "bool", "str")))
def count_in_list(ctx: ImportContext, items: Items, element: AnyValue) -> int:
    return _known_numbers([*items, element])[:-1].count(element)


@evaluates(*(f"aten::remove.{kind}" for kind in ("int", "float", "bool", "str")))
def remove(ctx: ImportContext, items: Items, element: AnyValue) -> None:
    changed(ctx, items).pop(find_in_list(ctx, items, element))


@evaluates("aten::__contains__.int_list", "aten::__contains__.str_list")
@evaluates("aten::__contains__.float_list")
def contains(ctx: ImportContext, items: Items, element: AnyValue) -> bool:
    return element in _known_numbers([*items, element])[:-1]


_KINDS = ("int_list", "float_list", "bool_list", "str_list")


@evaluates(*(f"aten::eq.{kind}" for kind in _KINDS))
def lists_are_equal(ctx: ImportContext, a: Items, b: Items) -> Scalar:
    """Lengths of one symbol are equal; whether others are is computed."""
    require_known(a)
    require_known(b)
    if len(a) != len(b):
        return False
    equal: Scalar = True
    for one, other in zip(a, b, strict=True):
        same = one == other if isinstance(one, str) else equals(ctx, one, other)
        if same is False or equal is False:
            return False
        equal = same if equal is True else equal if same is True else both(ctx, equal, same)
    return equal


@evaluates(*(f"aten::ne.{kind}" for kind in _KINDS))
def lists_differ(ctx: ImportContext, a: Items, b: Items) -> Scalar:
    equal = lists_are_equal(ctx, a, b)
    if not isinstance(equal, Expr):
        return not equal
    return ctx.as_number(relay.logical_not(equal))


@evaluates("prim::rangelist")
def range_list(ctx: ImportContext, n: SymInt) -> Items:
    return new_list(ctx, range(ctx.fixed(n)))


def _rows(ctx: ImportContext, items: Items) -> Expr:
    """Return the entries of a list as rows of one tensor."""
    parts: list[Expr] = []
    plain: list[Expr] = []
    for each in items:
        if isinstance(each, DynamicEntries):
            parts += [relay.stack(plain, axis=0)] if plain else []
            parts.append(each.as_rows())
            plain = []
        else:
            plain.append(ctx.number(each))
    parts += [relay.stack(plain, axis=0)] if plain else []
    return parts[0] if len(parts) == 1 else relay.concatenate(parts, axis=0)


def _stack(ctx: ImportContext, items: Items, dim: int = 0) -> Expr:
    rows = _rows(ctx, items)
    rank = ctx.type(rows).rank
    axis = dim % rank
    if axis == 0:
        return ctx.fold(rows)
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
    return ctx.fold(relay.transpose(rows, axes=order))


def _concatenate(ctx: ImportContext, items: Items, dim: int = 0) -> Expr:
    """Entries that are not rows of one tensor may differ in the length of the axis."""
    element = element_type(ctx, items)
    if element is None:
        raise Unsupported("no tensors to concatenate")
    axis = dim % element.rank
    if len(items) > 1 or not items[0].is_stacked:
        entries = as_sequence(ctx, items, element).entries
        return ctx.fold(call("serde.sequence_concat", entries, axis=axis, new_axis=False))
    stacked = _stack(ctx, items, axis)
    shape = ctx.type(stacked).shape
    if any(not isinstance(each, int) for each in shape[:axis] + shape[axis + 1 :]):
        sizes = [ctx.size(stacked, place) for place in range(len(shape))]
        sizes[axis : axis + 2] = [-1]
        return ctx.fold(call("dyn.reshape", stacked, ctx.shape_vector(sizes)))
    return ctx.fold(relay.reshape(stacked, newshape=(*shape[:axis], -1, *shape[axis + 2 :])))


def _tensor(ctx: ImportContext, items: Items, *rest: AnyValue) -> Expr:
    if any(each is not None and each is not False and each != "cpu" for each in rest):
        raise Unsupported("a tensor of a list whose length is only known when the model runs")
    rows = _rows(ctx, items)
    return ctx.cast(rows, ctx.default_dtype) if ctx.dtype(rows) == "float64" else rows


DYNAMIC_LIST_EVALUATORS: Final[dict[str, Callable[..., AnyValue]]] = {
    "aten::stack": _stack,
    "aten::cat": _concatenate,
    "aten::concat": _concatenate,
    "aten::concatenate": _concatenate,
    "aten::tensor": _tensor,
}
"""What evaluates an operator of which one argument is such a list."""
