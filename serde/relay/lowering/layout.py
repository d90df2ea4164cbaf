"""Operators with a layout in the usual one: channels behind the batch, filters by their outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any as AnyValue, Protocol

from serde.errors import Unsupported
from serde.relay.ir import Call, Dim, Expr, OpDef, call, layout_axes, same_length, tensor_type
from serde.relay.ir.layout import is_blocked
from serde.relay.ir.traits import Layout
from serde.relay.lowering.lengths import permuted, reshaped

__all__ = ["arranged", "has_filters_of_channels", "usual_layout"]


class Body(Protocol):
    """What makes a call, of its operands and attributes."""

    def __call__(self, *operands: Expr, **attrs: AnyValue) -> Expr: ...


def usual_layout(node: Call) -> Body | None:
    """Return what makes a call of its operator in the usual layout; None where it is in that.

    Operands and the result are transposed. A weight gets the order that its operator has by
    default, its groups joined with the first axis; one of (C, M, ...) that makes C times M
    channels in C groups becomes one of (C * M, 1, ...).
    """
    definition = node.op
    layout = definition.trait(Layout) if isinstance(definition, OpDef) else None
    if layout is None or not isinstance(definition, OpDef) or _is_usual(node, definition, layout):
        return None
    return partial(_rearrange, definition, layout)


def _usual(layout: str) -> str:
    return "NC" + "".join(letter for letter in "DHW" if letter in layout)


def _is_usual(node: Call, definition: OpDef, layout: Layout) -> bool:
    attrs = node.attrs
    given = attrs[layout.attribute]
    if given != _usual(given) or attrs.get("out_layout"):
        return False
    if "kernel_layout" not in attrs:
        return True
    if attrs["kernel_layout"] != definition.attributes["kernel_layout"].default:
        return False
    try:
        return not _makes_filters_of_channels(definition, node.args, attrs)
    except Unsupported:
        return False


def _makes_filters_of_channels(
    definition: OpDef, operands: Sequence[Expr], attrs: Mapping[str, AnyValue]
) -> bool:
    """Whether a weight in the usual layout counts the filters of each channel."""
    kernel, layout = definition.attributes["kernel_layout"].default, definition.trait(Layout)
    if not kernel.startswith("OI") or layout is None or layout.operands > 1:
        return False
    inputs, (outputs, inner, *_) = (tensor_type(each).shape for each in operands[:2])
    return has_filters_of_channels(inputs[1], outputs, inner, attrs["groups"])


def _rearrange(definition: OpDef, layout: Layout, /, *operands: Expr, **attrs: AnyValue) -> Expr:
    given, args = attrs[layout.attribute], list(operands)
    usual, place = _usual(given), layout.operands
    args[:place] = [arranged(each, given, usual) for each in args[:place]]
    made = {**attrs, layout.attribute: usual}
    if "out_layout" in attrs:
        made["out_layout"] = ""
    if "kernel_layout" in attrs:
        made["kernel_layout"] = definition.attributes["kernel_layout"].default
        args[place] = _arrange_filters(args[place], attrs["kernel_layout"], made["kernel_layout"])
        if _makes_filters_of_channels(definition, args, attrs):
            shape = tensor_type(args[1]).shape
            args[1] = call("reshape", args[1], newshape=(shape[0] * shape[1], 1, *shape[2:]))
    result = call(definition.name, *args, **made)
    return arranged(result, usual, attrs.get("out_layout") or given)


def _arrange_filters(weight: Expr, layout: str, wanted: str) -> Expr:
    """Return a weight in a layout, its axis of groups joined with the first one."""
    if "G" not in layout:
        return arranged(weight, layout, wanted)
    moved = arranged(weight, layout, "G" + wanted)
    return reshaped(moved, moved, lambda shape: (shape[0] * shape[1], *shape[2:]))


def arranged(x: Expr, layout: str, wanted: str) -> Expr:
    """Return `x` with its axes in the order of another layout, blocks made whole or cut."""
    if is_blocked(layout) or is_blocked(wanted):
        same = layout == wanted
        return x if same else call("layout_transform", x, src_layout=layout, dst_layout=wanted)
    return permuted(x, layout_axes(layout, wanted))


def has_filters_of_channels(inputs: Dim, outputs: Dim, inner: Dim, groups: int) -> bool:
    """Whether a weight of a convolution counts the filters of each channel along its second axis.

    TVM's do where data of C channels in C groups meets a weight (C, M, ...), which makes C times
    M channels; else the second axis has the channels of a group.

    Args:
        inputs: Channels of the data.
        outputs: Length of the weight's first axis.
        inner: Length of its second axis.
        groups: Number of groups.
    """
    if groups == 1 or inner == 1 or inputs == outputs == groups:
        return inner != 1 and groups != 1
    if any(isinstance(each, int) and each != groups for each in (inputs, outputs)):
        return False
    if same_length(inner, inputs // groups):
        return False
    raise Unsupported(
        f"a weight ({outputs}, {inner}, ...) for {inputs} channels in {groups} groups, which may "
        "hold filters of each channel",
        hint="give the lengths of the inputs",
    )
