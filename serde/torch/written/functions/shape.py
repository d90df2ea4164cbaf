"""Shapes, padding and slices."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def integers(x: Tensor) -> list[int]:
    """Return the integers of a vector."""
    values: list[int] = x.to(torch.int64).tolist()
    return values


def reshape_to(x: Tensor, shape: Tensor) -> Tensor:
    """Reshape to lengths of which 0 is that of the same axis."""
    lengths = integers(shape)
    for axis, length in enumerate(lengths):
        if length == 0:
            lengths[axis] = x.shape[axis]
    return x.reshape(lengths)


def insert_axes(x: Tensor, axis: Tensor, count: int) -> Tensor:
    """Insert axes of length 1 before an axis."""
    place = int(axis.item())
    if place < 0:
        place += x.dim() + 1
    for _ in range(count):
        x = x.unsqueeze(place)
    return x


def arange(start: Tensor, end: Tensor, step: Tensor) -> Tensor:
    """Return a range, an empty one where the end is not behind the start."""
    if start.is_floating_point():
        count = torch.ceil((end.double() - start.double()) / step.double())
    else:
        count = -torch.div(
            start.long() - end.long(), step.long(), rounding_mode="floor"
        )
    places = torch.arange(max(int(count.item()), 0), device=start.device)
    return (start + places * step).to(start.dtype)


def reverse_sequence(x: Tensor, lengths: Tensor, time: int, batch: int) -> Tensor:
    """Reverse the first steps of each sequence, as many as its length says."""
    moved = x.movedim([batch, time], [0, 1])
    steps = torch.arange(moved.shape[1], device=x.device)
    length = lengths.to(torch.int64).unsqueeze(1).clamp(max=moved.shape[1])
    places = torch.where(steps < length, length - 1 - steps, steps)
    rows = torch.arange(moved.shape[0], device=x.device).unsqueeze(1)
    return moved[rows, places].movedim([0, 1], [batch, time])


def pad_with(x: Tensor, widths: list[int], value: Tensor) -> Tensor:
    """Pad with a value that is computed; widths are those of ``F.pad``."""
    inside = F.pad(torch.ones_like(x, dtype=torch.bool), widths)
    return torch.where(inside, F.pad(x, widths), value)


def continue_axis(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """Pad an axis by its edge, or by its mirror image with the edge or without."""
    length = x.shape[axis]
    places = torch.arange(-before, length + after, device=x.device)
    if mode == "edge":
        places = places.clamp(0, length - 1)
    elif mode == "reflect":
        places = length - 1 - (length - 1 - places.abs()).abs()
    else:
        places = torch.where(places < 0, -1 - places, places)
        places = torch.where(places >= length, 2 * length - 1 - places, places)
    return x.index_select(axis, places)


def continue_axes(x: Tensor, widths: Tensor, mode: str) -> Tensor:
    """Pad every axis by its edge or its mirror image; widths are pairs."""
    sides = integers(widths.flatten())
    for axis in range(x.dim()):
        x = continue_axis(x, axis, sides[2 * axis], sides[2 * axis + 1], mode)
    return x


def slice_range(begin: int, end: int, step: int, length: int) -> Tensor:
    """Return the places that a slice of Python's names in an axis."""
    low = 0 if step > 0 else -1
    high = length if step > 0 else length - 1
    begin = max(begin + length, low) if begin < 0 else min(begin, high)
    end = max(end + length, low) if end < 0 else min(end, high)
    count = max((end - begin + step - (1 if step > 0 else -1)) // step, 0)
    return begin + torch.arange(count) * step


def slice_axes(
    x: Tensor, begin: Tensor, end: Tensor, steps: Tensor, axes: list[int], sizes: bool
) -> Tensor:
    """Slice axes as Python does; ends may be sizes, a negative one meaning all."""
    first, last, by = integers(begin), integers(end), integers(steps)
    for i, axis in enumerate(axes[: len(first)]):
        length = x.shape[axis]
        step = by[i] if i < len(by) and not sizes else 1
        stop = last[i]
        if sizes:
            stop = length if stop < 0 else first[i] + stop
        places = slice_range(first[i], stop, step, length).to(x.device)
        x = x.index_select(axis, places)
    return x
