"""PyTorch modules that apply one kind of operator after the other, each to the same tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = [
    "Activations",
    "Embeddings",
    "Indexing",
    "Joining",
    "Logic",
    "Masks",
    "Norms",
    "Numbers",
    "Ordering",
    "Pooling",
    "Products",
    "Reductions",
    "Resizing",
    "Sampling",
    "Scattering",
    "Selecting",
    "Shapes",
    "Spectra",
    "Together",
]


class Together(nn.Module):
    """The results of several functions of the same tensors."""

    def __init__(self, *functions: Callable[..., Tensor]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, *x: Tensor) -> tuple[Tensor, ...]:
        return tuple(function(*x) for function in self.functions)


class Activations(nn.Module):
    """Every activation, each behind a convolution of its own."""

    def __init__(self, kinds: Sequence[nn.Module]) -> None:
        super().__init__()
        self.before = nn.ModuleList(nn.Conv2d(4, 4, 1) for _ in kinds)
        self.kinds = nn.ModuleList(kinds)

    def forward(self, x: Tensor) -> Tensor:
        pairs = zip(self.before, self.kinds, strict=True)
        return torch.stack([kind(before(x)) for before, kind in pairs])


class Norms(nn.Module):
    """Every normalisation of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.ModuleList([
            nn.BatchNorm2d(6), nn.InstanceNorm2d(6, affine=True), nn.InstanceNorm2d(6),
            nn.GroupNorm(3, 6), nn.GroupNorm(1, 6), nn.LayerNorm([6, 5, 4]), nn.LayerNorm(4),
            nn.LocalResponseNorm(3, 0.1, 0.7, 2.0), nn.BatchNorm2d(6, affine=False),
        ])  # fmt: skip

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        found = [kind(x) for kind in self.kinds]
        found.append(functional.normalize(x, dim=1))
        found.append(functional.normalize(x, p=1.0, dim=2))
        return torch.stack(found), functional.cosine_similarity(x, x.flip(1), dim=1)


class Pooling(nn.Module):
    """Windows of every kind over an image."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return (
            functional.max_pool2d(x, 3, 2, 1),
            functional.max_pool2d(x, (2, 3), (1, 2), ceil_mode=True),
            functional.avg_pool2d(x, 3, 2, 1),
            functional.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            functional.avg_pool2d(x, (3, 2), ceil_mode=True),
            functional.adaptive_avg_pool2d(x, (3, 2)),
            functional.adaptive_avg_pool2d(x, 1),
            functional.adaptive_max_pool2d(x, (3, 4)),
            functional.max_pool1d(x[:, :, 0], 3, 2, 1),
            functional.avg_pool1d(x[:, :, 0], 4, 3),
        )


class Resizing(nn.Module):
    """An image made larger and smaller.

    Args:
        fraction: Whether some factors are no integers.
    """

    def __init__(self, *, fraction: bool = True) -> None:
        super().__init__()
        self.fraction = fraction

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        resize = functional.interpolate
        whole = (
            resize(x, scale_factor=2, mode="nearest"),
            resize(x, scale_factor=3, mode="bilinear", align_corners=False),
            resize(x, scale_factor=2, mode="bilinear", align_corners=True),
        )
        if not self.fraction:
            return whole
        return (
            *whole,
            resize(x, size=(12, 9), mode="nearest"),
            resize(x, size=(4, 3), mode="bilinear", align_corners=False),
            resize(x, scale_factor=1.5, mode="bilinear", recompute_scale_factor=True),
        )


class Indexing(nn.Module):
    """Parts of a tensor, by slices and by indices."""

    def forward(self, x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        wide = i[:, None].expand(-1, 5)
        return (
            x[1:4], x[:, ::2], x[-3:, 1:-1], x[..., 2], x[2, :, None], x.select(1, 3),
            x.narrow(0, 1, 2), torch.index_select(x, 0, i), x[i], x[i, i], x[:, i.clamp(max=2)],
            torch.gather(x, 0, wide), x.flip(0, 1),
            torch.roll(x, 2, 1), x[::3].unbind(0)[1],
            x.split([2, 4])[1], x.chunk(3)[2],
        )  # fmt: skip


class Scattering(nn.Module):
    """Tensors with parts of them replaced."""

    def forward(self, x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        wide = i[:, None].expand(-1, 5)
        part = x[: i.shape[0]] * 2.0
        filled = x.clone()
        filled[1:3, ::2] = 7.0
        put = x.clone()
        put[i] = part
        rows = x.clone()
        rows[2] = part[0]
        return (
            x.scatter(0, wide, part), x.scatter_add(0, wide, part), filled, put, rows,
            torch.index_put(x, (i, i), part[:, 0], accumulate=True), x.scatter(0, wide, 2.5),
        )  # fmt: skip


class Masks(nn.Module):
    """Tensors where something holds, and something else elsewhere."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        marks = x > 0.2
        return (
            x.masked_fill(marks, -3.0), torch.where(marks, x, x * 0.1), torch.tril(x),
            torch.triu(x, 1), torch.tril(x, -1), x * marks.to(x.dtype),
            torch.where(x.abs() < 0.5, 1.0, x),
        )  # fmt: skip


class Ordering(nn.Module):
    """The largest, the smallest and the order of them."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        best, where = torch.topk(x, 3, dim=-1)
        least, _ = torch.topk(x, 2, dim=0, largest=False)
        ordered, places = torch.sort(x, dim=1, descending=True)
        most, most_at = x.max(1)
        fewest, fewest_at = x.min(0)
        return (
            best, where, least, ordered, places, torch.argsort(x, 0), x.argmax(1), x.argmin(0),
            most, most_at, fewest, fewest_at, x.cumsum(1),
        )  # fmt: skip


class Embeddings(nn.Module):
    """Words and kinds, one of them as a vector of ones and zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.kinds = nn.Embedding(20, 8), nn.Embedding(4, 8, padding_idx=0)

    def forward(self, ids: Tensor, kinds: Tensor) -> tuple[Tensor, Tensor]:
        marks = functional.one_hot(kinds, 4).to(torch.float32)
        return self.words(ids) + self.kinds(kinds), marks @ self.kinds.weight


class Products(nn.Module):
    """Products of matrices, of every rank, and sums of products by name."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.pair = nn.Linear(4, 5), nn.Bilinear(4, 4, 3)
        self.weight = nn.Parameter(torch.zeros(4, 6))

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return (
            self.layer(x), x @ self.weight, torch.matmul(x, y), torch.bmm(x, y), x[0] @ y[0],
            torch.einsum("bij,bjk->bik", x, y),
            torch.einsum("bij,bkj->bik", x, x), torch.einsum("bij,jk->bk", x, self.weight),
            torch.addmm(x[0, :, :3], x[0], y[0, :, :3], beta=0.5, alpha=2.0),
            torch.baddbmm(y[:, :1], x, y), torch.outer(x[0, 0], y[0, 0]),
        )  # fmt: skip


class Reductions(nn.Module):
    """One number for many."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return (
            x.sum(1), x.mean((0, 2)), x.mean(), x.amax(2), x.amin(0, keepdim=True),
            x.var(1), x.var(2, unbiased=False), x.std(0), torch.logsumexp(x, 1), x.norm(dim=1),
            x.norm(p=1, dim=2), x.norm(p=3, dim=1), x.norm(p=float("inf"), dim=0),
            torch.linalg.vector_norm(x, dim=(1, 2)), x.sum((1, 2), True),
            x.abs().max(), x.logcumsumexp(1), x.cumprod(1),
        )  # fmt: skip


class Logic(nn.Module):
    """Comparisons and what follows from them."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        a, b = x > y, x < 0.5
        return (
            a & b, torch.logical_or(a, b), ~a, torch.logical_xor(a, b),
            x >= y, x <= y, x == x.round(), x != y, torch.logical_and(a, b),
            (a.to(torch.int32) + b.to(torch.int32)) * 2, a.any().to(torch.float32),
        )  # fmt: skip


class Numbers(nn.Module):
    """Arithmetic of two tensors, with roundings of every kind."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        positive = y.abs() + 0.5
        return (
            x + 2 * y, x - y, x / positive, x * y, torch.pow(positive, x), x**2, 2**x,
            torch.maximum(x, y), torch.minimum(x, y), torch.remainder(x, positive),
            torch.floor_divide(x, positive),
            torch.div(x, positive, rounding_mode="trunc"), torch.atan2(x, positive),
            x.clamp(-0.5, 0.7), x.clamp(min=0.1), x.clamp(max=0.2),
            torch.rsub(x, y), x.sign(), x.round(), x.floor(), x.ceil(), x.neg(), x.abs(),
            torch.frac(x), torch.isnan(x),
        )  # fmt: skip


class Joining(nn.Module):
    """Tensors joined, repeated and made."""

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return (
            torch.cat([x, y, x], 1), torch.stack([x, y], 1), torch.hstack([x, y]), x.repeat(2, 3),
            x[:, None].expand(-1, 2, -1), x.repeat_interleave(2, 1), torch.tile(x, (1, 2)),
            x + torch.ones_like(x), x * torch.full((4,), 2.5), x + torch.arange(4).to(x.dtype),
            torch.linspace(0, 1, 4) * x, torch.meshgrid(x[:, 0], y[0], indexing="ij")[1] + 0.0,
        )  # fmt: skip


class Shapes(nn.Module):
    """The same numbers in other shapes, some of which depend on the input's."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        n, c, h, w = x.shape
        return (
            x.view(n, -1), x.reshape(n, c // 2, 2, h * w), x.permute(0, 2, 3, 1), x.flatten(1, 2),
            x.transpose(1, 3), x[:, :1].squeeze(1), x.unsqueeze(2), x.unflatten(1, (2, 2)),
            functional.unfold(x, 2, stride=2),
            functional.pad(x, (1, 2)), x.view(n * c, h, w),
        )  # fmt: skip


class Sampling(nn.Module):
    """An image looked up at places, and images taken apart and put together."""

    def forward(self, x: Tensor, places: Tensor) -> tuple[Tensor, ...]:
        sample = functional.grid_sample
        blocks = functional.unfold(x, 2, stride=2)
        return (
            sample(x, places, align_corners=False), sample(x, places, align_corners=True),
            sample(x, places, padding_mode="border", align_corners=False),
            sample(x, places, mode="nearest", padding_mode="border", align_corners=True),
            functional.fold(blocks, (6, 4), 2, stride=2), functional.unfold(x, 3, padding=1),
        )  # fmt: skip


class Selecting(nn.Module):
    """Results whose lengths depend on the numbers."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.nonzero(x > 0.3), x[x > 0]


class Spectra(nn.Module):
    """Fourier's transforms."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        whole = torch.fft.fft(x)
        return (
            whole.real, whole.imag, torch.fft.rfft(x).abs(), torch.fft.ifft(whole).real,
            torch.stft(x, 8, 4, return_complex=True).abs(),
        )  # fmt: skip
