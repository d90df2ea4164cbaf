"""The gradient of a convolution with respect to its weight."""

from __future__ import annotations

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Expr, Fusion, FusionPattern, call, relay_op, sample, tensor_type
from serde.relay.ir.shapes import at, conv_dim, join_dim, layout_axes, require_window, split_padding
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import PRODUCT
from serde.relay.op.conv.windows import (
    Convolution,
    convolve,
    data_shape,
    pad_sides,
    window_arguments,
)
from serde.relay.op.linalg.product import product_dtype, to_product_dtype

_USUAL = Convolution.usual(2)


def _backward_weight_type(grad: TensorType, data: TensorType, *, conv: Convolution) -> TensorType:
    """`kernel_size` must be given, since `data` and `grad` do not determine it."""
    dtype = product_dtype(grad, data, conv.out_dtype)
    batch, outputs, *errors = data_shape(grad, conv.data_layout, 2)
    samples, inputs, *lengths = data_shape(data, conv.kernel_layout, 2)
    join_dim(batch, samples)
    if conv.kernel_size is None:
        raise TypeInferenceError("attribute kernel_size must be given")
    require_window(2, strides=conv.strides, dilation=conv.dilation, kernel_size=conv.kernel_size)
    sides = zip(*split_padding(conv.padding, 2), strict=True)
    for error, length, size, stride, step, (before, after) in zip(
        errors, lengths, conv.kernel_size, conv.strides, conv.dilation, sides, strict=True
    ):
        whole = conv_dim(length, size, stride, before + after, step)
        if type(whole) is int and type(error) is int and error > whole:
            raise TypeInferenceError(
                f"a gradient of length {error} where there are {whole} windows"
            )
    if conv.groups < 1 or any(type(n) is int and n % conv.groups for n in (inputs, outputs)):
        raise TypeInferenceError(
            f"{inputs} and {outputs} channels do not form {conv.groups} groups"
        )
    outputs = outputs if conv.channels is None else join_dim(outputs, conv.channels)
    shape = (outputs, inputs // conv.groups, *conv.kernel_size)
    return TensorType(at(shape, layout_axes("OIHW", conv.out_layout or "OIHW")), dtype)


def _decompose_backward_weight(grad: Expr, data: Expr, *, conv: Convolution) -> Expr:
    """A convolution over the batch, the gradient as its filters, strides and dilation exchanged.

    Its groups lie beside each other among the samples, which are its channels.
    """
    images = call("transpose", data, axes=layout_axes(conv.kernel_layout, "CNHW"))
    errors = call("transpose", grad, axes=layout_axes(conv.data_layout, "CNHW"))
    groups = conv.groups
    if groups > 1:
        inputs, samples, *space = tensor_type(images).shape
        parts = call("reshape", images, newshape=(groups, inputs // groups, samples, *space))
        beside = call("transpose", parts, axes=(1, 0, 2, 3, 4))
        images = call("reshape", beside, newshape=(inputs // groups, samples * groups, *space))
    whole = call("nn.conv2d", images, errors, strides=conv.dilation, dilation=conv.strides,
                 padding=conv.padding, groups=groups, out_dtype=conv.out_dtype)  # fmt: skip
    size = tuple(conv.kernel_size or ())
    if tensor_type(whole).shape[2:] != size:
        whole = call("strided_slice", whole, begin=(0, 0), end=size, strides=(1, 1),
                     axes=(2, 3))  # fmt: skip
    return call("transpose", whole, axes=layout_axes("IOHW", conv.out_layout or "OIHW"))


@relay_op(
    "nn.conv2d_backward_weight", traits=(PRODUCT, Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),),
    infer=_backward_weight_type,
    decompose=_decompose_backward_weight,
    samples=[
        sample((2, 4, 5, 6), (2, 3, 7, 7), kernel_size=(3, 2), kernel_layout="NCHW",
               out_layout="OIHW"),
        sample((2, 3, 3, 4), (2, 4, 6, 7), kernel_size=(3, 3), strides=(2, 2), padding=(1, 1),
               groups=1, kernel_layout="NCHW", out_layout="HWIO"),
        sample((1, 3, 2, 4), (1, 7, 8, 6), kernel_size=(3, 2), strides=(2, 3), padding=(1, 0, 0, 2),
               dilation=(1, 2), groups=2, data_layout="NHWC", kernel_layout="NHWC",
               out_layout="OHWI"),
    ],
    arguments=window_arguments(
        2, "strides", "dilation", "kernel_size",
        names={
            "data_layout": "grad_layout", "kernel_layout": "data_layout",
            "out_layout": "kernel_layout",
        },
        defaults={"kernel_layout": "NCHW", "out_layout": "OIHW"},
    ),
)  # fmt: skip
def conv2d_backward_weight(grad: Array, data: Array, *, conv: Convolution = _USUAL) -> Array:
    """``dw[o, c, k] = sum_ni grad[n, o, i] * data[n, c, i * stride + k * dilation - padding]``.

    The attributes are the convolution's, but for the layouts, which are those of `grad`, of
    `data` and of the weight.
    """
    errors = grad.transpose(layout_axes(conv.data_layout, "NCHW"))
    images = pad_sides(
        data.transpose(layout_axes(conv.kernel_layout, "NCHW")), *split_padding(conv.padding, 2)
    )
    parts = []
    for error, image in zip(
        np.split(errors, conv.groups, 1), np.split(images, conv.groups, 1), strict=True
    ):
        part = convolve(image.swapaxes(0, 1), error.swapaxes(0, 1), conv.dilation, conv.strides, 1)
        parts.append(part.swapaxes(0, 1))
    height, width = conv.kernel_size or (0, 0)
    weight = np.concatenate(parts)[:, :, :height, :width]
    axes = layout_axes("OIHW", conv.out_layout or "OIHW")
    return to_product_dtype(weight, grad, conv.out_dtype).transpose(axes)
