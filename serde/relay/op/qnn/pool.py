"""Average pooling of quantised images."""

from __future__ import annotations

from functools import partial
from typing import Any as AnyValue

import numpy as np

from serde.relay.ir import Expr, Fusion, FusionPattern, Layout, Rescales, TensorType, tensor_type
from serde.relay.ir.registry import Arguments, Array, call, get, relay_op, sample, tensor
from serde.relay.ir.traits import Quantized
from serde.relay.ir.work import windows
from serde.relay.op.conv.windows import per_axis
from serde.relay.op.pool.reduction import Pooling
from serde.relay.op.pool.window import mean_of
from serde.relay.op.qnn.arithmetic import requantize_expr
from serde.relay.op.qnn.parameters import require_dtype, require_scalars, saturate, saturate_expr
from serde.relay.op.qnn.rescale import requantize

_USUAL = Pooling.usual(2)

_PARAMETERS = (
    np.array(0.1, np.float32),
    np.array(5, np.int32),
    np.array(0.07, np.float32),
    np.array(-3, np.int32),
)


def _avg_pool_type(data: TensorType, *parameters: TensorType, **attrs: AnyValue) -> TensorType:
    input_scale, input_zero_point, output_scale, output_zero_point = parameters
    require_dtype(data, ("int8", "uint8"), "data")
    require_scalars((input_scale, input_zero_point), (output_scale, output_zero_point))
    pooled = get("nn.avg_pool2d").infer(data, **attrs)
    return TensorType(pooled.shape, data.dtype)


def _as_avg_pool(data: Expr, *parameters: Expr, **attrs: AnyValue) -> Expr:
    mean = call("nn.avg_pool2d", requantize_expr(data, *parameters), **attrs)
    return saturate_expr(mean, tensor_type(data).dtype)


@relay_op(
    "qnn.avg_pool2d",
    traits=(
        windows("pool_size"), Layout(), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE), Quantized,
        Rescales,
    ),
    infer=_avg_pool_type,
    decompose=_as_avg_pool,
    samples=[
        sample(tensor((1, 2, 5, 6), "int8", low=-128, high=127), *_PARAMETERS, pool_size=(3, 2),
               strides=(2, 2), padding=(1, 0, 1, 0)),
        sample(tensor((1, 5, 6, 2), "uint8", low=0, high=255), *_PARAMETERS, pool_size=(2, 3),
               padding=(1, 1), layout="NHWC", count_include_pad=True),
    ],
    arguments=Arguments(
        order=("pool_size", "strides", "padding", "dilation", "ceil_mode", "count_include_pad"),
        defaults={"layout": "NHWC", "count_include_pad": True},
        convert=dict.fromkeys(("pool_size", "strides", "dilation"), partial(per_axis, rank=2)),
        required=("strides", "padding", "dilation"),
    ),
)  # fmt: skip
def avg_pool2d(
    data: Array, input_scale: Array, input_zero_point: Array, output_scale: Array,
    output_zero_point: Array,
    *, pool: Pooling = _USUAL, count_include_pad: bool = False,
) -> Array:  # fmt: skip
    """``y = trunc(nn.avg_pool2d(q))``, where q is the input requantized, as int32.

    Padding counts as the number 0, not as the zero point, as TVM computes it.
    """
    parameters = (input_scale, input_zero_point, output_scale, output_zero_point)
    level = requantize(data, *parameters, out_dtype=np.dtype(np.int32))
    mean = mean_of(2, level, pool, count_include_pad=count_include_pad)
    return saturate(mean, data.dtype)
