"""Convolutions at learned places."""

from __future__ import annotations

from serde.errors import Unsupported
from serde.onnx.ops.conv.windows import per_axis
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, call


@OPS.exports("serde.deform_conv2d", since=19)
def export_deform_conv2d(
    ctx: Export, x: Value, weight: Value, offset: Value, bias: Value | None, mask: Value | None,
    *, strides: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], groups: int,
    offset_groups: int,
) -> Value:  # fmt: skip
    given = (bias, mask) if mask is not None else (bias,)
    return ctx.emit(
        "DeformConv", x, weight, offset, *given,
        kernel_shape=list(ctx.static_lengths(weight, [2, 3])), strides=list(strides),
        pads=list(padding), dilations=list(dilation), group=groups, offset_group=offset_groups,
    )  # fmt: skip


@OPS.imports("DeformConv", since=(19, 22))
def import_deform_conv(
    ctx: Import, x: Expr, w: Expr, offset: Expr, b: Expr | None = None, mask: Expr | None = None,
    *, dilations: tuple[int, ...] = (), group: int = 1, kernel_shape: tuple[int, ...] = (),
    offset_group: int = 1, pads: tuple[int, ...] = (), strides: tuple[int, ...] = (),
) -> Expr:  # fmt: skip
    ndim = ctx.type(x).rank - 2
    if ndim != 2:
        raise Unsupported(f"a deformable convolution over {ndim} axes")
    if kernel_shape and kernel_shape != ctx.static_lengths(w, [2, 3]):
        raise Unsupported(f"kernel_shape {list(kernel_shape)} with a weight of {ctx.type(w)!r}")
    return call(
        "serde.deform_conv2d", x, w, offset, b, mask, strides=per_axis(strides, 2, "strides"),
        padding=pads or (0, 0, 0, 0), dilation=per_axis(dilations, 2, "dilations"), groups=group,
        offset_groups=offset_group,
    )  # fmt: skip
