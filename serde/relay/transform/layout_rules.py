"""How each operator follows its operands into another order of axes.

A rule gets a converter and a call. It returns the call on operands in another
order, and in which order its result then is; or None where the old order is
needed, or where no operand is in another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call, Expr, Tuple
from serde.relay.ir.registry import OpDef, call
from serde.relay.ir.shapes import layout_axes, normalize_axis
from serde.relay.ir.types import TensorType, TupleType
from serde.relay.run.rows import ELEMENTWISE

__all__ = [
    "LAYOUT_ATTRIBUTE",
    "RULES",
    "Converter",
    "Laid",
    "Order",
    "convert_anchor",
    "transposed",
]

Order = tuple[int, ...]
"""For each axis of what a tensor became, which axis it was."""


@dataclass(frozen=True)
class Laid:
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


def transposed(node: Expr, axes: Order) -> Expr:
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


_CONVS = [
    "nn.conv1d", "nn.conv1d_transpose", "nn.conv2d", "nn.conv2d_transpose", "nn.conv3d",
    "nn.conv3d_transpose", "nn.deformable_conv2d", "qnn.conv2d", "qnn.conv2d_transpose",
    "image.dilation2d",
]  # fmt: skip
_IMAGES = [
    *(f"nn.{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3)),
    *(f"nn.adaptive_{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3)),
    "dyn.image.resize2d", "dyn.nn.upsampling", "dyn.nn.upsampling3d", "image.crop_and_resize",
    "image.grid_sample", "image.resize1d", "image.resize2d", "image.resize3d",
    "nn.depth_to_space", "nn.global_avg_pool2d", "nn.global_max_pool2d", "nn.space_to_depth",
    "nn.upsampling", "nn.upsampling3d", "qnn.avg_pool2d", "serde.lp_pool", "vision.roi_align",
    "vision.roi_pool",
]  # fmt: skip

LAYOUT_ATTRIBUTE = {
    **dict.fromkeys(_CONVS, "data_layout"),
    **dict.fromkeys(_IMAGES, "layout"),
}
"""The operators that may get another layout, and the attribute that holds that of their data."""

_SAME_LAYOUT = {"nn.deformable_conv2d": 2}
"""How many operands have the layout of data, where it is more than one."""


def convert_anchor(
    converter: Converter, node: Call, name: str, wanted: tuple[str, ...]
) -> Laid | None:
    """Return a call of an operator with a layout in the layout wanted.

    Args:
        converter: Gives operands.
        node: The call.
        name: Its operator.
        wanted: Layout of data, and of a weight if there is one; ``"default"`` as
            :class:`ConvertLayout` says.
    """
    key = LAYOUT_ATTRIBUTE[name]
    old = node.attrs[key]
    new = wanted[0] if wanted[0] != "default" else _followed(converter.order(node.args[0]), old)
    if sorted(new) != sorted(old):
        return None
    old_out = node.attrs.get("out_layout", "") or old
    attrs = {key: new}
    if "out_layout" in node.attrs:
        attrs["out_layout"] = ""
    args = [converter.plain(argument) for argument in node.args]
    for index in range(_SAME_LAYOUT.get(name, 1)):
        args[index] = converter.at(node.args[index], layout_axes(old, new))
    if "kernel_layout" in node.attrs and any(layout != "default" for layout in wanted):
        place = 2 if name == "nn.deformable_conv2d" else 1
        before = node.attrs["kernel_layout"]
        asked = wanted[1] if len(wanted) > 1 else "default"
        after = _usual_kernel(name, new) if asked == "default" else asked
        if sorted(before) == sorted(after):
            attrs["kernel_layout"] = after
            args[place] = converter.at(node.args[place], layout_axes(before, after))
    result = new if "out_layout" in node.attrs else _as_before(old_out, old, new)
    return _unless_same(converter, node, args, attrs, layout_axes(old_out, result))


def _followed(order: Order | None, layout: str) -> str:
    return layout if order is None else "".join(layout[axis] for axis in order)


def _as_before(old_out: str, old: str, new: str) -> str:
    return new if old_out == old else old_out


def _usual_kernel(name: str, data_layout: str) -> str:
    space = "".join(letter for letter in data_layout if letter not in "NC")
    if name == "image.dilation2d":
        return f"I{space}" if data_layout.startswith("NC") else f"{space}I"
    channels = "IO" if name.endswith("_transpose") else "OI"
    return f"{channels}{space}" if data_layout.startswith("NC") else f"{space}IO"


def _unless_same(
    converter: Converter, node: Call, args: list[Expr], attrs: dict[str, str], order: Order
) -> Laid | None:
    same = all(new is converter.plain(old) for new, old in zip(args, node.args, strict=True))
    kept = {**attrs, "out_layout": node.attrs.get("out_layout", "")}
    named = all(node.attrs.get(key, "") == value for key, value in kept.items())
    if same and named and order == tuple(range(len(order))):
        return None
    return Laid(converter.build(node, args, **attrs), order)


def _rank(node: Expr) -> int:
    return node.type.rank if isinstance(node.type, TensorType) else -1


def _first_order(converter: Converter, nodes: Sequence[Expr], rank: int) -> Order | None:
    found = (converter.order(node) for node in nodes if _rank(node) == rank)
    return next((order for order in found if order is not None), None)


def _elementwise(converter: Converter, node: Call) -> Laid | None:
    """Operands broadcast: those with fewer axes get the missing ones of length 1."""
    rank = _rank(node)
    order = _first_order(converter, node.args, rank)
    if order is None:
        return None
    args = [_aligned(converter, argument, order) for argument in node.args]
    return Laid(converter.build(node, args), order)


def _aligned(converter: Converter, node: Expr, order: Order) -> Expr:
    if _rank(node) == len(order):
        return converter.at(node, order)
    plain = converter.plain(node)
    shape = node.type.shape if isinstance(node.type, TensorType) else ()
    if all(dim == 1 for dim in shape):
        return plain
    missing = len(order) - len(shape)
    widened = call("expand_dims", plain, axis=0, num_newaxis=missing, span=node.span)
    return transposed(widened, order)


def _first_operand(converter: Converter, node: Call) -> Laid | None:
    """Elements keep their place in the first operand; the others are as they were."""
    order = converter.order(node.args[0])
    if order is None:
        return None
    args = [converter.at(node.args[0], order), *map(converter.plain, node.args[1:])]
    result = converter.build(node, args)
    if isinstance(result.type, TupleType):
        return Laid(result, fields=(order,) * len(result.type.fields))
    return Laid(result, order)


def _moved(axis: int, order: Order) -> int:
    return order.index(normalize_axis(axis, len(order)))


def _along_axis(converter: Converter, node: Call) -> Laid | None:
    """One axis (or several) of the first operand means something; other operands are vectors."""
    order, axis = converter.order(node.args[0]), node.attrs["axis"]
    if order is None or axis is None:
        return None
    if isinstance(axis, tuple):
        moved: object = tuple(_moved(each, order) for each in axis)
    else:
        moved = _moved(axis, order)
    args = [converter.at(node.args[0], order), *map(converter.plain, node.args[1:])]
    result = converter.build(node, args, axis=moved)
    if isinstance(result.type, TupleType):
        others = (None,) * (len(result.type.fields) - 1)
        return Laid(result, fields=(order, *others))
    return Laid(result, order)


def _in_batches(converter: Converter, node: Call) -> Laid | None:
    """As :func:`_along_axis`, where axis 0 is the batch."""
    order = converter.order(node.args[0])
    return _along_axis(converter, node) if order is not None and order[0] == 0 else None


def _split(converter: Converter, node: Call) -> Laid | None:
    order = converter.order(node.args[0])
    if order is None or not isinstance(node.type, TupleType):
        return None
    axis = _moved(node.attrs["axis"], order)
    result = converter.build(node, [converter.at(node.args[0], order)], axis=axis)
    return Laid(result, fields=(order,) * len(node.type.fields))


def _concatenate(converter: Converter, node: Call) -> Laid | None:
    fields = node.args[0].fields if isinstance(node.args[0], Tuple) else ()
    order = _first_order(converter, fields, _rank(node))
    if order is None:
        return None
    operand = Tuple([converter.at(field, order) for field in fields])
    axis = _moved(node.attrs["axis"], order)
    return Laid(converter.build(node, [operand], axis=axis), order)


def _reduce(converter: Converter, node: Call) -> Laid | None:
    """Axes left over keep their order; a position is one of a single axis only."""
    order = converter.order(node.args[0])
    if order is None:
        return None
    axes = _reduced(node, len(order))
    if "select_last_index" in node.attrs and len(axes) != 1:
        return None
    args = [converter.at(node.args[0], order)]
    for argument in node.args[1:]:
        if _rank(argument) != len(order):
            return None
        args.append(converter.at(argument, order))
    moved = tuple(sorted(_moved(axis, order) for axis in axes))
    result = converter.build(node, args, axis=moved, exclude=False)
    return Laid(result, order if node.attrs["keepdims"] else _left(order, axes))


def _reduced(node: Call, rank: int) -> set[int]:
    given = node.attrs["axis"]
    if given is None:
        return set(range(rank))
    axes = {normalize_axis(a, rank) for a in (given if isinstance(given, tuple) else (given,))}
    return set(range(rank)) - axes if node.attrs["exclude"] else axes


def _left(order: Order, removed: set[int]) -> Order:
    kept = [axis for axis in order if axis not in removed]
    return tuple(sorted(kept).index(axis) for axis in kept)


def _squeeze(converter: Converter, node: Call) -> Laid | None:
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
    moved = tuple(sorted(_moved(axis, order) for axis in axes))
    result = converter.build(node, [converter.at(node.args[0], order)], axis=moved)
    return Laid(result, _left(order, axes))


def _strided_slice(converter: Converter, node: Call) -> Laid | None:
    order, begin = converter.order(node.args[0]), node.attrs["begin"]
    if order is None or begin is None:
        return None
    axes = node.attrs["axes"] if node.attrs["axes"] else range(len(begin))
    moved = tuple(_moved(axis, order) for axis in axes)
    return Laid(converter.build(node, [converter.at(node.args[0], order)], axes=moved), order)


def _pad(converter: Converter, node: Call) -> Laid | None:
    order = converter.order(node.args[0])
    if order is None:
        return None
    args = [converter.at(node.args[0], order), *map(converter.plain, node.args[1:])]
    width = tuple(node.attrs["pad_width"][axis] for axis in order)
    return Laid(converter.build(node, args, pad_width=width), order)


def _transpose(converter: Converter, node: Call) -> Laid | None:
    """The order asked for is taken from what there is, in one step or in none."""
    if converter.order(node.args[0]) is None:
        return None
    rank = _rank(node)
    axes = node.attrs["axes"] or tuple(reversed(range(rank)))
    order = tuple(normalize_axis(axis, rank) for axis in axes)
    return Laid(converter.at(node.args[0], order), tuple(range(rank)))


def _layout_transform(converter: Converter, node: Call) -> Laid | None:
    source, target = node.attrs["src_layout"], node.attrs["dst_layout"]
    if converter.order(node.args[0]) is None or sorted(source) != sorted(target):
        return None
    return Laid(converter.at(node.args[0], layout_axes(source, target)), tuple(range(len(source))))


def _qnn_pair(converter: Converter, node: Call) -> Laid | None:
    """The first two operands broadcast; scales and zero points go along an axis of each."""
    rank = _rank(node)
    order = _first_order(converter, node.args[:2], rank)
    if order is None or any(_rank(argument) != rank for argument in node.args[:2]):
        return None
    sides = [converter.at(argument, order) for argument in node.args[:2]]
    rest = [converter.plain(argument) for argument in node.args[2:]]
    moved = {key: _moved(node.attrs[key], order) for key in ("lhs_axis", "rhs_axis")}
    return Laid(converter.build(node, [*sides, *rest], **moved), order)


Rule = Callable[[Converter, Call], "Laid | None"]

_ELEMENTWISE = ELEMENTWISE | {
    "fast_erf", "fast_exp", "fast_tanh", "fixed_point_multiply", "ones_like", "reinterpret",
    "serde.elu", "serde.gelu", "serde.hard_sigmoid", "serde.hard_swish", "serde.log_sigmoid",
    "serde.mish", "serde.selu", "serde.silu", "serde.softplus", "serde.softsign", "zeros_like",
}  # fmt: skip

RULES: dict[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(["cast_like", "full_like", "nn.dropout"], _first_operand),
    **dict.fromkeys(
        [
            "cumprod", "cumsum", "nn.batch_norm", "nn.bias_add", "nn.fast_softmax",
            "nn.l2_normalize", "nn.layer_norm", "nn.log_softmax", "nn.lrn", "nn.prelu",
            "nn.softmax", "qnn.dequantize", "qnn.quantize", "qnn.requantize", "qnn.softmax",
            "repeat", "reverse",
        ],
        _along_axis,
    ),
    **dict.fromkeys(["nn.group_norm", "nn.instance_norm"], _in_batches),
    **dict.fromkeys(
        ["all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "sum", "variance"],
        _reduce,
    ),
    **dict.fromkeys(["nn.mirror_pad", "nn.pad"], _pad),
    **dict.fromkeys(["qnn.add", "qnn.mul", "qnn.subtract"], _qnn_pair),
    "concatenate": _concatenate,
    "layout_transform": _layout_transform,
    "split": _split,
    "squeeze": _squeeze,
    "strided_slice": _strided_slice,
    "transpose": _transpose,
}  # fmt: skip
"""What passes another order of axes on, by operator."""
