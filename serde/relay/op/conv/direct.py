"""Convolutions over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any as AnyValue

from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Array, Dim, Layout, Linear, Sample, relay_op, sample, tensor
from serde.relay.ir.shapes import conv_dim, join_dim, require_window, split_padding
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import filters
from serde.relay.op.conv.windows import (
    SPATIAL,
    Convolution,
    convolve,
    data_array,
    data_shape,
    kernel_size_of,
    pad_sides,
    result_array,
    result_shape,
    weight_array,
    weight_in_layout,
    weight_shape,
    window_arguments,
)
from serde.relay.op.linalg.product import product_dtype, to_product_dtype

__all__ = ["complete_conv", "convolution_type", "run_convolution"]


def convolution_type(
    data: TensorType, weight: TensorType, *, rank: int, conv: Convolution
) -> TensorType:
    """Return the type of a convolution over `rank` spatial axes."""
    dtype = product_dtype(data, weight, conv.out_dtype)
    require_window(rank, strides=conv.strides, dilation=conv.dilation)
    before, after = split_padding(conv.padding, rank)
    batch, inputs, *space = data_shape(data, conv.data_layout, rank)
    shape = weight_shape(weight, conv.kernel_layout, rank)
    kernel = kernel_size_of(shape, conv.kernel_size)
    outputs = _outputs(inputs, shape, conv.groups)
    if conv.channels is not None:
        try:
            outputs = join_dim(outputs, conv.channels)
        except TypeInferenceError:
            raise TypeInferenceError(
                f"channels is {conv.channels}, but the weight makes {outputs}"
            ) from None
    lengths = [
        conv_dim(n, k, s, b + a, d)
        for n, k, s, b, a, d in zip(
            space, kernel, conv.strides, before, after, conv.dilation, strict=True
        )
    ]
    result = (batch, outputs, *lengths)
    return TensorType(result_shape(result, conv.result_layout, rank), dtype)


def _outputs(inputs: Dim, shape: Sequence[Dim], groups: int) -> Dim:
    """Return the output channels; a weight of (C, M, ...) with C groups makes C times M."""
    if groups < 1:
        raise TypeInferenceError(f"groups: expected a positive number, found {groups}")
    outputs, inner = shape[0], shape[1]
    if groups > 1 and inner != 1 and _may_be(inputs, groups) and _may_be(outputs, groups):
        certain = inputs == groups and (outputs == groups or type(inner) is int)
        return groups * inner if certain else Any()
    if type(outputs) is int and outputs % groups:
        raise TypeInferenceError(f"{outputs} output channels do not form {groups} groups")
    if type(inputs) is int and inputs % groups:
        raise TypeInferenceError(f"{inputs} input channels do not form {groups} groups")
    try:
        join_dim(inputs // groups, inner)
    except TypeInferenceError:
        raise TypeInferenceError(
            f"a weight of {inner} input channels a group does not fit data of {inputs} channels "
            f"in {groups} groups"
        ) from None
    return outputs


def _may_be(length: Dim, value: int) -> bool:
    return length == value or type(length) is not int


def complete_conv(
    data: TensorType | None,
    *, rank: int, groups: int, channels: Dim | None, kernel_size: Sequence[int] | None,
    data_layout: str, kernel_layout: str,
) -> TensorType | None:  # fmt: skip
    """Return the type of a weight that has none, where the attributes say it."""
    if data is None or channels is None or kernel_size is None or "G" in kernel_layout:
        return None
    inputs = data_shape(data, data_layout, rank)[1]
    wanted = (channels, inputs // groups, *kernel_size)
    return TensorType(weight_in_layout(wanted, kernel_layout, "OI" + SPATIAL[rank]), data.dtype)


def run_convolution(data: Array, weight: Array, *, rank: int, conv: Convolution) -> Array:
    """Return the convolution of arrays in any layout."""
    x = data_array(data, conv.data_layout, rank)
    w = weight_array(weight, conv.kernel_layout, rank)
    if conv.groups > 1 and x.shape[1] == conv.groups and w.shape[0] == conv.groups:
        w = w.reshape(-1, 1, *w.shape[2:])
    padded = pad_sides(x, *split_padding(conv.padding, rank))
    total = to_product_dtype(
        convolve(padded, w, conv.strides, conv.dilation, conv.groups), data, conv.out_dtype
    )
    return result_array(total, conv.result_layout, rank)


_COMPLETED_FROM = ("groups", "channels", "kernel_size", "data_layout", "kernel_layout")


def _complete(
    data: TensorType | None, weight: TensorType | None, *, rank: int, **attrs: AnyValue
) -> tuple[TensorType | None, ...]:
    if weight is not None:
        return data, weight
    given = {name: attrs[name] for name in _COMPLETED_FROM}
    return data, complete_conv(data, rank=rank, **given)


def _declare(rank: int, *samples: Sample) -> None:
    """Declare the convolution over `rank` spatial axes."""
    usual = Convolution.usual(rank)

    @relay_op(
        f"nn.conv{rank}d",
        traits=(filters(), Layout("data_layout"), Linear),
        infer=partial(convolution_type, rank=rank),
        complete=partial(_complete, rank=rank),
        samples=samples,
        arguments=window_arguments(rank, "strides", "dilation", "kernel_size"),
    )
    def conv(data: Array, weight: Array, *, conv: Convolution = usual) -> Array:
        """``y[o, i] = sum_ck w[o, c, k] * x[c, i * stride + k * dilation - padding]``.

        `padding` is one number, one for each axis, or all of before and then all of after. With
        as many `groups` as channels a weight may have several outputs a channel as its second
        axis.
        """
        return run_convolution(data, weight, rank=rank, conv=conv)


_declare(
    1,
    sample((2, 3, 11), (4, 3, 3), strides=(2,), padding=(2, 1)),
    sample((2, 11, 4), (3, 2, 6), dilation=(2,), groups=2, data_layout="NWC", kernel_layout="WIO"),
    sample((1, 4, 9), (4, 2, 3), groups=4),
)
_declare(
    2,
    sample((2, 3, 9, 8), (4, 3, 3, 2), strides=(2, 1), padding=(1, 2, 0, 1), dilation=(1, 2)),
    sample((1, 4, 6, 6), (6, 2, 3, 3), groups=2, channels=6, kernel_size=(3, 3)),
    sample((1, 4, 6, 6), (4, 1, 3, 3), groups=4, padding=(1,)),
    sample((1, 6, 6, 4), (3, 3, 4, 2), groups=4, data_layout="NHWC", kernel_layout="HWOI"),
    sample((5, 6, 3, 2), (3, 3, 3, 4), data_layout="HWCN", kernel_layout="HWIO", out_layout="NCHW"),
    sample((1, 5, 6, 4), (2, 3, 2, 3, 3), groups=2, data_layout="NHWC", kernel_layout="GOIHW"),
    sample(
        tensor((1, 3, 5, 5), "int8", low=-128, high=127),
        tensor((2, 3, 3, 3), "int8", low=-128, high=127),
        out_dtype="int32",
    ),
    sample(tensor((1, 3, 5, 5), "float16"), tensor((2, 3, 1, 1), "float16")),
    sample((1, 4, 5, 5), (2, 2, 3, 3), groups=2),
)
_declare(
    3,
    sample((1, 2, 4, 5, 6), (3, 2, 2, 3, 3), padding=(1, 0, 1, 0, 1, 0), strides=(1, 2, 1)),
    sample(
        (1, 4, 5, 6, 2),
        (2, 2, 2, 1, 4),
        groups=2,
        data_layout="NDHWC",
        kernel_layout="DHWIO",
        dilation=(1, 2, 1),
    ),
)
