"""Dilated convolutions that were spelled out with batches of every so many pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from serde.relay.ir import Call, Expr, Function, OpDef, accepts, call, rewrite_function
from serde.relay.tvm.passes.typed import TypedPass, operator_of

__all__ = ["FlattenAtrousConv"]


class FlattenAtrousConv(TypedPass):
    """Turn ``space_to_batch_nd``, ``conv2d``, ``batch_to_space_nd`` into a dilated ``conv2d``.

    The convolution between must have channels last, no padding, strides or dilation of its own.
    The zeros put around the image that are not cropped again become its padding.
    """

    name: ClassVar[str] = "FlattenAtrousConv"

    def transform(self, function: Function) -> Function:
        """Replace the last of the three calls."""
        return rewrite_function(function, lambda _node, new: _flatten(new))


def _below(node: Expr, *names: str) -> Call | None:
    """Return `node` if it is a call of one of these operators."""
    if isinstance(node, Call) and isinstance(node.op, OpDef) and node.op.name in names:
        return node
    return None


def _flatten(node: Expr) -> Expr:
    last = _below(node, "nn.batch_to_space_nd")
    conv = None if last is None else _below(last.args[0], "nn.conv2d", "qnn.conv2d")
    first = None if conv is None else _below(conv.args[0], "nn.space_to_batch_nd")
    if last is None or conv is None or first is None or not _is_plain(conv):
        return node
    block = first.attrs["block_shape"]
    if len(block) != 2 or block != last.attrs["block_shape"] or first.attrs["pad_value"] != 0:
        return node
    padding = _padding(first.attrs["paddings"], last.attrs["crops"])
    if padding is None:
        return node
    attrs = {**conv.attrs, "dilation": block, "padding": padding}
    result = call(operator_of(conv), first.args[0], *conv.args[1:], span=conv.span, **attrs)
    fits = node.type is not None and result.type is not None and accepts(node.type, result.type)
    return result if fits else node


def _is_plain(conv: Call) -> bool:
    attrs = conv.attrs
    ones = all(each == 1 for each in (*attrs["strides"], *attrs["dilation"]))
    layout = attrs["data_layout"] == "NHWC" and attrs["out_layout"] in ("", "NHWC")
    return ones and layout and not any(attrs["padding"])


def _padding(
    around: Sequence[Sequence[int]], crops: Sequence[Sequence[int]]
) -> tuple[int, ...] | None:
    """Return top, left, bottom and right padding, or None where more is cropped than added."""
    (top, bottom), (left, right) = (
        (pad[0] - crop[0], pad[1] - crop[1]) for pad, crop in zip(around, crops, strict=True)
    )
    sides = (top, left, bottom, right)
    return sides if min(sides) >= 0 else None
