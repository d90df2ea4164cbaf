"""Transposed convolutions."""

from __future__ import annotations

from functools import partial
from typing import Any as AnyValue

import serde.relay as relay
from serde.relay.ir import Call, Expr, split_padding
from serde.relay.lowering.conv import TRANSPOSED, is_on_floats, transposed_on_floats
from serde.torch.ops.conv.windows import (
    SPATIAL,
    ConvAttributes,
    RelayConv,
    Sizes,
    kernel_size,
    over_batch,
    per_axis,
    require_real,
    write_conv,
)
from serde.torch.ops.table import OPS, Export, Import, Value

__all__ = ["convolve_transposed"]


@OPS.imports("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d")
@OPS.imports(
    "aten::slow_conv_transpose2d", "aten::slow_conv_transpose3d",
    "aten::cudnn_convolution_transpose", "aten::miopen_convolution_transpose",
    "aten::_mps_convolution_transpose",
    ignored=("kernel_size", "benchmark", "deterministic", "allow_tf32"),
    renamed={"self": "input"},
)  # fmt: skip
def convolve_transposed(
    ctx: Import,
    input: Expr,
    weight: Expr,
    bias: Expr | None = None,
    *,
    conv: ConvAttributes,
    output_padding: Sizes = 0,
) -> Expr:
    """Return a transposed convolution; the weight has its inputs first."""
    require_real(ctx, input)
    kernel = kernel_size(ctx, weight)
    ndim = len(kernel)
    groups = ctx.fixed(conv.groups)
    dilation = per_axis(ctx, conv.dilation, ndim, "dilation")
    build = partial(
        getattr(relay.nn, f"conv{ndim}d_transpose"), weight=weight,
        strides=per_axis(ctx, conv.stride, ndim, "stride"),
        padding=conv.pads(ctx, kernel, dilation), dilation=dilation,
        output_padding=per_axis(ctx, output_padding, ndim, "output_padding"), groups=groups,
        channels=ctx.type(weight).shape[1] * groups, kernel_size=kernel,
        data_layout="NC" + SPATIAL[ndim], kernel_layout="IO" + SPATIAL[ndim],
    )  # fmt: skip

    def build_biased(x: Expr) -> Expr:
        found: Expr = build(x)
        return found if bias is None else relay.nn.bias_add(found, bias, axis=1)

    return over_batch(ctx, input, ndim, build_biased)


def _is_direct(node: Call) -> bool:
    """Whether PyTorch's output padding can say how much less is cut behind an axis than before."""
    attrs = node.attrs
    limits = map(max, attrs["strides"], attrs["dilation"])
    return is_on_floats(node) and all(
        0 <= extra < limit for extra, limit in zip(_output_padding(**attrs), limits, strict=True)
    )


def _output_padding(
    *, padding: tuple[int, ...], output_padding: tuple[int, ...], **_rest: AnyValue
) -> tuple[int, ...]:
    before, after = split_padding(padding, len(output_padding))
    return tuple(p + b - a for p, b, a in zip(output_padding, before, after, strict=True))


@OPS.exports(*TRANSPOSED, when=_is_direct)
def export_conv_transpose(
    ctx: Export,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    conv: RelayConv,
    output_padding: tuple[int, ...],
) -> Value:
    """What is cut less behind than before is output padding."""
    rank, options = len(conv.strides), conv.options()
    before, _ = split_padding(conv.padding, rank)
    extra = _output_padding(padding=conv.padding, output_padding=output_padding)
    if any(before):
        options["padding"] = before
    if any(extra):
        options["output_padding"] = extra
    inputs = ctx.type(data).shape[1]
    return write_conv(ctx, f"ConvTranspose{rank}d", data, weight, bias, inputs, options)


OPS.expands(*TRANSPOSED)(transposed_on_floats("float64", alike=True))
