"""Convolutions of quantised images, summed in integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, TensorType, get, relay_op, sample, tensor
from serde.relay.ir.traits import Fusion, FusionPattern, Layout, Quantized, Rescales
from serde.relay.ir.work import filters, spreads
from serde.relay.op.conv.direct import run_convolution
from serde.relay.op.conv.transposed import TRANSPOSED_ORDER, run_transposed
from serde.relay.op.conv.windows import Convolution, TransposedConvolution, window_arguments
from serde.relay.op.qnn.parameters import require_dtype, require_parameters
from serde.relay.op.qnn.product import (
    KERNEL_NAMES,
    completion,
    int8,
    require_kernel,
    require_out_dtype,
    sample_parameters,
    subtract_zero_point,
    uint8,
)
from serde.relay.op.qnn.sums import body_of_sums, channel_zero_point

_USUAL, _TRANSPOSED = Convolution.usual(2), TransposedConvolution.usual(2)


def _conv_type(
    name: str,
    data: TensorType,
    weight: TensorType,
    parameters: Sequence[TensorType],
    attrs: Mapping[str, AnyValue],
) -> TensorType:
    input_zero_point, weight_zero_point, input_scale, weight_scale = parameters
    result = get(name).infer(data, weight, **attrs)
    channels = result.shape[(attrs["out_layout"] or attrs["data_layout"]).index("C")]
    require_out_dtype(attrs["out_dtype"], ("int16", "int32", "int64"))
    require_kernel(weight_scale, weight_zero_point, channels, input_scale, input_zero_point)
    return TensorType(result.shape, result.dtype)


def _conv2d_type(
    data: TensorType, weight: TensorType, *parameters: TensorType, **attrs: AnyValue
) -> TensorType:
    require_dtype(data, ("int8", "uint8", "int16"), "data")
    require_dtype(weight, ("int8", "uint8", "int16"), "weight")
    return _conv_type("nn.conv2d", data, weight, parameters, attrs)


@relay_op(
    "qnn.conv2d",
    traits=(
        filters(),
        Layout("data_layout"),
        Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),
        Rescales,
        Quantized,
    ),
    infer=_conv2d_type,
    decompose=body_of_sums("qnn.conv2d"),
    complete=completion("nn.conv2d"),
    samples=[
        sample(
            uint8(1, 3, 6, 5),
            uint8(4, 3, 3, 2),
            *sample_parameters(120, 99, 0.25),
            padding=(1, 2, 0, 1),
            strides=(2, 1),
            out_dtype="int32",
        ),
        sample(
            int8(1, 3, 6, 5),
            int8(2, 3, 3, 3),
            *sample_parameters(-4, 0, [0.25, 0.5]),
            dilation=(2, 1),
            channels=2,
            kernel_size=(3, 3),
            out_dtype="int32",
        ),
        sample(
            uint8(1, 6, 6, 4),
            int8(3, 3, 2, 6),
            *sample_parameters(7, 0, 0.25),
            groups=2,
            data_layout="NHWC",
            kernel_layout="HWIO",
            padding=(1, 1),
            out_dtype="int64",
        ),
        sample(
            uint8(1, 3, 5, 5),
            uint8(3, 2, 3, 3),
            *sample_parameters(7, [1, 2, 3, 4, 5, 6], 0.25),
            groups=3,
            out_dtype="int32",
        ),
        sample(
            tensor((1, 3, 5, 5), "int16", low=-999, high=999),
            int8(2, 3, 3, 3),
            *sample_parameters(0, [1, 2], 0.25),
            out_dtype="int16",
        ),
    ],
    arguments=window_arguments(
        2,
        "strides",
        "dilation",
        "kernel_size",
        order=("kernel_size", "channels"),
        names={**KERNEL_NAMES, "weight": "kernel"},
        defaults={"out_dtype": "int32"},
        required=("kernel_size", "channels"),
    ),
)
def conv2d(
    data: Array, weight: Array, input_zero_point: Array, weight_zero_point: Array,
    input_scale: Array, weight_scale: Array,
    *, conv: Convolution = _USUAL,
) -> Array:  # fmt: skip
    """``nn.conv2d(data - input_zero_point, weight - weight_zero_point)`` in integers.

    Padding consists of the zero point.
    """
    zero = channel_zero_point(weight_zero_point, weight.shape, conv.kernel_layout)
    levels = subtract_zero_point(data, input_zero_point)
    return run_convolution(levels, subtract_zero_point(weight, zero), rank=2, conv=conv)


def _conv2d_transpose_type(
    data: TensorType, weight: TensorType, *parameters: TensorType, **attrs: AnyValue
) -> TensorType:
    input_zero_point, weight_zero_point, input_scale, weight_scale = parameters
    require_dtype(data, ("int8", "uint8", "int16", "uint16"), "data")
    require_dtype(weight, ("int8", "uint8"), "weight")
    # A vector of one number serves as a scalar here, as in TVM.
    require_parameters(input_scale, input_zero_point, None, "input_")
    if attrs["groups"] > 1 and weight_zero_point.rank and weight_zero_point.shape[0] != 1:
        raise TypeInferenceError("a zero point for each channel needs a weight of one group")
    parameters = (TensorType((), "int32"), weight_zero_point, TensorType(()), weight_scale)
    return _conv_type("nn.conv2d_transpose", data, weight, parameters, attrs)


@relay_op(
    "qnn.conv2d_transpose", traits=(spreads(), Layout("data_layout"), Rescales, Quantized),
    infer=_conv2d_transpose_type,
    decompose=body_of_sums("qnn.conv2d_transpose"),
    complete=completion("nn.conv2d_transpose"),
    samples=[
        sample(uint8(1, 3, 4, 5), uint8(3, 2, 3, 2),
               *sample_parameters(120, 99, 0.25), padding=(1, 0, 0, 1), strides=(2, 1),
               output_padding=(1, 0), out_dtype="int32"),
        sample(int8(1, 4, 4, 3), int8(2, 2, 2, 3),
               *sample_parameters(-4, [1, 2], [0.25, 0.5]), data_layout="NHWC",
               kernel_layout="HWOI", out_dtype="int32"),
    ],
    arguments=window_arguments(
        2, "strides", "dilation", "kernel_size", "output_padding",
        order=TRANSPOSED_ORDER,
        names=KERNEL_NAMES,
        defaults={"out_dtype": "int32"},
    ),
)  # fmt: skip
def conv2d_transpose(
    data: Array, weight: Array, input_zero_point: Array, weight_zero_point: Array,
    input_scale: Array, weight_scale: Array,
    *, conv: TransposedConvolution = _TRANSPOSED,
) -> Array:  # fmt: skip
    """``nn.conv2d_transpose(data - input_zero_point, weight - weight_zero_point)`` in integers."""
    zero = channel_zero_point(weight_zero_point, weight.shape, conv.kernel_layout, "I")
    levels = subtract_zero_point(data, input_zero_point.reshape(()))
    return run_transposed(levels, subtract_zero_point(weight, zero), rank=2, conv=conv)
