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
