"""Transposed convolutions over one, two and three spatial axes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any as AnyValue

from serde.errors import TypeInferenceError
from serde.relay.ir import Arguments, Array, Dim, Layout, Linear, Sample, relay_op, sample
from serde.relay.ir.shapes import join_dim, require_window, split_padding, transposed_conv_dim
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import spreads
from serde.relay.op.conv.windows import (
    SPATIAL,
    TransposedConvolution,
    data_array,
    data_shape,
    kernel_size_of,
    per_axis,
    result_array,
    result_shape,
    transpose_convolve,
    weight_array,
    weight_in_layout,
    weight_shape,
    window_arguments,
)
from serde.relay.op.linalg.product import product_dtype, to_product_dtype

__all__ = ["TRANSPOSED_ORDER", "run_transposed"]


def _transposed_type(
    data: TensorType, weight: TensorType, *, rank: int, conv: TransposedConvolution
) -> TensorType:
    """Refuse padding that leaves an axis without elements."""
    dtype = product_dtype(data, weight, conv.out_dtype)
    require_window(rank, strides=conv.strides, dilation=conv.dilation)
    added = list(conv.output_padding)
    if len(added) != rank or any(extra < 0 for extra in added):
        raise TypeInferenceError(
            f"output_padding: expected {rank} numbers of 0 or more, found {added}"
        )
    before, after = split_padding(conv.padding, rank)
    batch, inputs, *space = data_shape(data, conv.data_layout, rank)
    shape = weight_shape(weight, conv.kernel_layout, rank, "I")
    kernel = kernel_size_of(shape, conv.kernel_size)
    outputs = _outputs(inputs, shape[0], shape[1], conv.groups, conv.channels)
    lengths: list[Dim] = []
    for axis in range(rank):
        both = before[axis] + after[axis]
        length = transposed_conv_dim(
            space[axis],
            kernel[axis],
            conv.strides[axis],
            both,
            conv.dilation[axis],
            conv.output_padding[axis],
        )
        if type(length) is int and length < 1:
            raise TypeInferenceError(f"padding {list(conv.padding)} leaves a length of {length}")
        lengths.append(length)
    result = (batch, outputs, *lengths)
    return TensorType(result_shape(result, conv.result_layout, rank), dtype)


def _outputs(
    inputs: Dim, weight_in: Dim, weight_out: Dim, groups: int, channels: Dim | None
) -> Dim:
    """Return the output channels: those of a group times the groups."""
    if groups < 1:
        raise TypeInferenceError(f"groups: expected a positive number, found {groups}")
    if type(inputs) is int and inputs % groups:
        raise TypeInferenceError(f"{inputs} input channels do not form {groups} groups")
    try:
        join_dim(inputs, weight_in)
    except TypeInferenceError:
        raise TypeInferenceError(
            f"a weight of {weight_in} input channels does not fit data of {inputs} channels"
        ) from None
    outputs = weight_out * groups
    if channels is None:
        return outputs
    try:
        return join_dim(outputs, channels)
    except TypeInferenceError:
        raise TypeInferenceError(
            f"channels is {channels}, but the weight makes {outputs}"
        ) from None


def _complete(
    data: TensorType | None, weight: TensorType | None, *, rank: int, **attrs: AnyValue
) -> tuple[TensorType | None, ...]:
    channels, kernel_size = attrs["channels"], attrs["kernel_size"]
    layout = attrs["kernel_layout"]
    known = data is not None and channels is not None and kernel_size is not None
    if weight is not None or data is None or not known or "G" in layout:
        return data, weight
    inputs = data_shape(data, attrs["data_layout"], rank)[1]
    wanted = (inputs, channels // attrs["groups"], *kernel_size)
    shape = weight_in_layout(wanted, layout, "IO" + SPATIAL[rank])
    return data, TensorType(shape, data.dtype)


def run_transposed(data: Array, weight: Array, *, rank: int, conv: TransposedConvolution) -> Array:
    """Return the transposed convolution of arrays in any layout."""
    x = data_array(data, conv.data_layout, rank)
    w = weight_array(weight, conv.kernel_layout, rank, "I")
    whole = transpose_convolve(x, w, conv.strides, conv.dilation, conv.groups, conv.output_padding)
    before, after = split_padding(conv.padding, rank)
    kept: tuple[AnyValue, ...] = tuple(
        slice(b, n - a) for n, b, a in zip(whole.shape[2:], before, after, strict=True)
    )
    total = to_product_dtype(whole[(slice(None), slice(None), *kept)], data, conv.out_dtype)
    return result_array(total, conv.result_layout, rank)


TRANSPOSED_ORDER = (
    "strides", "padding", "dilation", "groups", "channels", "kernel_size", "data_layout",
    "kernel_layout", "out_layout", "output_padding",
)  # fmt: skip
"""Attributes as TVM's builders have them."""


def _builder_arguments(rank: int) -> Arguments:
    # TVM leaves the padding of the form over one axis as it was given.
    arguments = window_arguments(
        rank, "strides", "dilation", "kernel_size", "output_padding",
        padding=rank > 1, order=TRANSPOSED_ORDER,
    )  # fmt: skip
    if rank > 1:
        return arguments
    return replace(arguments, convert={**arguments.convert, "output_padding": _one_number})


def _one_number(given: AnyValue) -> AnyValue:
    """Return the first number; of the form over one axis, TVM ignores others."""
    return per_axis(given, 1)[:1]


def _declare(rank: int, *samples: Sample) -> None:
    """Declare the transposed convolution over `rank` spatial axes."""
    usual = TransposedConvolution.usual(rank)

    @relay_op(
        f"nn.conv{rank}d_transpose",
        traits=(spreads(), Layout("data_layout"), Linear),
        infer=partial(_transposed_type, rank=rank),
        complete=partial(_complete, rank=rank),
        samples=samples,
        arguments=_builder_arguments(rank),
    )
    def conv_transpose(data: Array, weight: Array, *, conv: TransposedConvolution = usual) -> Array:
        """``y[o, i * stride + k * dilation - padding] += w[c, o, k] * x[c, i]`` over c, i and k.

        Along each axis the result is ``(n - 1) * stride + (k - 1) * dilation + 1 - padding +
        output_padding`` long, where padding is that of both sides.
        """
        return run_transposed(data, weight, rank=rank, conv=conv)


_declare(
    1,
    sample((2, 4, 5), (4, 3, 4), strides=(2,), padding=(1,), output_padding=(1,)),
    sample(
        (1, 5, 4),
        (3, 4, 2),
        groups=2,
        dilation=(2,),
        data_layout="NWC",
        kernel_layout="WIO",
        padding=(0, 2),
    ),
)
_declare(
    2,
    sample((1, 4, 5, 6), (4, 3, 3, 2), strides=(2, 3), padding=(1, 0, 0, 1), output_padding=(1, 2)),
    sample((2, 4, 3, 3), (4, 2, 3, 3), groups=2, dilation=(2, 1), channels=4, kernel_size=(3, 3)),
    sample((1, 3, 3, 4), (2, 2, 4, 3), data_layout="NHWC", kernel_layout="HWIO", out_layout="NCHW"),
    sample((1, 4, 3, 3), (2, 2, 3, 2, 2), groups=2, kernel_layout="GIOHW"),
)
_declare(
    3,
    sample((1, 4, 2, 3, 4), (4, 2, 3, 2, 2), strides=(2, 1, 2), padding=(1, 0, 0)),
    sample((1, 2, 3, 2, 4), (2, 2, 2, 4, 1), groups=2, data_layout="NDHWC", kernel_layout="DHWIO"),
)
