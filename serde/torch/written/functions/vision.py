"""Boxes, regions of images, and what stays of boxes that overlap."""

from __future__ import annotations

import torch
from torch import Tensor

from serde.torch.written.functions.shape import integers


def suppress(corners: Tensor, threshold: float, limit: int) -> Tensor:
    """Return the boxes that stay, the best being first; a negative limit is none."""
    low = torch.minimum(corners[:, :2], corners[:, 2:])
    high = torch.maximum(corners[:, :2], corners[:, 2:])
    areas = (high - low).prod(1)
    gone = torch.zeros(corners.shape[0], dtype=torch.bool, device=corners.device)
    kept: list[int] = []
    for i in range(corners.shape[0]):
        if limit >= 0 and len(kept) >= limit:
            break
        if bool(gone[i]):
            continue
        kept.append(i)
        span = torch.minimum(high[i], high) - torch.maximum(low[i], low)
        common = span.clamp(min=0).prod(1)
        union = areas[i] + areas - common
        overlap = torch.where(union > 0, common / union, torch.zeros_like(common))
        gone = gone | (overlap >= threshold)
    return torch.tensor(kept, dtype=torch.int64, device=corners.device)


def suppress_classes(
    boxes: Tensor, scores: Tensor, limit: int, threshold: float, least: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows (image, class, box) that stay, scores, and counts of images."""
    rows: list[Tensor] = []
    marks: list[Tensor] = []
    counts: list[int] = []
    for image in range(boxes.shape[0]):
        count = 0
        for label in range(scores.shape[1]):
            column = scores[image, label]
            order = torch.argsort(column, descending=True, stable=True)
            order = order[column[order] > least]
            kept = order[suppress(boxes[image][order], threshold, limit)]
            names = torch.full_like(kept, label)
            rows.append(torch.stack([torch.full_like(kept, image), names, kept], dim=1))
            marks.append(column[kept])
            count += kept.shape[0]
        counts.append(count)
    return torch.cat(rows), torch.cat(marks), torch.tensor(counts, device=boxes.device)


def all_class_rows(
    boxes: Tensor, scores: Tensor, limit: Tensor, threshold: Tensor, least: Tensor
) -> tuple[Tensor, Tensor]:
    """Return rows (image, class, box), then zeros, and the number of rows."""
    most = int(limit) if int(limit) > 0 else -1
    rows, _, counts = suppress_classes(
        boxes, scores, most, float(threshold), float(least)
    )
    rest = scores.numel() - rows.shape[0]
    return torch.cat([rows, rows.new_zeros([rest, 3])]), counts.sum().reshape(1)


def all_class_images(
    boxes: Tensor, scores: Tensor, limit: Tensor, threshold: Tensor, least: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows (class, box) of each image, then zeros; scores; and counts."""
    most = int(limit) if int(limit) > 0 else -1
    rows, marks, counts = suppress_classes(
        boxes, scores, most, float(threshold), float(least)
    )
    size = scores.shape[1] * scores.shape[2]
    places = torch.zeros(
        [boxes.shape[0], size, 2], dtype=torch.int64, device=boxes.device
    )
    found = torch.zeros([boxes.shape[0], size], device=boxes.device)
    start = 0
    for image in range(boxes.shape[0]):
        count = int(counts[image])
        places[image, :count] = rows[start : start + count, 1:]
        found[image, :count] = marks[start : start + count].float()
        start += count
    return places, found, counts


def sample_places(
    start: Tensor, span: Tensor, bins: int, count: int, length: int
) -> tuple[Tensor, Tensor]:
    """Return where samples of each bin are inside the axis, and which count."""
    size = span / bins
    halves = torch.arange(count, device=start.device).to(start.dtype) + 0.5
    steps = torch.arange(bins, device=start.device).to(start.dtype).unsqueeze(1)
    at = (start + steps * size + halves * size / count).reshape(-1)
    return at.clamp(0, length - 1), (at >= -1) & (at <= length)


def read_between(x: Tensor, at: Tensor, axis: int) -> Tensor:
    """Return entries of an axis between its elements."""
    low = torch.floor(at).to(torch.int64)
    high = (low + 1).clamp(max=x.shape[axis] - 1)
    shape = [1] * x.dim()
    shape[axis] = -1
    share = (at - low).reshape(shape).to(x.dtype)
    return x.index_select(axis, low) * (1 - share) + x.index_select(axis, high) * share


def align_regions(
    x: Tensor,
    regions: Tensor,
    rows: int,
    columns: int,
    scale: float,
    samples: int,
    mean: bool,
) -> Tensor:
    """Return the mean, or the greatest, of samples in each bin of each region."""
    found: list[Tensor] = []
    images = x.double()
    work = regions.double() if x.dtype == torch.float64 else regions.float()
    for i in range(regions.shape[0]):
        left, top, right, bottom = (work[i, 1:] * scale).unbind(0)
        tall, wide = (bottom - top).clamp(min=1), (right - left).clamp(min=1)
        down = samples if samples > 0 else int(torch.ceil(tall / rows))
        across = samples if samples > 0 else int(torch.ceil(wide / columns))
        y, y_counts = sample_places(top, tall, rows, down, x.shape[2])
        z, z_counts = sample_places(left, wide, columns, across, x.shape[3])
        image = images[int(regions[i, 0])]
        read = read_between(read_between(image, y, 1), z, 2)
        inside = y_counts.unsqueeze(1) & z_counts
        read = torch.where(inside, read, torch.zeros_like(read))
        bins = read.reshape(-1, rows, down, columns, across)
        found.append(bins.mean((2, 4)) if mean else bins.amax((2, 4)))
    if len(found) == 0:
        return x.new_zeros([0, x.shape[1], rows, columns])
    return torch.stack(found).to(x.dtype)


def bin_edges(start: int, end: int, count: int, length: int, like: Tensor) -> Tensor:
    """Return the first elements of the bins of a region, and those behind the last."""
    size = torch.full([], max(end - start + 1, 1), dtype=like.dtype) / count
    edges = torch.arange(count + 1).to(like.dtype) * size
    low = (torch.floor(edges[:-1]).to(torch.int64) + start).clamp(0, length)
    high = (torch.ceil(edges[1:]).to(torch.int64) + start).clamp(0, length)
    return torch.stack([low, high])


def pool_regions(
    x: Tensor, regions: Tensor, rows: int, columns: int, scale: float
) -> Tensor:
    """Return the greatest element in each bin of each region, 0 in an empty one."""
    result = x.new_zeros([regions.shape[0], x.shape[1], rows, columns])
    work = regions.double() if x.dtype == torch.float64 else regions.float()
    for number in range(regions.shape[0]):
        scaled = work[number, 1:] * scale
        edges = integers(torch.sign(scaled) * torch.floor(scaled.abs() + 0.5))
        image = x[int(regions[number, 0])]
        across = bin_edges(edges[0], edges[2], columns, image.shape[2], work)
        down = bin_edges(edges[1], edges[3], rows, image.shape[1], work)
        for i in range(rows):
            top, bottom = int(down[0, i]), int(down[1, i])
            for j in range(columns):
                left, right = int(across[0, j]), int(across[1, j])
                if bottom > top and right > left:
                    part = image[:, top:bottom, left:right]
                    result[number, :, i, j] = part.amax((1, 2))
    return result


def align_boxes(
    x: Tensor,
    boxes: Tensor,
    images: Tensor,
    rows: int,
    columns: int,
    scale: float,
    samples: int,
    half_pixel: bool,
    mean: bool,
) -> Tensor:
    """Return the mean of samples in bins of boxes, or the greatest part of one."""
    found: list[Tensor] = []
    for number in range(boxes.shape[0]):
        edges = boxes[number].double() * scale - (0.5 if half_pixel else 0.0)
        left, top, right, bottom = edges.unbind(0)
        tall, wide = bottom - top, right - left
        if not half_pixel:
            tall, wide = tall.clamp(min=1), wide.clamp(min=1)
        down = samples if samples > 0 else int(torch.ceil(tall / rows))
        across = samples if samples > 0 else int(torch.ceil(wide / columns))
        if down < 1 or across < 1:
            found.append(x.new_zeros([x.shape[1], rows, columns]).double())
            continue
        y = top + (torch.arange(rows * down, device=x.device) + 0.5) * tall / (
            rows * down
        )
        z = left + (torch.arange(columns * across, device=x.device) + 0.5) * wide / (
            columns * across
        )
        inside = ((y >= -1) & (y <= x.shape[2])).unsqueeze(1)
        inside = inside & (z >= -1) & (z <= x.shape[3])
        y, z = y.clamp(0, x.shape[2] - 1), z.clamp(0, x.shape[3] - 1)
        image = x[int(images[number])].double()
        parts: list[Tensor] = []
        for i in range(2):
            row = (torch.floor(y) + i).clamp(max=x.shape[2] - 1)
            share = y - torch.floor(y) if i == 1 else 1 - (y - torch.floor(y))
            line = image.index_select(1, row.to(torch.int64)) * share.unsqueeze(1)
            for j in range(2):
                column = (torch.floor(z) + j).clamp(max=x.shape[3] - 1)
                part = z - torch.floor(z) if j == 1 else 1 - (z - torch.floor(z))
                read = line.index_select(2, column.to(torch.int64)) * part
                parts.append(torch.where(inside, read, torch.zeros_like(read)))
        whole = torch.stack(parts)
        read = whole.sum(0) if mean else whole.amax(0)
        bins = read.reshape(-1, rows, down, columns, across)
        found.append(bins.mean((2, 4)) if mean else bins.amax((2, 4)))
    if len(found) == 0:
        return x.new_zeros([0, x.shape[1], rows, columns])
    return torch.stack(found).to(x.dtype)
