"""Convolution of each channel over what is past alone, which goes on from step to step."""

from __future__ import annotations

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, TensorType, Tuple, const, tensor_type, widen
from serde.relay.ir.registry import Array, call, relay_op, sample, tensor
from serde.relay.ir.shapes import join_dim, require_float, require_same_dtype
from serde.relay.ir.work import filters


def _causal_type(
    data: TensorType,
    weight: TensorType,
    bias: TensorType | None,
    state: TensorType | None,
    *,
    activate: bool,
) -> tuple[TensorType, TensorType]:
    require_float(data)
    given = [x for x in (data, weight, bias, state) if x is not None]
    dtype = require_same_dtype(*given)
    if [x.rank for x in given] != [1 if x is bias else 3 for x in given]:
        raise TypeInferenceError(f"expected tensors of rank 3, and a bias, found {given!r}")
    channels = join_dim(data.shape[1], weight.shape[0])
    join_dim(weight.shape[1], 1)
    if bias is not None:
        channels = join_dim(channels, bias.shape[0])
    if weight.shape[2] == 0:
        raise TypeInferenceError(f"{weight!r} has no elements")
    kept: list[Dim] = [data.shape[0], channels, weight.shape[2] - 1]
    if state is not None:
        kept = [join_dim(a, b) for a, b in zip(kept, state.shape, strict=True)]
    return TensorType((kept[0], kept[1], data.shape[2]), dtype), TensorType(kept, dtype)


def _decompose_causal(
    data: Expr, weight: Expr, bias: Expr | None, state: Expr | None, *, activate: bool
) -> Expr:
    channels, _, size = tensor_type(weight).shape
    if not isinstance(channels, int) or not isinstance(size, int):
        raise TypeInferenceError(f"needs a fixed shape to convolve with, found {weight.type!r}")
    if state is None:
        before = ((0, 0), (0, 0), (size - 1, 0))
        whole: Expr = call("nn.pad", data, const(0.0, tensor_type(data).dtype), pad_width=before)
    else:
        whole = call("concatenate", [state, data], axis=2)
    found = call(
        "nn.conv1d", whole, weight, groups=channels, channels=channels, kernel_size=(size,)
    )
    if bias is not None:
        found = call("nn.bias_add", found, bias, axis=1)
    if activate:
        found = call("serde.silu", found)
    begin, end = (1 - size, (1 << 31) - 1) if size > 1 else (0, 0)
    last = call("strided_slice", whole, begin=(begin,), end=(end,), strides=(1,), axes=(2,))
    return Tuple([found, last])


@relay_op(
    "serde.causal_conv1d",
    traits=(filters(),),
    infer=_causal_type,
    decompose=_decompose_causal,
    samples=[
        sample((2, 3, 5), (3, 1, 4)),
        sample((2, 3, 2), (3, 1, 4), (3,), (2, 3, 3), activate=True),
        sample((1, 2, 4), (2, 1, 2), None, (1, 2, 1)),
        sample(tensor((1, 2, 4), "float16"), tensor((2, 1, 3), "float16"), activate=True),
    ],
)
def causal_conv1d(
    data: Array, weight: Array, bias: Array | None, state: Array | None, *, activate: bool = False
) -> tuple[Array, Array]:
    """``y[t] = bias + sum over j of weight[j] * x[t - k + 1 + j]``; what is before is `state`.

    Source: CausalConvWithState of ONNX 27.

    Args:
        data: (batch, channels, length).
        weight: (channels, 1, k).
        bias: (channels,).
        state: (batch, channels, k - 1); zeros if None.
        activate: Whether ``y * sigmoid(y)`` comes behind.

    Returns:
        A tensor of the shape of `data`, and the last k - 1 inputs, those of `state` included.
    """
    size = weight.shape[2]
    if state is None:
        state = np.zeros((*data.shape[:2], size - 1), data.dtype)
    whole = np.concatenate([state, data], axis=2)
    pieces = np.lib.stride_tricks.sliding_window_view(widen(whole), size, axis=2)
    found = np.einsum("bctk,ck->bct", pieces, widen(weight)[:, 0])
    if bias is not None:
        found = found + widen(bias)[:, None]
    if activate:
        found = found / (1 + np.exp(-found))
    return found.astype(data.dtype), whole[:, :, data.shape[2] :]
