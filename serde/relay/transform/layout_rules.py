"""How each operator follows its operands into another order of axes.

A rule gets a converter and a call. It returns the call on operands in another
order, and in which order its result then is; or None where the old order is
needed, or where no operand is in another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from serde.core.records import dataclass
from serde.relay.ir import Call, Constant, Dim, Expr, Tuple, Var, has_trait, tensor_type
from serde.relay.ir.registry import OpDef, call, called_name
from serde.relay.ir.shapes import layout_axes, normalize_axis
from serde.relay.ir.traits import Layout, Quantized, SameAxes
from serde.relay.ir.types import TensorType, TupleType

__all__ = [
    "RULES", "Converter", "LaidOut", "Order", "convert_anchor", "convert_elementwise",
    "convert_reduction", "convert_same_axes", "transpose_to",
]  # fmt: skip

Order = tuple[int, ...]
"""For each axis of what a tensor became, which axis it was."""


@dataclass(frozen=True)
class LaidOut:
    """A converted value.

    Attributes:
        expr: The value.
        order: Order of a tensor's axes; None for what is no tensor.
        fields: For a tuple, the orders of its fields, None for one in its old order.
    """

    expr: Expr
    order: Order | None = None
    fields: tuple[Order | None, ...] | None = None


class Converter(Protocol):
    """What rules ask for."""

    def order(self, node: Expr) -> Order | None:
        """Return the order of the axes of a tensor if it is not the old one, else None."""

    def plain(self, node: Expr) -> Expr:
        """Return what a node has become, its axes in the old order."""

    def at(self, node: Expr, order: Order) -> Expr:
        """Return a tensor with its old axes in this order."""

    def build(self, node: Call, args: Sequence[Expr], **attrs: object) -> Expr:
        """Return `node` with other operands and some attributes changed."""


def transpose_to(node: Expr, axes: Order) -> Expr:
    """Return a tensor with its axes in another order.

    Transposes below are taken in; where only axes of length 1 move, it is a reshape.
    """
    while isinstance(node, Call) and isinstance(node.op, OpDef) and node.op.name == "transpose":
        inner = node.attrs["axes"] or tuple(reversed(range(len(axes))))
        axes = tuple(inner[axis] % len(axes) for axis in axes)
        node = node.args[0]
    if axes == tuple(range(len(axes))):
        return node
    shape = node.type.shape if isinstance(node.type, TensorType) else ()
    moved = [axis for axis in axes if shape[axis] != 1]
    if moved == sorted(moved) and _is_writable(shape):
        lengths = tuple(shape[axis] for axis in axes)
        newshape = tuple(dim if type(dim) is int else -1 for dim in lengths)
        return call("reshape", node, newshape=newshape, span=node.span)
    return call("transpose", node, axes=axes, span=node.span)


def _is_writable(shape: tuple[Dim, ...]) -> bool:
    """Whether a reshape can name these lengths: at most one unknown, and none of 0."""
    known = [dim for dim in shape if type(dim) is int]
    return len(shape) - len(known) <= 1 and 0 not in known


def convert_anchor(
    converter: Converter, node: Call, layout: Layout, wanted: tuple[str, ...]
) -> LaidOut | None:
    """Return a call of an operator with a layout in the layout wanted.

    Args:
        converter: Gives operands.
        node: The call.
        layout: What its operator says of layouts.
        wanted: Layout of data, and of a weight if there is one; ``"default"`` as
            :class:`TransposeToLayout` says.
    """
    key = layout.attribute
    old = node.attrs[key]
    new = (
        wanted[0] if wanted[0] != "default" else _permute_layout(converter.order(node.args[0]), old)
    )
    if sorted(new) != sorted(old):
        return None
    old_out = node.attrs.get("out_layout", "") or old
    attrs = {key: new}
    if "out_layout" in node.attrs:
        attrs["out_layout"] = ""
    args = [converter.plain(argument) for argument in node.args]
    for index in range(layout.operands):
        args[index] = converter.at(node.args[index], layout_axes(old, new))
    if "kernel_layout" in node.attrs and any(each != "default" for each in wanted):
        before = node.attrs["kernel_layout"]
        asked = wanted[1] if len(wanted) > 1 else "default"
        after = _usual_kernel(node, new) if asked == "default" else asked
        if sorted(before) == sorted(after):
            attrs["kernel_layout"] = after
            weight = node.args[layout.operands]
            args[layout.operands] = converter.at(weight, layout_axes(before, after))
    result = new if "out_layout" in node.attrs else (new if old_out == old else old_out)
    return _unless_same(converter, node, args, attrs, layout_axes(old_out, result))


def _permute_layout(order: Order | None, layout: str) -> str:
    return layout if order is None else "".join(layout[axis] for axis in order)


def _usual_kernel(node: Call, data_layout: str) -> str:
    """Return the default of the declaration, or for channels behind the image the same order."""
    default = str(node.op.attributes["kernel_layout"].default) if isinstance(node.op, OpDef) else ""
    space = "".join(letter for letter in data_layout if letter not in "NC")
    channels = "".join(letter for letter in default if letter not in space)
    return (
        f"{channels}{space}"
        if data_layout.startswith("NC")
        else f"{space}{''.join(sorted(channels))}"
    )


def _unless_same(
    converter: Converter, node: Call, args: list[Expr], attrs: dict[str, str], order: Order
) -> LaidOut | None:
    same = all(new is converter.plain(old) for new, old in zip(args, node.args, strict=True))
    kept = {**attrs, "out_layout": node.attrs.get("out_layout", "")}
    named = all(node.attrs.get(key, "") == value for key, value in kept.items())
    if same and named and order == tuple(range(len(order))):
        return None
    return LaidOut(converter.build(node, args, **attrs), order)


def _rank(node: Expr) -> int:
    return node.type.rank if isinstance(node.type, TensorType) else -1


def _first_order(converter: Converter, nodes: Sequence[Expr], rank: int) -> Order | None:
    found = (converter.order(node) for node in nodes if _rank(node) == rank)
    return next((order for order in found if order is not None), None)


def convert_elementwise(converter: Converter, node: Call) -> LaidOut | None:
    """Operands broadcast: those with fewer axes get the missing ones of length 1."""
    rank = _rank(node)
    order = _first_order(converter, node.args, rank)
    if order is None:
        return None
    args = [_align_axes(converter, argument, order) for argument in node.args]
    return LaidOut(converter.build(node, args), order)


def _align_axes(converter: Converter, node: Expr, order: Order) -> Expr:
    if _rank(node) == len(order):
        return converter.at(node, order)
    plain = converter.plain(node)
    shape = node.type.shape if isinstance(node.type, TensorType) else ()
    if all(dim == 1 for dim in shape):
        return plain
    missing = len(order) - len(shape)
    widened = call("expand_dims", plain, axis=0, num_newaxis=missing, span=node.span)
    return transpose_to(widened, order)


def _map_axis(axis: int, order: Order) -> int:
    return order.index(normalize_axis(axis, len(order)))


def convert_same_axes(converter: Converter, node: Call, same: SameAxes) -> LaidOut | None:
    """The first operands go into another order, and what attributes say of axes with them."""
    rank = _rank(node.args[0])
    if any(_rank(argument) != rank for argument in node.args[1 : same.operands]):
        return None
    order = _first_order(converter, node.args[: same.operands], rank)
    if order is None or (same.batch and order[0] != 0):
        return None
    moved: dict[str, object] = {}
    for key in same.axes:
        axis = node.attrs[key]
        if axis is None:
            return None
        several = isinstance(axis, tuple)
        moved[key] = tuple(_map_axis(a, order) for a in axis) if several else _map_axis(axis, order)
    for key in same.per_axis:
        moved[key] = tuple(node.attrs[key][axis] for axis in order)
    args = [converter.at(argument, order) for argument in node.args[: same.operands]]
    args += map(converter.plain, node.args[same.operands :])
    result = converter.build(node, args, **moved)
    if isinstance(result.type, TupleType):
        others = (None if same.axes else order,) * (len(result.type.fields) - 1)
        return LaidOut(result, fields=(order, *others))
    return LaidOut(result, order)


def _convert_split(converter: Converter, node: Call) -> LaidOut | None:
    order = converter.order(node.args[0])
    if order is None or not isinstance(node.type, TupleType):
        return None
    axis = _map_axis(node.attrs["axis"], order)
    result = converter.build(node, [converter.at(node.args[0], order)], axis=axis)
    return LaidOut(result, fields=(order,) * len(node.type.fields))


def _convert_concatenate(converter: Converter, node: Call) -> LaidOut | None:
    fields = node.args[0].fields if isinstance(node.args[0], Tuple) else ()
    order = _first_order(converter, fields, _rank(node))
    if order is None:
        return None
    operand = Tuple([converter.at(field, order) for field in fields])
    axis = _map_axis(node.attrs["axis"], order)
    return LaidOut(converter.build(node, [operand], axis=axis), order)


def convert_reduction(converter: Converter, node: Call) -> LaidOut | None:
    """Axes left over keep their order; a position is one of a single axis only."""
    order = converter.order(node.args[0])
    if order is None:
        return None
    axes = _find_reduced_axes(node, len(order))
    if "select_last_index" in node.attrs and len(axes) != 1:
        return None
    args = [converter.at(node.args[0], order)]
    for argument in node.args[1:]:
        if _rank(argument) != len(order):
            return None
        args.append(converter.at(argument, order))
    moved = tuple(sorted(_map_axis(axis, order) for axis in axes))
    result = converter.build(node, args, axis=moved, exclude=False)
    return LaidOut(result, order if node.attrs["keepdims"] else _drop_axes(order, axes))


def _find_reduced_axes(node: Call, rank: int) -> set[int]:
    given = node.attrs["axis"]
    if given is None:
        return set(range(rank))
    axes = {normalize_axis(a, rank) for a in (given if isinstance(given, tuple) else (given,))}
    return set(range(rank)) - axes if node.attrs["exclude"] else axes


def _drop_axes(order: Order, removed: set[int]) -> Order:
    kept = [axis for axis in order if axis not in removed]
    return tuple(sorted(kept).index(axis) for axis in kept)


def _convert_squeeze(converter: Converter, node: Call) -> LaidOut | None:
    order, source = converter.order(node.args[0]), node.args[0].type
    if order is None or not isinstance(source, TensorType):
        return None
    given = node.attrs["axis"]
    if given is None and source.concrete_shape is None:
        return None
    if given is None:
        axes = {axis for axis, dim in enumerate(source.shape) if dim == 1}
    else:
        axes = {normalize_axis(axis, source.rank) for axis in given}
    moved = tuple(sorted(_map_axis(axis, order) for axis in axes))
    result = converter.build(node, [converter.at(node.args[0], order)], axis=moved)
    return LaidOut(result, _drop_axes(order, axes))


def _convert_strided_slice(converter: Converter, node: Call) -> LaidOut | None:
    order, begin = converter.order(node.args[0]), node.attrs["begin"]
    if order is None or begin is None:
        return None
    axes = node.attrs["axes"] if node.attrs["axes"] else range(len(begin))
    moved = tuple(_map_axis(axis, order) for axis in axes)
    return LaidOut(converter.build(node, [converter.at(node.args[0], order)], axes=moved), order)


def _convert_transpose(converter: Converter, node: Call) -> LaidOut | None:
    """The order asked for is taken from what there is, in one step or in none."""
    if converter.order(node.args[0]) is None:
        return None
    rank = _rank(node)
    axes = node.attrs["axes"] or tuple(reversed(range(rank)))
    order = tuple(normalize_axis(axis, rank) for axis in axes)
    return LaidOut(converter.at(node.args[0], order), tuple(range(rank)))


def _convert_layout_transform(converter: Converter, node: Call) -> LaidOut | None:
    source, target = node.attrs["src_layout"], node.attrs["dst_layout"]
    if converter.order(node.args[0]) is None or sorted(source) != sorted(target):
        return None
    return LaidOut(
        converter.at(node.args[0], layout_axes(source, target)), tuple(range(len(source)))
    )


def _convert_shuffle(converter: Converter, node: Call) -> LaidOut | None:
    """An axis is split, its parts change places, and become one again: so where the axis is."""
    moved = node.args[0]
    if not isinstance(moved, Call) or called_name(moved) != "transpose":
        return None
    split = moved.args[0]
    if not isinstance(split, Call) or called_name(split) != "reshape":
        return None
    source, order = split.args[0], converter.order(split.args[0])
    whole, parts = tensor_type(source).concrete_shape, tensor_type(split).concrete_shape
    if order is None or whole is None or parts is None:
        return None
    more = len(parts) - len(whole)
    found = (
        i
        for i in range(len(whole) if more > 0 else 0)
        if parts[:i] == whole[:i] and parts[i + more + 1 :] == whole[i + 1 :]
    )
    axis = next(found, None)
    if axis is None or tensor_type(node).concrete_shape != whole:
        return None
    given = moved.attrs["axes"] or tuple(reversed(range(len(parts))))
    axes = [normalize_axis(each, len(parts)) for each in given]
    inner = range(axis, axis + more + 1)
    if any(each != i for i, each in enumerate(axes) if i not in inner):
        return None
    place, lengths = order.index(axis), [whole[each] for each in order]
    spread = [*lengths[:place], *parts[axis : axis + more + 1], *lengths[place + 1 :]]
    turned = list(range(len(parts)))
    turned[place : place + more + 1] = (axes[i] - axis + place for i in inner)
    x = call("reshape", converter.at(source, order), newshape=spread, span=split.span)
    x = call("transpose", x, axes=turned, span=moved.span)
    return LaidOut(call("reshape", x, newshape=lengths, span=node.span), order)


def _convert_dense(converter: Converter, node: Call) -> LaidOut | None:
    """Rows that are flattened images are flattened as these are, and so are those of weights."""
    flat, weight = node.args
    is_stored = isinstance(weight, (Constant, Var)) or has_trait(weight, Quantized)
    if not isinstance(flat, Call) or not is_stored:
        return None
    order, whole = converter.order(flat.args[0]), tensor_type(flat.args[0]).concrete_shape
    units, columns = tensor_type(weight).shape
    if called_name(flat) not in ("nn.batch_flatten", "reshape") or order is None or order[0]:
        return None
    if whole is None or tensor_type(flat).shape != (whole[0], columns):
        return None
    source = converter.at(flat.args[0], order)
    data = call("reshape", source, newshape=(whole[0], -1), span=flat.span)
    rows = call("reshape", converter.plain(weight), newshape=(units, *whole[1:]))
    rows = call("transpose", rows, axes=order)
    rows = call("reshape", rows, newshape=(units, columns))
    return LaidOut(converter.build(node, [data, rows]), (0, 1))


Rule = Callable[[Converter, Call], "LaidOut | None"]

RULES: dict[str, Rule] = {
    "concatenate": _convert_concatenate,
    "layout_transform": _convert_layout_transform,
    "nn.dense": _convert_dense,
    "reshape": _convert_shuffle,
    "split": _convert_split,
    "squeeze": _convert_squeeze,
    "strided_slice": _convert_strided_slice,
    "transpose": _convert_transpose,
}
"""How operators that arrange axes themselves follow another order."""
