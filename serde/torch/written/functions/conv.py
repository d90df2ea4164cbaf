"""Convolutions that PyTorch lacks."""

from __future__ import annotations

import torch
from torch import Tensor


def deformable_conv2d(
    x: Tensor,
    offset: Tensor,
    weight: Tensor,
    strides: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    offset_groups: int,
) -> Tensor:
    """Convolve with taps that are moved by offsets, bilinearly between pixels."""
    count, channels, height, width = x.shape
    outputs, inputs, tall, wide = weight.shape
    rows, columns = offset.shape[2], offset.shape[3]
    taps = tall * wide
    shifts = offset.reshape(count, offset_groups, taps, 2, rows, columns)
    across = torch.arange(taps, device=x.device)
    down = torch.div(across, wide, rounding_mode="floor") * dilation[0]
    right = across % wide * dilation[1]
    y = torch.arange(rows, device=x.device) * strides[0] - padding[0]
    z = torch.arange(columns, device=x.device) * strides[1] - padding[1]
    y = shifts[:, :, :, 0] + (down[:, None, None] + y[:, None])
    z = shifts[:, :, :, 1] + (right[:, None, None] + z)
    inside = (y >= 0) & (y < height) & (z >= 0) & (z < width)
    images = x.reshape(count, offset_groups, channels // offset_groups, height * width)
    top, left = torch.floor(y), torch.floor(z)
    read = torch.zeros([1], dtype=x.dtype, device=x.device)
    for i in range(2):
        for j in range(2):
            row, column = top + i, left + j
            share = (1 - torch.abs(y - row)) * (1 - torch.abs(z - column))
            share = share * (inside & (row < height) & (column < width))
            place = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
            place = place.to(torch.int64).flatten(2).unsqueeze(2)
            place = place.expand(-1, -1, images.shape[2], -1)
            found = torch.gather(images, 3, place)
            read = read + found * share.flatten(2).unsqueeze(2)
    table = read.reshape(count, groups, inputs * taps, rows * columns)
    matrix = weight.reshape(groups, outputs // groups, inputs * taps)
    return torch.matmul(matrix, table).reshape(count, outputs, rows, columns)
