"""Images enlarged by factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.conv.transposed import conv_transpose
from serde.mxnet.ops.layout import COMPUTED
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call, Expr
from serde.relay.op.image.upsampling import Upsampling
from serde.walk.takes import Takes


@OPS.imports("UpSampling", ignored=("workspace",))
def import_up_sampling(
    ctx: ImportContext,
    *data: Expr,
    scale: int,
    sample_type: Literal["bilinear", "nearest"],
    num_filter: int = 0,
    multi_input_mode: Literal["concat", "sum"] = "concat",
    num_args: int = 1,
) -> Expr:
    """Bilinear is a grouped transposed convolution whose weight is the second input."""
    if sample_type == "bilinear":
        if len(data) != 2:
            raise Unsupported(f"bilinear: expected data and weight, found {len(data)} inputs")
        return _bilinear(ctx, data[0], data[1], scale, num_filter)
    wanted = [length * scale for length in ctx.type(ctx.first(data)).shape[2:]]
    parts = [relay.nn.upsampling(data[0], float(scale), float(scale))]
    parts += [_repeat_up_to(each, ctx.type(each).shape[2:], wanted) for each in data[1:]]
    if len(parts) > 1 and multi_input_mode == "concat":
        return relay.concatenate(parts, axis=1)
    total = parts[0]
    for part in parts[1:]:
        total = relay.add(total, part)
    return total


def _repeat_up_to(data: Expr, lengths: Sequence[Dim], wanted: Sequence[Dim]) -> Expr:
    """Repeat rows and columns up to lengths of which those of `data` are whole fractions."""
    factors = []
    if len(lengths) != len(wanted):
        raise Unsupported(f"{list(lengths)} and {list(wanted)} are lengths of other axes")
    for length, target in zip(lengths, wanted, strict=True):
        if isinstance(length, int) and isinstance(target, int):
            if not length or target % length:
                raise Unsupported(f"{list(lengths)} is no whole fraction of {list(wanted)}")
            factors.append(target // length)
    if len(factors) == len(lengths):
        height, width = map(float, factors)
        return relay.nn.upsampling(data, height, width)
    return relay.image.resize2d(
        data,
        tuple(wanted),
        method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    )


def _bilinear(ctx: ImportContext, data: Expr, weight: Expr, scale: int, num_filter: int) -> Expr:
    kernel = 2 * scale - scale % 2
    channels = num_filter or ctx.static_shape(weight)[0]
    return conv_transpose(
        data, weight, (scale // 2,) * 2, (0, 0), channels=channels, kernel_size=(kernel,) * 2,
        strides=(scale,) * 2, dilation=(1, 1), groups=channels,
    )  # fmt: skip


_NEAREST = Takes(data=COMPUTED, method="nearest_neighbor", align_corners=False)


def _is_repeated(call: Call) -> bool:
    """Whether each pixel is repeated as often in both directions."""
    scale = call.attrs["scale_h"]
    return bool(scale == call.attrs["scale_w"] == int(scale))


@OPS.exports("nn.upsampling", takes=_NEAREST, when=_is_repeated)
def export_upsampling(
    ctx: ExportContext, data: Value, *, scale_h: float, scale_w: float, upsampling: Upsampling
) -> Value:
    return ctx.emit("UpSampling", data, scale=int(scale_h), sample_type="nearest", num_args=1)
