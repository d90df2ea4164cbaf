"""Entries at indices, order, and running sums."""

from __future__ import annotations

import torch
from torch import Tensor


def gather_batched(x: Tensor, indices: Tensor, batch: int) -> Tensor:
    """Return slices at indices along the last axis, behind axes that both share."""
    lengths = x.shape[batch : batch + indices.shape[-1]]
    flat = torch.zeros_like(indices[..., 0])
    for axis, length in enumerate(lengths):
        place = indices[..., axis]
        flat = flat * length + torch.where(place < 0, place + length, place)
    shape = list(indices.shape[:-1]) + list(x.shape[batch + indices.shape[-1] :])
    shared = list(x.shape[:batch])
    size = 1
    for length in shape[len(indices.shape) - 1 :]:
        size = size * length
    count = 1
    for length in lengths:
        count = count * length
    rows = x.reshape(shared + [count, size])
    chosen = flat.to(torch.int64).reshape(shared + [-1, 1])
    chosen = chosen.expand(shared + [chosen.shape[batch], size])
    return torch.gather(rows, batch, chosen).reshape(shape)


def reduce_at(x: Tensor, indices: Tensor, updates: Tensor, reduction: str) -> Tensor:
    """Accumulate updates at indices, which lie along the first axis."""
    depth = indices.shape[0]
    flat = torch.zeros_like(indices[0])
    count = 1
    for axis in range(depth):
        flat = flat * x.shape[axis] + indices[axis] % x.shape[axis]
        count = count * x.shape[axis]
    rows = x.reshape([count, -1])
    given = updates.reshape([-1, rows.shape[1]])
    places = flat.reshape([-1, 1]).expand(given.shape)
    return rows.scatter_reduce(0, places, given, reduction).reshape(x.shape)


def first_sorted(
    x: Tensor, k: Tensor, axis: int, descending: bool
) -> tuple[Tensor, Tensor]:
    """Return the first elements in order and their places; all where k is below one."""
    count = int(k.item())
    values, places = torch.sort(x, dim=axis, descending=descending, stable=True)
    if count < 1:
        return values, places
    return values.narrow(axis, 0, count), places.narrow(axis, 0, count)


def shift_scan(x: Tensor, axis: int, identity: int) -> Tensor:
    """Return a running result without its own elements: moved on by one."""
    count = min(x.shape[axis], 1)
    first = torch.full_like(x.narrow(axis, 0, count), identity)
    return torch.cat([first, x.narrow(axis, 0, x.shape[axis] - count)], dim=axis)


def unique_entries(
    x: Tensor, axis: int, ordered: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return distinct entries, their first places, which each entry is, and counts."""
    values, inverse, counts = torch.unique(
        x, sorted=True, return_inverse=True, return_counts=True, dim=axis
    )
    places = torch.arange(inverse.shape[0], device=x.device)
    first = torch.full_like(counts, inverse.shape[0])
    first = first.scatter_reduce(0, inverse, places, "amin")
    if not ordered:
        order = torch.argsort(first)
        values = values.index_select(axis, order)
        first, counts = first[order], counts[order]
        inverse = torch.argsort(order)[inverse]
    return values, first, inverse, counts


def unique_padded(
    x: Tensor, ordered: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return distinct entries as long as the vector, and their number."""
    values, first, inverse, counts = unique_entries(x, 0, ordered)
    number = values.shape[0]
    rest = x.shape[0] - number
    return (
        torch.cat([values, values.new_zeros([rest])]),
        torch.cat([first, first.new_zeros([rest])]).to(torch.int32),
        inverse.to(torch.int32),
        torch.full([1], number, dtype=torch.int32, device=x.device),
        torch.cat([counts, counts.new_zeros([rest])]).to(torch.int32),
    )
