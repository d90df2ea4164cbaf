"""Convolutions, those at learned places too. NNEF adds the bias itself."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
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
from serde.relay.ir import Expr, split_padding
from serde.relay.lowering.conv import CONVOLUTIONS
from serde.relay.op.conv.windows import Convolution
from serde.walk.takes import Takes, like

__all__ = ["OWN_DTYPE", "add_bias", "bias_row", "spatial_rank", "widened"]


def spatial_rank(ctx: Import, x: Expr, filter: Expr) -> int:
    """Return the number of spatial axes of a convolution."""
    rank = ctx.rank(x)
    if ctx.rank(filter) != rank or not 2 <= rank <= 5:
        raise Unsupported(f"a convolution of {ctx.type(x)!r} with {ctx.type(filter)!r}")
    return rank - 2


def widened(x: Expr) -> Expr:
    """Return a matrix with an axis behind it: no spatial axes are one of length 1."""
    return relay.expand_dims(x, 2)


def add_bias(ctx: Import, result: Expr, bias: Expr | None) -> Expr:
    """Return a result with its bias: one number, or one for each channel behind unit axes."""
    if bias is None or ctx.is_literal(bias, 0.0):
        return result
    lengths = ctx.static_shape(bias)
    channels = ctx.type(result).shape[1]
    if any(n != 1 for n in lengths[:-1]) or (lengths and lengths[-1] not in (1, channels)):
        raise Unsupported(f"a bias of {ctx.type(bias)!r} for {channels} channels")
    if lengths and lengths[-1] == channels:
        row = bias if len(lengths) == 1 else ctx.fold(relay.reshape(bias, (-1,)))
        return relay.nn.bias_add(result, row, axis=1)
    return relay.add(result, ctx.fold(relay.reshape(bias, ())) if lengths else bias)


@OPS.imports("conv")
def import_conv(
    ctx: Import,
    input: Expr,
    filter: Expr,
    bias: Expr | None = None,
    *,
    window: WindowAttributes,
    groups: int = 1,
) -> Expr:
    """No groups are as many as channels. What is ignored adds nothing, as zeros do."""
    ndim = spatial_rank(ctx, input, filter)
    if ndim == 0:
        refuse_windows(window)
        wide = import_conv(
            ctx, widened(input), widened(filter), bias, window=WindowAttributes(), groups=groups
        )
        return relay.squeeze(wide, [2])
    outputs, _, *size = ctx.static_shape(filter, at_least=2)
    strides = per_axis(window.stride, ndim, "stride")
    dilation = per_axis(window.dilation, ndim, "dilation")
    reach = reach_of(size, dilation)
    pairs = list(window.padding)
    if not pairs:
        pairs = same_padding(ctx.static_lengths(input, range(2, ndim + 2)), reach, strides)
    if len(pairs) != ndim:
        raise Unsupported(f"padding: expected {ndim} pairs, found {len(pairs)}")
    if window.border not in ("constant", "ignore") or any(min(pair) < 0 for pair in pairs):
        input = pad_border(ctx, input, [(0, 0), (0, 0), *pairs], window.border)
        pairs = [(0, 0)] * ndim
    result = getattr(relay.nn, f"conv{ndim}d")(
        input, filter, strides=strides,
        padding=(*(before for before, _ in pairs), *(after for _, after in pairs)),
        dilation=dilation, groups=groups or ctx.static_lengths(input, [1])[0], channels=outputs,
        kernel_size=tuple(size), data_layout="NC" + SPATIAL[ndim],
        kernel_layout="OI" + SPATIAL[ndim],
    )  # fmt: skip
    return add_bias(ctx, result, bias)


@OPS.imports("separable_conv")
def import_separable_conv(
    ctx: Import, input: Expr, plane_filter: Expr, point_filter: Expr, bias: Expr | None = None,
    *, window: WindowAttributes, groups: int = 1,
) -> Expr:  # fmt: skip
    """Each channel by itself, and then points; `groups` are those of the points."""
    filtered = import_conv(ctx, input, plane_filter, window=window, groups=0)
    points = WindowAttributes(padding=((0, 0),) * (ctx.rank(input) - 2))
    return import_conv(ctx, filtered, point_filter, bias, window=points, groups=groups)


def bias_row(ctx: Export, bias: Value | None) -> list[Value]:
    """Return the bias as NNEF has it, behind an axis for the batch."""
    return [] if bias is None else [ctx.reshape(bias, (1, *ctx.static_shape(bias)))]


OWN_DTYPE = Takes(out_dtype=like("data"))
"""NNEF convolves in the dtype of the data."""


@OPS.exports(*CONVOLUTIONS, takes=OWN_DTYPE)
def export_conv(
    ctx: Export, data: Value, weight: Value, bias: Value | None = None, *, conv: Convolution
) -> Value:
    """Padding is always told; as many groups as channels are none."""
    channels = ctx.static_shape(data)[1]
    pairs = zip(*split_padding(conv.padding, len(conv.strides)), strict=True)
    return ctx.emit(
        "conv", data, weight, *bias_row(ctx, bias), padding=list(pairs), stride=steps(conv.strides),
        dilation=steps(conv.dilation), groups=0 if 1 < conv.groups == channels else conv.groups,
    )  # fmt: skip
