"""Padding and windows as they are written."""

from __future__ import annotations

from collections.abc import Sequence

from serde.errors import Unsupported
from serde.relay.ir.expr import Call
from serde.relay.ir.shapes import is_float
from serde.relay.op.shape.columns import Columns
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import cast

Widths = tuple[tuple[int, int], ...]

_MODES = {"edge": "replicate", "reflect": "reflect"}


def flat_widths(widths: Sequence[tuple[int, int]]) -> list[int]:
    """Return widths as ``F.pad`` takes them: from the last axis on, as far as there are any."""
    found = [width for sides in reversed(widths) for width in sides]
    while len(found) > 2 and found[-2:] == [0, 0]:
        del found[-2:]
    return found


@OPS.exports("nn.pad")
def export_pad(
    ctx: ExportContext, data: Value, pad_val: Value, *, pad_width: Widths, pad_mode: str
) -> Value:
    if not any(width for sides in pad_width for width in sides):
        return data
    if pad_mode != "constant":
        return _continue(ctx, data, pad_width, pad_mode)
    value, dtype = ctx.scalar(pad_val), ctx.type(data).dtype
    if value is None:
        filler = cast(ctx, pad_val, dtype)
        return ctx.call(ctx.helper("pad_with"), data, flat_widths(pad_width), filler)
    if not is_float(dtype):
        value = int(value)
    if not value:
        return ctx.call("F.pad", data, flat_widths(pad_width))
    if float(value) != value and value == value:
        raise Unsupported(f"padding by {value}, which is no float64")
    return ctx.call("F.pad", data, flat_widths(pad_width), value=float(value))


def _continue(ctx: ExportContext, data: Value, widths: Widths, mode: str) -> Value:
    """PyTorch continues the last axes of floats behind those of samples and channels."""
    type_ = ctx.type(data)
    flat = flat_widths(widths)
    spatial = type_.rank - 2
    if mode in _MODES and is_float(type_.dtype) and 1 <= spatial <= 3 and len(flat) <= 2 * spatial:
        flat += [0] * (2 * spatial - len(flat))
        return ctx.call("F.pad", data, flat, mode=_MODES[mode])
    for axis, (before, after) in enumerate(widths):
        if before or after:
            data = ctx.call(ctx.helper("continue_axis"), data, axis, before, after, mode)
    return data


@OPS.exports("nn.mirror_pad")
def export_mirror_pad(ctx: ExportContext, data: Value, *, mode: str, pad_width: Widths) -> Value:
    if not any(width for sides in pad_width for width in sides):
        return data
    return _continue(ctx, data, pad_width, mode.lower())


def _is_plain_fold(call: Call) -> bool:
    """Whether images have two axes, padded alike on both sides, as ``F.fold`` takes them."""
    padding = call.attrs["padding"]
    alike = len(padding) != 4 or padding[:2] == padding[2:]
    return len(call.attrs["image_shape"]) == 2 and alike


@OPS.exports("serde.col2im", when=_is_plain_fold)
def export_col2im(ctx: ExportContext, data: Value, *, col2im: Columns) -> Value:
    before = (col2im.padding * 2)[:2]
    return ctx.call(
        "F.fold",
        data,
        tuple(ctx.sizes(col2im.image_shape)),
        col2im.block_shape,
        dilation=col2im.dilation or 1,
        padding=before,
        stride=col2im.strides or 1,
    )
