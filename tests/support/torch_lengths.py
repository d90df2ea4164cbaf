"""Programs of PyTorch on axes of any length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from support.torch_functions import sequences

F = torch.nn.functional

EXAMPLE, *OTHERS = sequences((7, 8, 4), (6, 9, 4), (12, 6, 4))

KEPT: dict[str, Callable[[Any], Any]] = {
    "view": lambda x: x.view(x.shape[0], -1),
    "view inferred": lambda x: x.view(-1, 2),
    "view swapped": lambda x: x.reshape(x.shape[1], x.shape[0], 4),
    "flatten": lambda x: x.flatten(0, 1),
    "flatten rest": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "heads": lambda x: (
        x.view(x.shape[0], x.shape[1], 2, 2).transpose(1, 2).reshape(x.shape[0] * 2, x.shape[1], 2)
    ),
    "all but the last": lambda x: x[:, : x.shape[1] - 1],
    "last two": lambda x: x[:, x.shape[1] - 2 :],
    "every second": lambda x: x[:, ::2],
    "select last": lambda x: x[:, -1],
    "select last but one": lambda x: x[:, -2],
    "tail": lambda x: x[:, 1:],
    "three from the end": lambda x: x[:, -3:],
    "three": lambda x: x[:, :3],
    "first of three axes": lambda x: x[:, :1].squeeze(1),
    "expand": lambda x: x[:, None].expand(x.shape[0], 3, x.shape[1], 4),
    "expand from one": lambda x: x[:1, :1].expand(x.shape[0], x.shape[1], 4),
    "expand as": lambda x: x[:, :1].expand_as(x),
    "positions": lambda x: torch.arange(x.shape[1])[None].expand(x.shape[0], x.shape[1]),
    "table": lambda x: torch.arange(64 * 4.0).view(64, 4)[: x.shape[1]] + x,
    "cat": lambda x: torch.cat([x, x[:, 1:]], 1),
    "cache": lambda x: torch.cat([torch.zeros(x.shape[0], 2, 4), x], 1)[:, -x.shape[1] :],
    "repeat": lambda x: x.repeat(x.shape[0], 1, 2),
    "tile": lambda x: x.tile(2, 1, 1),
    "repeat interleave": lambda x: x.repeat_interleave(2, 1),
    "repeat interleave by a length": lambda x: x[:1].repeat_interleave(x.shape[1], 0),
    "pad": lambda x: F.pad(x, (0, 0, 1, 2)),
    "pad by a length": lambda x: F.pad(x, (0, 0, 0, x.shape[0])),
    "pad reflected": lambda x: F.pad(x, (1, 1), mode="reflect"),
    "pad circular": lambda x: F.pad(x.permute(0, 2, 1), (1, 2), mode="circular"),
    "pad replicated": lambda x: F.pad(x.permute(0, 2, 1), (1, 2), mode="replicate"),
    "roll": lambda x: x.roll(2, 1),
    "roll flat": lambda x: x.roll(3),
    "flip": lambda x: x.flip(1),
    "stack": lambda x: torch.stack([x, x], 1),
    "chunk": lambda x: x.chunk(2, 2),
    "index by two": lambda x: x[torch.arange(x.shape[0]), torch.arange(x.shape[0]) % 3],
    "index known": lambda x: x[:, torch.tensor([0, -1])],
    "index apart": lambda x: x[torch.tensor([0, 1]), :, torch.tensor([1, 3])],
    "gather": lambda x: x.gather(1, torch.zeros(x.shape[0], 2, 4, dtype=torch.int64)),
    "argsort": lambda x: x.argsort(0, descending=True),
    "mask": lambda x: torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1),
    "scatter": lambda x: x.scatter(2, torch.tensor([[[0]]]).expand(x.shape[0], x.shape[1], 1), 1.0),
    "scatter add": lambda x: torch.zeros(x.shape[0], 8, 4).scatter_add(
        1, torch.zeros_like(x, dtype=torch.int64), x
    ),
    "index add": lambda x: x.index_add(1, torch.tensor([0, 1]), x[:, :2]),
    "index copy": lambda x: x.index_copy(1, torch.tensor([0, 1]), x[:, :2]),
    "index fill": lambda x: x.index_fill(1, torch.tensor([0, -1]), 3.0),
    "index put": lambda x: x.index_put((torch.tensor([0, 1]),), torch.tensor(2.0)),
    "index put two": lambda x: x.index_put(
        (torch.arange(x.shape[0]), torch.zeros(x.shape[0], dtype=torch.int64)), x[:, 1]
    ),
    "slice scatter": lambda x: torch.slice_scatter(x, x[:, :2] * 2, 1, 1, 3),
    "select scatter": lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, -1),
    "masked scatter": lambda x: x.masked_scatter(x > 0, torch.arange(3000.0)),
    "put": lambda x: x.put(torch.tensor([0, -1]), torch.tensor([1.0, 2.0])),
    "meshgrid": lambda x: torch.meshgrid(
        torch.arange(x.shape[0]), torch.arange(x.shape[1]), indexing="ij"
    ),
    "unfold": lambda x: x.unfold(1, 3, 1),
    "diagonal": lambda x: torch.diagonal(x @ x.transpose(1, 2), dim1=1, dim2=2),
    "narrow": lambda x: x.narrow(1, 1, x.shape[1] - 3),
    "maximum of all": lambda x: F.adaptive_max_pool1d(x.transpose(1, 2), 1, return_indices=True),
    "maxima": lambda x: F.max_pool1d_with_indices(x.transpose(1, 2), 2),
    "causal attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "masked attention": lambda x: F.scaled_dot_product_attention(x, x, x, x @ x.transpose(1, 2)),
    "deviation": lambda x: torch.std_mean(x, 1),
    "tensor of lengths": lambda x: torch.tensor([x.shape[0], 2]),
    "pixel shuffle": lambda x: F.pixel_shuffle(x.permute(2, 0, 1)[None], 2),
    "channel shuffle": lambda x: F.channel_shuffle(x.permute(2, 0, 1)[None], 2),
    "upsample": lambda x: F.interpolate(x[None], scale_factor=2),
    "upsample to a length": lambda x: F.interpolate(x[None], size=(x.shape[0] * 2, 8)),
    "bilinear": lambda x: F.interpolate(x[None], scale_factor=2.0, mode="bilinear"),
    "bilinear corners": lambda x: F.interpolate(
        x[None], scale_factor=2, mode="bilinear", align_corners=True
    ),
    "bicubic": lambda x: F.interpolate(x[None], scale_factor=1.5, mode="bicubic"),
}
"""Programs of which every length of the results is known by a symbol or a number."""

OPEN: dict[str, Callable[[Any], Any]] = {
    "nonzero": lambda x: (x > 0).nonzero(),
    "where": lambda x: torch.where(x > 0),
    "masked select": lambda x: x.masked_select(x > 0),
    "index by a mask": lambda x: x[x[:, :, 0] > 0],
    "unique": lambda x: torch.unique((x * 2).int()),
    "unique consecutive": lambda x: torch.unique_consecutive((x * 2).int(), dim=0),
}
"""Programs of which the values decide a length."""

FIRST = ("view", "heads", "table", "cache", "first of three axes", "expand", "index by two")
"""Programs that run with the other tests."""


def dims() -> dict[int, Any]:
    return {axis: torch.export.Dim(name, min=6, max=64) for axis, name in ((0, "n"), (1, "m"))}
