"""How operators that say something of their axes follow layouts, as TVM's do.

A rule takes the new layout of its data if it can say its axes in it, and else the old one: an axis
that means something of its own must not be cut into blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from serde.relay.ir import Attrs, Elementwise, OpDef, Reduction, normalize_axis
from serde.relay.ir.attrs import get_op_attr, register_op_attr
from serde.relay.ir.layout import SCALAR, Axis, TensorLayout, parse_layout
from serde.relay.ir.types import TensorType, TupleType
from serde.relay.tvm.passes.layout.inference import (
    Inference,
    Layouts,
    New,
    Output,
    Types,
    broadcast_layouts,
    changed,
    infer_broadcast,
    infer_elementwise,
    new_axes,
    rank_of,
    target_of,
    unknown,
)
from serde.relay.tvm.passes.layout.slicing import (
    infer_slice_like,
    infer_split,
    infer_squeeze,
    infer_strided_slice,
)

__all__ = ["inference_of"]

_CHANNELS: Final = TensorLayout("C")
_MATRIX: Final = TensorLayout("NC")


def _infer_layer(attrs: Attrs, new: New, old: Layouts, types: Types, *, images: int = 1) -> Output:
    """Others follow a convolution: its attributes say the layouts."""
    data = parse_layout(attrs["data_layout"])
    result = parse_layout(attrs["out_layout"] or attrs["data_layout"])
    weight = parse_layout(attrs["kernel_layout"])
    others = (_CHANNELS,) * (len(old) - images - 1)
    return Output((*(data,) * images, weight, *others), (result,), attrs)


def _infer_pooling(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """A pooling takes any layout that cuts none of the axes it slides over, unless it says one."""
    own = TensorLayout(attrs["layout"])
    target = new[0] if new is not None and not attrs["out_layout"] else None
    if target is not None and _has_image_of(target, own):
        attrs, own = changed(attrs, layout=target.name), target
    inputs = (own, *(SCALAR,) * (len(old) - 1))
    return Output(inputs, (own,), attrs)


def _has_image_of(layout: TensorLayout, own: TensorLayout) -> bool:
    """Whether two layouts have the same axes, of which only batch and channels are cut."""
    whole = {axis.letter for axis in layout.axes if axis.whole}
    if whole != {axis.letter for axis in own.axes if axis.whole}:
        return False
    return all(axis.whole or axis.letter in "nc" for axis in layout.axes)


def _infer_resize(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """Resizing follows another order of its axes, but no blocks."""
    own = TensorLayout(attrs["layout"])
    target, before = target_of(new), old[0]
    follows = before == own and target is not None and len(target) == len(own)
    if follows and target is not None and _has_image_of(target, own):
        attrs, own = changed(attrs, layout=target.name), target
    return Output((own,), (own,), attrs)


def _infer_upsampling(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """Upsampling follows blocks of channels where the axes that grow stay in their places."""
    own = TensorLayout(attrs["layout"])
    target = target_of(new)
    if target is not None and _has_image_of(target, own):
        grown = [letter for letter in "DHW" if letter in own]
        if all(target.index_of(each) == own.index_of(each) for each in grown):
            attrs, own = changed(attrs, layout=target.name), target
    inputs = (own, *(SCALAR,) * (len(old) - 1))
    return Output(inputs, (own,), attrs)


def _infer_regions(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    data = parse_layout(attrs["layout"])
    return Output((data, _MATRIX), (data,), attrs)


def _infer_dense(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    weight = parse_layout(attrs["weight_layout"]) if "weight_layout" in attrs else _MATRIX
    return Output((_MATRIX, weight), (_MATRIX,), attrs)


def _infer_prelu(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    return Output((old[0], _CHANNELS), (old[0],), attrs)


def _follow_axes(
    attrs: Attrs, new: New, old: Layouts, types: Types
) -> tuple[Attrs, TensorLayout | None]:
    """Return attributes that say an axis, or several, in the layout of the data, and this."""
    given = attrs["axis"]
    several = not isinstance(given, int)
    axes = new_axes((given or ()) if several else [given], new, old, types[0])
    if new is None or axes is None:
        return attrs, old[0]
    return changed(attrs, axis=(axes or None) if several else axes[0]), new[0]


def _infer_norm(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """A norm along one axis: its other operands, and other results, are vectors along it."""
    attrs, layout = _follow_axes(attrs, new, old, types)
    others = (_CHANNELS,) * (len(old) - 1)
    # The recorded mean and variance are results of a batch norm as they are its operands.
    more = (_CHANNELS, _CHANNELS) if len(old) == 5 else ()
    return Output((layout, *others), (layout, *more), attrs)


def _infer_topk(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    attrs, layout = _follow_axes(attrs, new, old, types)
    return Output((layout,), (layout,) * (2 if attrs["ret_type"] == "both" else 1), attrs)


def _infer_dropout(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    layout = old[0] if new is None else new[0]
    return Output((layout,), (layout, layout), attrs)


def _infer_cast_like(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """As an elementwise operator, where both operands have the same axes."""
    if rank_of(types[0]) != rank_of(types[1]):
        return unknown(attrs, 2)
    return infer_elementwise(attrs, new, old, types)


def _infer_transpose(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """The result keeps the order asked for, taken from whatever order comes in."""
    layout = old[0]
    if layout is None or rank_of(types[0]) != len(layout):
        return unknown(attrs, 1)
    rank = len(layout)
    given = attrs["axes"] or tuple(range(rank))[::-1]
    axes = tuple(normalize_axis(axis, rank) for axis in given)
    target = target_of(new)
    if target is not None and len(target) == rank:
        places = tuple(target.index_of(layout[axis]) for axis in axes)
        if -1 not in places:
            axes, layout = places, target
    result = TensorLayout([layout.axes[axis] for axis in axes])
    return Output((layout,), (result,), changed(attrs, axes=axes))


def _infer_concatenate(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """Fields that have all come into one layout stay in it; else all go into that of the first."""
    fields = types[0].fields if isinstance(types[0], TupleType) else ()
    count = len(fields)
    first = next((each for each in old[:count] if each is not None), None)
    if first is None or any(rank_of(field) != len(first) for field in fields):
        return unknown(attrs, len(old))
    axis = normalize_axis(attrs["axis"], len(first))
    if first[axis].islower():
        return unknown(attrs, len(old))
    layout = first
    if new is not None and all(each == new[0] for each in new[:count]) and new[0] is not None:
        place = new[0].index_of(first[axis])
        if place >= 0 and all(each == first for each in old[:count]):
            attrs, layout = changed(attrs, axis=place), new[0]
    others = (_CHANNELS,) * (len(old) - count)
    return Output((*(layout,) * count, *others), (layout,), attrs)


def _infer_pad(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """Blocks of an axis that is not padded have no padding either."""
    layout = old[0]
    target = target_of(new)
    if layout is not None and target is not None and rank_of(types[0]) == len(layout):
        widths = dict(zip(layout, attrs["pad_width"], strict=True))
        found = [widths.get(axis.letter, widths.get(axis.letter.upper())) for axis in target.axes]
        cut = [axis.letter.upper() for axis in target.axes if not axis.whole]
        free = not any(any(widths.get(each, ())) for each in cut)
        if free and None not in found and all(axis in target for axis in layout):
            attrs, layout = changed(attrs, pad_width=tuple(found)), target
    return Output((layout, SCALAR), (layout,), attrs)


def _infer_requantize(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    layout = old[0]
    target = target_of(new)
    if layout is not None and target is not None and rank_of(types[0]) == len(layout):
        letter = layout[normalize_axis(attrs["axis"], len(layout))]
        place = target.index_of(letter)
        single = all(isinstance(each, TensorType) and each.size == 1 for each in types[1:3])
        if place >= 0 and (single or target.factor_of(letter) < 0):
            attrs, layout = changed(attrs, axis=place), target
    others = (_CHANNELS,) * (len(old) - 1)
    return Output((layout, *others), (layout,), attrs)


def _infer_qnn_broadcast(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """As other operators that broadcast; scales of each channel keep the layout as it was."""
    single = all(isinstance(each, TensorType) and each.size == 1 for each in types[2:])
    if not single:
        return unknown(attrs, len(old))
    inputs, result = broadcast_layouts(new, old[:2], types[:2])
    return Output((*inputs, *(_CHANNELS,) * (len(old) - 2)), (result,), attrs)


def _infer_qnn_unary(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    layout = old[0] if new is None else new[0]
    others = (_CHANNELS,) * (len(old) - 1)
    return Output((layout, *others), (layout,), attrs)


_RULES: Final[dict[str, Inference]] = {
    **dict.fromkeys(
        (
            "nn.conv1d", "nn.conv1d_transpose", "nn.conv2d", "nn.conv2d_transpose", "nn.conv3d",
            "nn.conv3d_transpose", "nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc",
            "qnn.conv2d", "qnn.conv2d_transpose",
        ),
        _infer_layer,
    ),
    **dict.fromkeys(
        (
            "nn.adaptive_avg_pool1d", "nn.adaptive_avg_pool2d", "nn.adaptive_avg_pool3d",
            "nn.adaptive_max_pool1d", "nn.adaptive_max_pool2d", "nn.adaptive_max_pool3d",
            "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d", "nn.global_avg_pool2d",
            "nn.global_max_pool2d", "nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d",
            "qnn.avg_pool2d",
        ),
        _infer_pooling,
    ),
    **dict.fromkeys(
        ("qnn.add", "qnn.mul", "qnn.subtract"), _infer_qnn_broadcast
    ),
    "cast_like": _infer_cast_like,
    "concatenate": _infer_concatenate,
    "dyn.nn.upsampling": _infer_upsampling,
    "image.resize1d": _infer_resize,
    "image.resize2d": _infer_resize,
    "nn.batch_norm": _infer_norm,
    "nn.contrib_dense_pack": _infer_dense,
    "nn.deformable_conv2d": partial(_infer_layer, images=2),
    "nn.dense": _infer_dense,
    "nn.dropout": _infer_dropout,
    "nn.instance_norm": _infer_norm,
    "nn.l2_normalize": _infer_norm,
    "nn.layer_norm": _infer_norm,
    "nn.pad": _infer_pad,
    "nn.prelu": _infer_prelu,
    "nn.upsampling": _infer_upsampling,
    "nn.upsampling3d": _infer_upsampling,
    "qnn.concatenate": _infer_concatenate,
    "qnn.leaky_relu": _infer_qnn_unary,
    "qnn.requantize": _infer_requantize,
    "slice_like": infer_slice_like,
    "split": infer_split,
    "squeeze": infer_squeeze,
    "strided_slice": infer_strided_slice,
    "topk": _infer_topk,
    "transpose": _infer_transpose,
    "vision.roi_align": _infer_regions,
    "vision.roi_pool": _infer_regions,
}  # fmt: skip

for _name, _rule in _RULES.items():
    register_op_attr(_name, "FInferCorrectLayout", _rule)


def _infer_reduction(attrs: Attrs, new: New, old: Layouts, types: Types) -> Output:
    """Axes that are left keep their order; of blocks that are reduced, blocks of 1 are left.

    The operand beside the data, a mean, has the axes of the data, those reduced of length 1.
    """
    layout = old[0]
    rank = rank_of(types[0])
    if layout is None or rank != len(layout):
        return unknown(attrs, len(old))
    reduced = _reduced_axes(attrs, rank)
    letters = [layout[axis] for axis in reduced]
    target = new[0] if new is not None and reduced else layout
    if target is None or target == layout:
        return _result(attrs, layout, set(letters), len(old))
    partly = any(
        (axis.letter in letters) != (axis.letter.upper() in letters) for axis in layout.axes
    )
    if partly or not _keeps_positions(attrs, letters, target):
        return _result(attrs, layout, set(letters), len(old))
    wanted = {letter.upper() for letter in letters}
    exclude = attrs["exclude"]
    axes = tuple(index for index, each in enumerate(target) if (each.upper() in wanted) != exclude)
    both = wanted | {letter.lower() for letter in wanted}
    return _result(changed(attrs, axis=axes), target, both, len(old))


def _reduced_axes(attrs: Attrs, rank: int) -> list[int]:
    given = attrs["axis"]
    if given is None:
        return list(range(rank))
    axes = {normalize_axis(axis, rank) for axis in given}
    if attrs["exclude"]:
        axes = set(range(rank)) - axes
    return sorted(axes)


def _keeps_positions(attrs: Attrs, letters: Sequence[str], target: TensorLayout) -> bool:
    """Whether elements that are reduced keep their order, where the result is a position."""
    if "select_last_index" not in attrs:
        return True
    wanted = {letter.upper() for letter in letters}
    found: list[str] = []
    for letter in target:
        if letter.upper() in wanted and found[-1:] != [letter.upper()]:
            found.append(letter.upper())
    before: list[str] = []
    for letter in letters:
        if before[-1:] != [letter.upper()]:
            before.append(letter.upper())
    return found == before


def _result(attrs: Attrs, layout: TensorLayout, reduced: set[str], operands: int) -> Output:
    single = [
        Axis(axis.letter, 1) if not axis.whole and axis.letter in reduced else axis
        for axis in layout.axes
    ]
    left = single if attrs["keepdims"] else [a for a in single if a.letter not in reduced]
    if not left:
        return unknown(attrs, operands)
    inputs = (layout, TensorLayout(single))[:operands]
    return Output(inputs, (TensorLayout(left),), attrs)


def inference_of(definition: OpDef) -> Inference | None:
    """Return how an operator follows layouts; None where it needs those that it was written for."""
    found: Inference | None = get_op_attr(definition.name, "FInferCorrectLayout")
    if found is not None:
        return found
    if definition.has(Elementwise) and len(definition.operands) <= 2:
        return infer_elementwise if len(definition.operands) == 1 else infer_broadcast
    # TVM's `any` alone of the reductions follows no layout.
    follows = definition.has(Reduction) and definition.name != "any"
    return _infer_reduction if follows else None
