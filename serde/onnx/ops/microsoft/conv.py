"""Convolutions with an activation, or with channels last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.conv.direct import import_causal_conv, import_conv
from serde.onnx.ops.conv.windows import ConvAttributes
from serde.onnx.ops.microsoft.activation import apply_activation
from serde.onnx.ops.table import MICROSOFT, Import
from serde.relay.ir.expr import Expr


def to_channels_first(ctx: Import, x: Expr) -> Expr:
    """Return a tensor whose channels are behind as one with them before the other axes."""
    rank = ctx.type(x).rank
    return relay.transpose(x, axes=[0, rank - 1, *range(1, rank - 1)])


def to_channels_last(ctx: Import, x: Expr) -> Expr:
    """Return the inverse."""
    rank = ctx.type(x).rank
    return relay.transpose(x, axes=[0, *range(2, rank), 1])


def _fused(convolve: Callable[..., Expr]) -> Callable[..., Expr]:
    def read(
        ctx: Import, x: Expr, w: Expr, b: Expr | None = None, z: Expr | None = None,
        *, activation: str = "", activation_params: tuple[float, ...] = (), conv: ConvAttributes,
    ) -> Expr:  # fmt: skip
        """Another tensor is added before the activation."""
        found = convolve(ctx, x, w, b, conv=conv)
        total = found if z is None else relay.add(found, z)
        return apply_activation(ctx, total, activation, activation_params)

    return read


MICROSOFT.imports("FusedConv")(_fused(import_conv))


@MICROSOFT.imports("NhwcConv")
def import_nhwc_conv(
    ctx: Import, x: Expr, w: Expr, b: Expr | None = None, *, conv: ConvAttributes
) -> Expr:
    """The data alone has its channels behind; the weight is as in Conv."""
    return to_channels_last(ctx, import_conv(ctx, to_channels_first(ctx, x), w, b, conv=conv))


MICROSOFT.imports("NhwcFusedConv")(_fused(import_nhwc_conv))


@MICROSOFT.imports("CausalConvWithState")
def import_microsoft_causal_conv(
    ctx: Import, x: Expr, weight: Expr, bias: Expr | None = None, past_state: Expr | None = None,
    *, activation: Literal["none", "silu", "swish"] = "none", channels_last: bool = False,
    dilation: int = 1, ndim: int = 1, state_window: int = 0,
) -> list[Expr]:  # fmt: skip
    """Channels may be behind, in the state too; the weight is as in Conv."""
    if (ndim, dilation, state_window) != (1, 1, 0) or ctx.type(x).rank != 3:
        raise Unsupported(f"ndim={ndim}, dilation={dilation}, state_window={state_window}")
    if not channels_last:
        return import_causal_conv(ctx, x, weight, bias, past_state, activation=activation)
    past = None if past_state is None else to_channels_first(ctx, past_state)
    data = to_channels_first(ctx, x)
    found = import_causal_conv(ctx, data, weight, bias, past, activation=activation)
    return [to_channels_last(ctx, each) for each in found]
