"""Convolution at learned places, each of which may be weighed, as ONNX's DeformConv has it."""

from __future__ import annotations

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import conv_dim, join_dim, require_float, require_same_dtype, require_window
from serde.relay.ir.dims import Dim
from serde.relay.ir.precision import widen
from serde.relay.ir.registry import Array, relay_op, sample
from serde.relay.ir.traits import Fusion, FusionPattern
from serde.relay.ir.types import TensorType
from serde.relay.ir.work import filters
from serde.relay.lowering.deformable import decompose_deform_conv2d
from serde.relay.op.image.grid import GridSample, grid_sample


def _deformed_type(
    data: TensorType, weight: TensorType, offset: TensorType, bias: TensorType | None,
    mask: TensorType | None,
    *, strides: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], groups: int,
    offset_groups: int,
) -> TensorType:  # fmt: skip
    """Offsets need two channels for each tap and offset group, the mask one."""
    require_float(data)
    require_same_dtype(data, weight, offset)
    if data.rank != 4 or weight.rank != 4 or offset.rank != 4:
        raise TypeInferenceError(f"expected images, found {data!r}, {weight!r}, {offset!r}")
    if len(padding) != 4 or len(strides) != 2 or len(dilation) != 2:
        raise TypeInferenceError("expected 4 pads, 2 strides and 2 dilations")
    join_dim(data.shape[1], weight.shape[1] * groups)
    taps = weight.shape[2] * weight.shape[3]
    shape: list[Dim] = []
    for axis in range(2):
        around = padding[axis] + padding[2 + axis]
        window = (weight.shape[2 + axis], strides[axis], around, dilation[axis])
        length = conv_dim(data.shape[2 + axis], *window)
        shape.append(join_dim(length, offset.shape[2 + axis]))
    batch = join_dim(data.shape[0], offset.shape[0])
    join_dim(offset.shape[1], taps * (2 * offset_groups))
    require_window(2, strides=strides, dilation=dilation)
    if bias is not None:
        if bias.rank != 1:
            raise TypeInferenceError(f"expected a bias for each channel, found {bias!r}")
        join_dim(bias.shape[0], weight.shape[0])
    if mask is not None:
        if mask.rank != 4:
            raise TypeInferenceError(f"expected a mask for each place, found {mask!r}")
        for found, wanted in zip(mask.shape, (batch, taps * offset_groups, *shape), strict=True):
            join_dim(found, wanted)
    return TensorType((batch, weight.shape[0], *shape), data.dtype)


def _regular(
    count: int, size: int, others: int, stride: int, pad: int, gap: int, axis: int
) -> Array:
    """Return where the taps of each window are along an axis, as ``(taps, places, 1)`` or so."""
    taps = np.arange(size) * gap
    taps = np.repeat(taps, others) if axis == 0 else np.tile(taps, others)
    steps = np.arange(count) * stride - pad
    shape = (1, -1, 1) if axis == 0 else (1, 1, -1)
    return taps.reshape(-1, 1, 1) + steps.reshape(shape).astype(np.float64)


@relay_op(
    "serde.deform_conv2d", traits=(filters(1, 16), Fusion(FusionPattern.OUT_ELEMWISE_FUSABLE),),
    infer=_deformed_type,
    decompose=decompose_deform_conv2d,
    samples=[
        sample((1, 4, 6, 5), (2, 4, 3, 3), (1, 18, 4, 3)),
        sample((2, 4, 6, 5), (6, 2, 2, 2), (2, 16, 3, 5), (6,), (2, 8, 3, 5), strides=(2, 1),
               dilation=(1, 2), padding=(0, 1, 1, 1), groups=2, offset_groups=2),
    ],
)  # fmt: skip
def deform_conv2d(
    data: Array, weight: Array, offset: Array, bias: Array | None, mask: Array | None,
    *, strides: tuple[int, ...] = (1, 1), padding: tuple[int, ...] = (0, 0, 0, 0),
    dilation: tuple[int, ...] = (1, 1), groups: int = 1, offset_groups: int = 1,
) -> Array:  # fmt: skip
    """``y[o, i] = sum_ck w[o, c, k] * mask[k, i] * x[c, p + offset[k, i]] + bias[o]``.

    With ``p = i * stride + k * dilation - padding`` (Zhu et al., 2018). Taps read between pixels,
    and zero outside the image, to which its edges fade. For each offset group and each tap
    `offset` has two channels, down and right, `mask` one.
    """
    batch, channels, *space = data.shape
    outputs, inputs, *kernel = weight.shape
    rows, columns = offset.shape[2:]
    parts, taps = batch * offset_groups, kernel[0] * kernel[1]
    shifts = widen(offset).astype(np.float64).reshape(parts, taps, 2, rows, columns)
    places = []
    for axis, count in enumerate((rows, columns)):
        window = (kernel[axis], kernel[1 - axis], strides[axis], padding[axis], dilation[axis])
        place = shifts[:, :, axis] + _regular(count, *window, axis)
        places.append((2 * place + 1) / space[axis] - 1)
    grid = np.stack(places[::-1], 1).reshape(parts, 2, taps * rows, columns)
    images = widen(data).reshape(parts, channels // offset_groups, *space)
    read = grid_sample(images, grid, sampling=GridSample(align_corners=False))
    if mask is not None:
        read = read * widen(mask).reshape(parts, 1, taps * rows, columns)
    table = read.reshape(batch, groups, inputs * taps, rows * columns)
    matrix = widen(weight).reshape(groups, outputs // groups, inputs * taps)
    result = np.matmul(matrix, table).reshape(batch, outputs, rows, columns)
    if bias is not None:
        result = result + widen(bias).reshape(-1, 1, 1)
    return result.astype(data.dtype, copy=False)
