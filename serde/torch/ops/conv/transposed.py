"""Transposed convolutions."""

from __future__ import annotations

from functools import partial

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.torch.import_context import ImportContext
from serde.torch.ops.conv.windows import (
    SPATIAL,
    ConvAttributes,
    Sizes,
    kernel_size,
    over_batch,
    per_axis,
    require_real,
)
from serde.torch.ops.table import OPS

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
    ctx: ImportContext,
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
        getattr(relay.nn, f"conv{ndim}d_transpose"),
        weight=weight,
        strides=per_axis(ctx, conv.stride, ndim, "stride"),
        padding=conv.pads(ctx, kernel, dilation),
        dilation=dilation,
        output_padding=per_axis(ctx, output_padding, ndim, "output_padding"),
        groups=groups,
        channels=ctx.type(weight).shape[1] * groups,
        kernel_size=kernel,
        data_layout="NC" + SPATIAL[ndim],
        kernel_layout="IO" + SPATIAL[ndim],
    )

    def build_biased(x: Expr) -> Expr:
        found: Expr = build(x)
        return found if bias is None else relay.nn.bias_add(found, bias, axis=1)

    return over_batch(ctx, input, ndim, build_biased)
