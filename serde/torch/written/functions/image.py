"""Images read between pixels."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def floored_length(length: int, ratio: float) -> int:
    """Return a length times a factor, rounded down."""
    return math.floor(length * ratio)


def resize_places(
    length: int, size: int, mode: str, start: float, end: float, ratio: float
) -> Tensor:
    """Return where in an axis each result lies; a ratio above 0 counts itself."""
    x = torch.arange(size, dtype=torch.float64)
    wide = ratio * length if ratio > 0 else float(size)
    last = length - 1
    if mode == "align_corners":
        return torch.zeros_like(x) if wide == 1 else x * last / (wide - 1)
    if mode == "tf_crop_and_resize":
        if wide == 1:
            return torch.full_like(x, 0.5 * (start + end) * last)
        return start * last + x * ((end - start) * last) / (wide - 1)
    if mode == "asymmetric":
        return x / ratio if ratio > 0 else x * length / size
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / ratio if ratio > 0 else (2 * x + 1) * length / (2 * size)
    if mode == "pytorch_half_pixel" and wide == 1:
        return torch.full_like(x, -0.5 if ratio > 0 else 0.0)
    if ratio > 0:
        moved = (
            length / 2 * (1 - size / wide) if mode == "half_pixel_symmetric" else 0.0
        )
        return (x + 0.5) / ratio - 0.5 + moved
    return ((2 * x + 1) * length - size) / (2 * size)


def resize_nearest(
    x: Tensor, axis: int, places: Tensor, rounding: str, guard: float
) -> Tensor:
    """Take the nearest elements of an axis."""
    if rounding == "floor":
        near = torch.floor(places + guard)
    elif rounding == "ceil":
        near = torch.ceil(places - guard)
    elif rounding == "round_prefer_floor":
        near = torch.ceil(places - 0.5)
    elif rounding == "round_prefer_ceil":
        near = torch.floor(places + 0.5)
    else:
        near = torch.sign(places) * torch.floor(places.abs() + 0.5)
    index = near.clamp(0, x.shape[axis] - 1).to(torch.int64)
    return x.index_select(axis, index.to(x.device))


def resize_smooth(
    x: Tensor, axis: int, places: Tensor, cubic: bool, alpha: float, exclude: bool
) -> Tensor:
    """Weigh the two or four neighbours along an axis (Keys, 1981)."""
    whole = torch.floor(places)
    part = places - whole
    if cubic:
        offsets = [-1, 0, 1, 2]
        one, two = 1 - part, 2 - part
        far = 1 + part
        weights = [
            ((alpha * far - 5 * alpha) * far + 8 * alpha) * far - 4 * alpha,
            ((alpha + 2) * part - (alpha + 3)) * part * part + 1,
            ((alpha + 2) * one - (alpha + 3)) * one * one + 1,
            ((alpha * two - 5 * alpha) * two + 8 * alpha) * two - 4 * alpha,
        ]
    else:
        offsets = [0, 1]
        weights = [1 - part, part]
    last = x.shape[axis] - 1
    total = torch.zeros_like(part)
    if exclude:
        for i, offset in enumerate(offsets):
            index = whole + offset
            weights[i] = weights[i] * ((index >= 0) & (index <= last))
            total = total + weights[i]
    shape = [1] * x.dim()
    shape[axis] = -1
    result = torch.zeros([], dtype=x.dtype, device=x.device)
    for i, offset in enumerate(offsets):
        weight = weights[i] / total if exclude else weights[i]
        index = (whole + offset).clamp(0, last).to(torch.int64)
        found = x.index_select(axis, index.to(x.device))
        result = result + found * weight.reshape(shape).to(x)
    return result


def fill_beyond(
    x: Tensor, axis: int, places: Tensor, length: int, value: float
) -> Tensor:
    """Replace what was read beyond an axis."""
    shape = [1] * x.dim()
    shape[axis] = -1
    outside = ((places < 0) | (places > length - 1)).reshape(shape)
    return torch.where(outside.to(x.device), torch.full_like(x, value), x)
