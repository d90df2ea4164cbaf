"""Convolutions of images and weights in blocks of channels, as TVM computes them on CPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any as AnyValue

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Dim, Expr, Sample, TensorType, builder, call, relay_op, sample
from serde.relay.ir.layout import layout_rank
from serde.relay.ir.traits import Fusion, FusionPattern
from serde.relay.ir.work import filters
from serde.relay.op.conv.direct import convolution_type, run_convolution
from serde.relay.op.conv.windows import Convolution, padding_sides, per_axis

_USUAL = Convolution.usual(2)


def _kernel_layout(shape: tuple[Dim, ...], kernel_layout: str) -> str:
    """Return the layout of a weight: one of six axes has blocks, whatever the attribute says."""
    if len(shape) == layout_rank(kernel_layout):
        return kernel_layout
    if len(shape) == 6:
        return f"OIHW{shape[4]}i{shape[5]}o"
    raise TypeInferenceError(
        f"expected a weight of layout {kernel_layout}, found {len(shape)} axes"
    )


def _packed_type(data: TensorType, weight: TensorType, *, conv: Convolution) -> TensorType:
    layout = _kernel_layout(weight.shape, conv.kernel_layout)
    return convolution_type(data, weight, rank=2, conv=replace(conv, kernel_layout=layout))


def _as_conv2d(
    data: Expr,
    weight: Expr,
    *,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    **attrs: AnyValue,
) -> Expr:
    shape = weight.type.shape if isinstance(weight.type, TensorType) else ()
    layout = _kernel_layout(shape, kernel_layout)
    image = call("layout_transform", data, src_layout=data_layout, dst_layout="NCHW")
    kernel = call("layout_transform", weight, src_layout=layout, dst_layout="OIHW")
    result = call("nn.conv2d", image, kernel, **attrs)
    wanted = out_layout or data_layout
    return call("layout_transform", result, src_layout="NCHW", dst_layout=wanted)


def _declare(name: str, *samples: Sample) -> None:
    """Declare a convolution of images in blocks."""

    @relay_op(
        f"nn.contrib_{name}_NCHWc",
        traits=(filters(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE)),
        infer=_packed_type,
        decompose=_as_conv2d,
        samples=samples,
    )
    def conv(data: Array, weight: Array, *, conv: Convolution = _USUAL) -> Array:
        """As ``nn.conv2d``, of an image in blocks of channels such as ``NCHW8c``.

        A weight of six axes is in blocks of input and output channels, as ``OIHW8i8o``, whatever
        `kernel_layout` says.
        """
        layout = _kernel_layout(weight.shape, conv.kernel_layout)
        return run_convolution(data, weight, rank=2, conv=replace(conv, kernel_layout=layout))

    @builder(f"nn.contrib_{name}_nchwc")
    def build(
        data: Expr, kernel: Expr, strides: AnyValue = (1, 1), padding: AnyValue = (0, 0),
        dilation: AnyValue = (1, 1), groups: int = 1, channels: Dim | None = None,
        kernel_size: AnyValue = None, data_layout: str = "NCHW8c", kernel_layout: str = "OIHW",
        out_layout: str = "", out_dtype: AnyValue = "",
    ) -> Expr:  # fmt: skip
        """Build a convolution of an image in blocks; padding becomes that of all sides."""
        return call(
            f"nn.contrib_{name}_NCHWc", data, kernel, strides=per_axis(strides, 2),
            padding=padding_sides(padding, 2), dilation=per_axis(dilation, 2), groups=groups,
            channels=channels, kernel_size=per_axis(kernel_size, 2), data_layout=data_layout,
            kernel_layout=kernel_layout, out_layout=out_layout, out_dtype=out_dtype,
        )  # fmt: skip


_declare(
    "conv2d",
    sample((1, 2, 5, 4, 2), (3, 2, 3, 3, 2, 2), data_layout="NCHW2c", kernel_layout="OIHW2i2o",
           channels=6, kernel_size=(3, 3), padding=(1, 1), strides=(2, 1)),
    sample((1, 1, 4, 4, 4), (2, 1, 1, 1, 4, 3), data_layout="NCHW4c", kernel_layout="OIHW4i3o",
           out_layout="NCHW6c"),
    sample((1, 2, 4, 4, 2), (8, 4, 3, 2), data_layout="NCHW2c", kernel_layout="OIHW"),
)  # fmt: skip
_declare(
    "depthwise_conv2d",
    sample((1, 2, 5, 5, 3), (2, 1, 3, 3, 1, 3), data_layout="NCHW3c", kernel_layout="OIHW1i3o",
           out_layout="NCHW3c", groups=6, channels=6, kernel_size=(3, 3), padding=(1, 1, 1, 1)),
)  # fmt: skip
