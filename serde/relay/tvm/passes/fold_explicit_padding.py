"""Padding before a convolution or pooling as padding of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from serde.relay.ir import Call, Constant, Expr, Function, call, lowest
from serde.relay.tvm.dataflow_pattern.language import is_op, wildcard
from serde.relay.tvm.dataflow_pattern.rewriting import DFPatternCallback, NodeMap, rewrite
from serde.relay.tvm.passes.simplify_shapes import any_of, calls_of
from serde.relay.tvm.passes.typed import TypedPass, operator_of, same_scalar

__all__ = ["FoldExplicitPadding", "absorb_padding"]

_CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
_POOLS = ("nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")
_MAXIMA = ("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")


class FoldExplicitPadding(TypedPass):
    """Let a convolution or a pooling pad by itself what ``nn.pad`` pads before it.

    The value must be what the operator pads with: zero for convolutions and averages, the least
    of its dtype for maxima, the zero point for ``qnn.conv2d``; and only image axes are padded. An
    average that does not count padding counts it from then on, unless it had some of its own.
    """

    name: ClassVar[str] = "FoldExplicitPadding"

    def transform(self, function: Function) -> Function:
        """Rewrite until nothing changes."""
        result = rewrite(_FoldPad(), function)
        return result if isinstance(result, Function) else function


class _FoldPad(DFPatternCallback):
    def __init__(self) -> None:
        super().__init__()
        pad = is_op("nn.pad")(wildcard(), wildcard())
        weight = wildcard()
        quantised = is_op("qnn.conv2d")(pad, weight, *(wildcard() for _ in range(4)))
        plain = calls_of(_CONVOLUTIONS, pad, weight)
        self.pattern = any_of(quantised, plain, calls_of((*_POOLS, *_MAXIMA), pad))

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return the operator with the padding, or as it was."""
        return absorb_padding(post) if isinstance(post, Call) else post


def absorb_padding(node: Call) -> Call:
    """Return a convolution or a pooling with the padding of its data, or as it was."""
    pad = node.args[0]
    if not isinstance(pad, Call) or operator_of(pad) != "nn.pad" or not _pads_alike(node, pad):
        return node
    attrs = _padded_attrs(node, pad)
    if attrs is None:
        return node
    return call(operator_of(node), pad.args[0], *node.args[1:], span=node.span, **attrs)


def _pads_alike(node: Call, pad: Call) -> bool:
    """Whether a pad puts what the operator pads with."""
    value, name = pad.args[1], operator_of(node)
    if name == "qnn.conv2d":
        return _same_number(node.args[2], value)
    if pad.attrs["pad_mode"] != "constant" or not isinstance(value, Constant):
        return False
    number = float(value.data.reshape(-1)[0])
    return number == float(lowest(value.data.dtype)) if name in _MAXIMA else number == 0.0


def _same_number(one: Expr, other: Expr) -> bool:
    if same_scalar(one, other):
        return True
    if not isinstance(one, Constant) or not isinstance(other, Constant):
        return False
    if one.data.ndim or other.data.ndim:
        return False
    return bool(one.data == other.data)


def _padded_attrs(node: Call, pad: Call) -> dict[str, object] | None:
    layout = node.attrs["layout" if "layout" in node.attrs else "data_layout"]
    sides = _image_sides(pad.attrs["pad_width"], layout)
    own = node.attrs["padding"]
    if sides is None or len(sides) != len(own):
        return None
    total = tuple(more + padding for more, padding in zip(sides, own, strict=True))
    attrs: dict[str, object] = {**node.attrs, "padding": total}
    if not node.attrs.get("count_include_pad", True):
        if any(own):
            return None
        attrs["count_include_pad"] = True
    return attrs


def _image_sides(widths: Sequence[Sequence[int]], layout: str) -> list[int] | None:
    """Return the padding before each image axis, then after; None if another axis has some."""
    axes = [letter for letter in layout if letter.isalpha()]
    if len(axes) != len(widths):
        return None
    image = [letter in "DHW" for letter in axes]
    if any(any(width) for width, spatial in zip(widths, image, strict=True) if not spatial):
        return None
    kept = [width for width, spatial in zip(widths, image, strict=True) if spatial]
    return [width[0] for width in kept] + [width[1] for width in kept]
