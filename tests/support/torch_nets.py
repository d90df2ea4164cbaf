"""PyTorch nets of the common kinds, small, with weights that are random but not degenerate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["NETS", "Net"]


class Residual(nn.Module):
    """Two convolutions of three by three, and a way around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(after)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(after)
        same = before == after and stride == 1
        around = nn.Conv2d(before, after, 1, stride, bias=False)
        self.around = nn.Identity() if same else nn.Sequential(around, nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(y)) + self.around(x))


class ResNet(nn.Module):
    """A stem, four stages and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        )
        self.pool = nn.MaxPool2d(3, 2, 1)
        widths = [8, 8, 16, 24, 32]
        self.stages = nn.Sequential(
            *(
                nn.Sequential(Residual(a, b, 1 if i == 0 else 2), Residual(b, b, 1))
                for i, (a, b) in enumerate(itertools.pairwise(widths))
            )
        )
        self.average = nn.AdaptiveAvgPool2d(1)
        self.classify = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        y = self.average(self.stages(self.pool(self.stem(x))))
        return self.classify(torch.flatten(y, 1))


class UNet(nn.Module):
    """Down twice, and up twice with what was there before: by a convolution and by pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.levels = nn.ModuleList([self.level(3, 6), self.level(6, 12), self.level(12, 24)])
        self.up = nn.ConvTranspose2d(24, 12, 2, 2)
        self.joined = nn.ModuleList([self.level(24, 12), self.level(18, 6)])
        self.out = nn.Conv2d(6, 2, 1)

    @staticmethod
    def level(before: int, after: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(3, after), nn.LeakyReLU(0.1),
            nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.SiLU(),
        )  # fmt: skip

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        first = self.levels[0](x)
        second = self.levels[1](functional.max_pool2d(first, 2, 2))
        third = self.levels[2](functional.avg_pool2d(second, 2, 2))
        y = self.joined[0](torch.cat([self.up(third), second], 1))
        y = functional.interpolate(y, size=first.shape[2:], mode="bilinear", align_corners=False)
        y = self.out(self.joined[1](torch.cat([y, first], 1)))
        return y, torch.softmax(y, 1)


class Attention(nn.Module):
    """Attention of several heads, all projections in one."""

    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        batch, length, width = x.shape
        parts = self.project(x).chunk(3, -1)
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in parts
        )
        y = functional.scaled_dot_product_attention(q, k, v, mask, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    """Attention and two dense layers, normalised before (GPT) or after (BERT)."""

    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.before = causal
        self.attention = Attention(width, heads, causal=causal)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        gelu = nn.GELU(approximate="tanh" if causal else "none")
        self.dense = nn.Sequential(nn.Linear(width, 4 * width), gelu, nn.Linear(4 * width, width))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.before:
            x = x + self.attention(self.norms[0](x), mask)
            return x + self.dense(self.norms[1](x))
        x = self.norms[0](x + self.attention(x, mask))
        return self.norms[1](x + self.dense(x))


class Bert(nn.Module):
    """An encoder with a mask of the tokens, and a pooled sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50, 32), nn.Embedding(24, 32)
        self.kinds = nn.Embedding(2, 32)
        self.norm = nn.LayerNorm(32, eps=1e-12)
        self.layers = nn.ModuleList(Layer(32, 4, causal=False) for _ in range(2))
        self.pool = nn.Linear(32, 32)

    def forward(self, ids: Tensor, mask: Tensor, kinds: Tensor) -> tuple[Tensor, Tensor]:
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.places(places) + self.kinds(kinds))
        seen = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, seen)
        return x, torch.tanh(self.pool(x[:, 0]))


class Gpt(nn.Module):
    """A decoder that shares its embedding with its head, and the best three next tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.places = nn.Parameter(torch.zeros(1, 24, 32))
        self.layers = nn.ModuleList(Layer(32, 4, causal=True) for _ in range(2))
        self.norm = nn.LayerNorm(32)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        x = self.words(ids) * math.sqrt(32) + self.places[:, : ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        logits = self.norm(x) @ self.words.weight.T
        return logits, torch.topk(logits[:, -1], 3).indices


class Lstm(nn.Module):
    """Tokens through two layers in both directions, the last states beside the sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 12)
        self.layers = nn.LSTM(12, 10, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(20, 5)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        y, (h, _) = self.layers(self.words(ids))
        return self.out(y).log_softmax(-1), h


class Gru(nn.Module):
    """A sequence through one layer with a given state, and an attention over its steps."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(6, 8)
        self.score = nn.Linear(8, 1)

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        y, _ = self.layer(x.transpose(0, 1), state.unsqueeze(0))
        return (torch.softmax(self.score(y), 0) * y).sum(0)


@dataclass(frozen=True)
class Net:
    """A net, and inputs for it.

    Attributes:
        make: Makes it.
        inputs: Makes inputs for a batch and a length.
        axes: For each input the names of its dynamic axes.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[int, int], tuple[Tensor, ...]]
    axes: dict[str, dict[int, str]]

    def built(self) -> nn.Module:
        """The net with weights and statistics of the usual size."""
        torch.manual_seed(3)
        net = self.make().eval()
        for name, value in [*net.named_parameters(), *net.named_buffers()]:
            if name.endswith("running_var") or ("norm" in name and name.endswith("weight")):
                value.data.uniform_(0.5, 1.5)
            elif value.dtype.is_floating_point and value.dim() < 2:
                value.data.uniform_(-0.2, 0.2)
        return net


def _ids(batch: int, length: int) -> Tensor:
    return torch.randint(0, 50, (batch, length))


def _image(batch: int, length: int) -> tuple[Tensor]:
    return (torch.randn(batch, 3, 4 * length, 4 * length),)


def _sentence(batch: int, length: int) -> tuple[Tensor, ...]:
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[:, length - 2 :] = 0
    return _ids(batch, length), mask, torch.randint(0, 2, (batch, length))


_SENTENCE = {0: "batch", 1: "length"}

NETS = {
    "resnet": Net(ResNet, _image, {"x": {0: "batch"}}),
    "unet": Net(UNet, _image, {"x": {0: "batch"}}),
    "bert": Net(Bert, _sentence, dict.fromkeys(("ids", "mask", "kinds"), _SENTENCE)),
    "gpt": Net(Gpt, lambda n, length: (_ids(n, length),), {"ids": _SENTENCE}),
    "lstm": Net(Lstm, lambda n, length: (_ids(n, length),), {"ids": {0: "batch"}}),
    "gru": Net(
        Gru,
        lambda n, length: (torch.randn(n, length, 6), torch.randn(n, 8)),
        {key: {0: "batch"} for key in ("x", "state")},
    ),
}
"""The nets by name."""
