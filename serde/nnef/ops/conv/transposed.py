"""Transposed convolutions. What they give has a length of its own, or as many strides as data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.ops.conv.direct import OWN_DTYPE, add_bias, bias_row, spatial_rank, widened
from serde.nnef.ops.conv.windows import (
    SPATIAL,
    WindowAttributes,
    pad_border,
    per_axis,
    reach_of,
    refuse_windows,
    same_padding,
    steps,
)
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, split_padding
from serde.relay.lowering.conv import TRANSPOSED, cut_behind
from serde.relay.op.conv.windows import Convolution

__all__ = ["continue_input", "transpose_windows", "unpooled_geometry"]


def unpooled_geometry(
    lengths: Sequence[int],
    reach: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    output_shape: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Return where results begin in what windows cover, and their lengths.

    Padding that is not told is that of windows over the result, which is as long as `output_shape`
    says, or as many strides as there are windows.
    """
    pairs = list(padding)
    wanted = list(output_shape)
    axes = list(zip(lengths, reach, strides, strict=True))
    if not pairs:
        wanted = wanted or [n * step for n, _, step in axes]
        pairs = same_padding(wanted, reach, strides)
    if len(pairs) != len(axes):
        raise Unsupported(f"padding: expected {len(axes)} pairs, found {len(pairs)}")
    totals = [sum(pair) for pair in pairs]
    wanted = wanted or [
        (n - 1) * step + span - total for (n, span, step), total in zip(axes, totals, strict=True)
    ]
    for (n, span, step), total, length in zip(axes, totals, wanted, strict=True):
        found = (length + total - span) // step + 1 if padding else -(-length // step)
        if found != n or length < 1:
            raise Unsupported(f"output_shape {wanted} does not come of {list(lengths)}")
    return [before for before, _ in pairs], wanted


def transpose_windows(
    ctx: Import, input: Expr, filter: Expr,
    *, strides: Sequence[int], dilation: Sequence[int], begin: Sequence[int], wanted: Sequence[int],
    groups: int,
) -> Expr:  # fmt: skip
    """Return a transposed convolution, and of what its windows cover a part.

    Args:
        ctx: The context.
        input: (N, C, ...).
        filter: (C, O / groups, ...).
        strides: Steps of the windows.
        dilation: Steps of their taps.
        begin: Where the part begins; before the first window are zeros.
        wanted: Its lengths; behind the last window are zeros.
        groups: Number of independent parts of the channels.
    """
    ndim = len(strides)
    size = ctx.static_shape(filter)
    reach = reach_of(size[2:], dilation)
    lengths = ctx.static_lengths(input, range(2, ndim + 2))
    before, after, extra, ahead, behind = [], [], [], [], []
    for axis in range(ndim):
        whole = (lengths[axis] - 1) * strides[axis] + reach[axis]
        rest = whole - begin[axis] - wanted[axis]
        more = max(0, -rest)
        before.append(max(0, begin[axis]))
        ahead.append(max(0, -begin[axis]))
        after.append(max(0, rest))
        extra.append(more if more < strides[axis] and not ahead[axis] else 0)
        behind.append(more - extra[axis])
    result = getattr(relay.nn, f"conv{ndim}d_transpose")(
        input, filter, strides=tuple(strides), padding=(*before, *after), dilation=tuple(dilation),
        output_padding=tuple(extra), groups=groups, channels=size[1] * groups,
        kernel_size=tuple(size[2:]), data_layout="NC" + SPATIAL[ndim],
        kernel_layout="IO" + SPATIAL[ndim],
    )  # fmt: skip
    sides = [(0, 0), (0, 0), *zip(ahead, behind, strict=True)]
    return pad_border(ctx, result, sides, "constant")


def continue_input(
    ctx: Import, input: Expr, begin: Sequence[int], wanted: Sequence[int], reach: Sequence[int],
    strides: Sequence[int], border: str,
) -> tuple[Expr, list[int]]:  # fmt: skip
    """Return data continued as far as results take from it, and where results begin then.

    Args:
        ctx: The context.
        input: The data; windows are those of its last axes.
        begin: Where results begin in what windows cover.
        wanted: Their lengths.
        reach: How many elements a window spans.
        strides: Steps of the windows.
        border: How the data continue; with zeros they need not.
    """
    if border in ("constant", "ignore"):
        return input, list(begin)
    rank = ctx.rank(input)
    sides = [(0, 0)] * (rank - len(begin))
    shifted = []
    lengths = ctx.static_lengths(input, range(len(sides), rank))
    for length, first, n, span, step in zip(lengths, begin, wanted, reach, strides, strict=True):
        ahead = max(0, (span - 1 - first) // step)
        sides.append((ahead, max(0, (n - 1 + first) // step - (length - 1))))
        shifted.append(first + ahead * step)
    return pad_border(ctx, input, sides, border), shifted


@OPS.imports("deconv")
def import_deconv(
    ctx: Import, input: Expr, filter: Expr, bias: Expr | None = None,
    *, window: WindowAttributes, output_shape: tuple[int, ...] = (), groups: int = 1,
) -> Expr:  # fmt: skip
    """No groups are as many as channels of the result. Data continue as their border says."""
    ndim = spatial_rank(ctx, input, filter)
    if len(output_shape) not in (0, ndim + 2):
        raise Unsupported(f"output_shape {list(output_shape)} of {ndim + 2} axes")
    if ndim == 0:
        refuse_windows(window)
        wide = import_deconv(
            ctx, widened(input), widened(filter), bias,
            window=WindowAttributes(), output_shape=(*output_shape, 1) if output_shape else (),
            groups=groups,
        )  # fmt: skip
        return relay.squeeze(wide, [2])
    channels, *lengths = ctx.static_lengths(input, range(1, ndim + 2))
    if groups == 0:
        groups = output_shape[1] if output_shape else channels
    strides = per_axis(window.stride, ndim, "stride")
    dilation = per_axis(window.dilation, ndim, "dilation")
    reach = reach_of(ctx.static_shape(filter)[2:], dilation)
    begin, wanted = unpooled_geometry(lengths, reach, strides, window.padding, output_shape[2:])
    input, begin = continue_input(ctx, input, begin, wanted, reach, strides, window.border)
    result = transpose_windows(
        ctx, input, filter, strides=strides, dilation=dilation, begin=begin, wanted=wanted,
        groups=groups,
    )  # fmt: skip
    if output_shape and ctx.type(result).shape[1] != output_shape[1]:
        raise Unsupported(f"output_shape {list(output_shape)} for {ctx.type(result)!r}")
    return add_bias(ctx, result, bias)


@OPS.imports("separable_deconv")
def import_separable_deconv(
    ctx: Import, input: Expr, plane_filter: Expr, point_filter: Expr, bias: Expr | None = None,
    *, window: WindowAttributes, output_shape: tuple[int, ...] = (), groups: int = 1,
) -> Expr:  # fmt: skip
    """Points, and then each channel by itself; `groups` are those of the points."""
    points = WindowAttributes(padding=((0, 0),) * (ctx.rank(input) - 2))
    filtered = import_deconv(ctx, input, point_filter, window=points, groups=groups)
    return import_deconv(
        ctx, filtered, plane_filter, bias, window=window, output_shape=output_shape, groups=0
    )


def _is_direct(node: Call) -> bool:
    """Whether NNEF's formula gives the length: fewer elements are added than a stride has."""
    pairs = zip(node.attrs["output_padding"], node.attrs["strides"], strict=True)
    return all(extra < step for extra, step in pairs)


@OPS.exports(*TRANSPOSED, takes=OWN_DTYPE, when=_is_direct)
def export_conv_transpose(
    ctx: Export,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    output_padding: tuple[int, ...],
    conv: Convolution,
) -> Value:
    """What is added behind the windows is told by the shape of the result."""
    shape = ctx.result_type().concrete_shape or ()
    pairs = zip(*split_padding(conv.padding, len(conv.strides)), strict=True)
    depthwise = 1 < conv.groups == ctx.static_shape(data)[1] == shape[1]
    return ctx.emit(
        "deconv", data, weight, *bias_row(ctx, bias), padding=list(pairs),
        stride=steps(conv.strides), dilation=steps(conv.dilation),
        output_shape=list(shape) if any(output_padding) else [],
        groups=0 if depthwise else conv.groups,
    )  # fmt: skip


OPS.expands(*TRANSPOSED)(partial(cut_behind, alike=False))
