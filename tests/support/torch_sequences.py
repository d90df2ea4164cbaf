"""PyTorch nets over sequences: attention, recurrence, states and control flow."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = [
    "Branches",
    "Cache",
    "Cells",
    "Converging",
    "Counter",
    "Cross",
    "Encoder",
    "Heads",
    "Llama",
    "Nested",
    "Recurrent",
    "Scaled",
    "Stateful",
    "Steps",
    "Vit",
    "Windows",
]


class Heads(nn.Module):
    """PyTorch's own attention of several heads, with a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.register_buffer("seen", torch.triu(torch.full((6, 6), -1e4), 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.attention(x, x, x, attn_mask=self.seen, need_weights=True)


class Scaled(nn.Module):
    """Attention in one call: with a mask of truth values, with one of numbers, causal, scaled."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        attend = functional.scaled_dot_product_attention
        scores = q @ k.transpose(-1, -2)
        return (
            attend(q, k, v),
            attend(q, k, v, attn_mask=scores > -1),
            attend(q, k, v, attn_mask=scores * 0.3),
            attend(q, k, v, is_causal=True),
            attend(q, k, v, scale=0.25),
        )


class Encoder(nn.Module):
    """PyTorch's layers of an encoder, normalised before and after."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                16, 4, 32, batch_first=True, norm_first=first, activation=activation
            )
            for first, activation in ((False, "relu"), (True, "gelu"))
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Cross(nn.Module):
    """PyTorch's layer of a decoder, which attends to another sequence too."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True)
        self.register_buffer("seen", torch.triu(torch.full((5, 5), -1e4), 1))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        return self.layer(x, memory, tgt_mask=self.seen)


class Vit(nn.Module):
    """Patches of an image as a sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.label = nn.Parameter(torch.zeros(1, 1, 16))
        self.places = nn.Parameter(torch.zeros(1, 17, 16))
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(5))
        self.inward = nn.ModuleList(nn.Linear(16, 48) for _ in range(2))
        self.outward = nn.ModuleList(nn.Linear(16, 16) for _ in range(2))
        self.up = nn.ModuleList(nn.Linear(16, 32) for _ in range(2))
        self.down = nn.ModuleList(nn.Linear(32, 16) for _ in range(2))
        self.head = nn.Linear(16, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.label.expand(x.shape[0], -1, -1), x], 1) + self.places
        for i in range(2):
            b, n, c = x.shape
            qkv = self.inward[i](self.norms[2 * i](x)).reshape(b, n, 3, 4, c // 4)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c)
            x = x + self.outward[i](y)
            x = x + self.down[i](functional.gelu(self.up[i](self.norms[2 * i + 1](x))))
        return self.head(self.norms[4](x)[:, 0])


class Windows(nn.Module):
    """Attention within windows that are shifted, with a bias by relative place (Swin)."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inward, self.outward = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.bias = nn.Parameter(torch.zeros(49, 2))
        place = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij"))
        apart = (place.flatten(1)[:, :, None] - place.flatten(1)[:, None]) + 3
        self.register_buffer("places", apart[0] * 7 + apart[1])

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        y = torch.roll(self.norm(x), (-2, -2), (1, 2))
        y = y.view(b, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
        q, k, v = self.inward(y).view(-1, 16, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
        bias = self.bias[self.places.view(-1)].view(16, 16, 2).permute(2, 0, 1)
        scores = (q * (c // 2) ** -0.5) @ k.transpose(-2, -1) + bias[None]
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, 4, 4, c)
        y = y.view(b, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return x + self.outward(torch.roll(y, (2, 2), (1, 2)))


class Llama(nn.Module):
    """Root mean squares, rotary places, fewer heads of keys, and a gate of SiLU."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(16))
        self.q, self.k, self.v = (nn.Linear(16, n, bias=False) for n in (16, 8, 8))
        self.out = nn.Linear(16, 16, bias=False)
        self.gate, self.up, self.down = nn.Linear(16, 32), nn.Linear(16, 32), nn.Linear(32, 16)

    def normed(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale

    @staticmethod
    def turned(x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        rates = 1.0 / (10000 ** (torch.arange(0, half).to(torch.float32) / half))
        angles = torch.outer(torch.arange(x.shape[2]).to(torch.float32), rates)
        angles = torch.cat([angles, angles], -1)
        other = torch.cat([-x[..., half:], x[..., :half]], -1)
        return x * angles.cos() + other * angles.sin()

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        y = self.normed(x)
        q = self.turned(self.q(y).view(b, n, 4, 4).transpose(1, 2))
        k = self.turned(self.k(y).view(b, n, 2, 4).transpose(1, 2)).repeat_interleave(2, 1)
        v = self.v(y).view(b, n, 2, 4).transpose(1, 2).repeat_interleave(2, 1)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / 2
        seen = torch.tril(torch.ones(n, n, dtype=torch.bool))
        y = scores.masked_fill(~seen, -1e4).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, n, 16))
        y = self.normed(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Recurrent(nn.Module):
    """A recurrent layer of PyTorch; sequence and last states."""

    def __init__(self, kind: type[nn.RNNBase], **options: object) -> None:
        super().__init__()
        self.layer = kind(5, 6, **options)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y, last = self.layer(x)
        return (y, *last) if isinstance(last, tuple) else (y, last)


class Steps(nn.Module):
    """A recurrent layer from given states, decoded by another."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.LSTM(5, 6), nn.LSTM(6, 6)
        self.out = nn.Linear(6, 4)

    def forward(self, x: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        y, state = self.encoder(x, (hidden, cell))
        z, (last, _) = self.decoder(y.flip(0), state)
        return self.out(z), last


class Cells(nn.Module):
    """A convolutional LSTM, step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Conv2d(2 + 4, 16, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = c = torch.zeros(x.shape[1], 4, x.shape[3], x.shape[4])
        for step in x.unbind(0):
            i, f, o, g = self.gates(torch.cat([step, h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


class Converging(nn.Module):
    """A loop that ends when what it computes is small enough."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        turns = torch.zeros([1])
        while bool(x.abs().sum() > 1.0):
            x = torch.tanh(self.layer(x)) * 0.5
            turns = turns + 1.0
        return x, turns


class Branches(nn.Module):
    """A branch by what the numbers are, one within another."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            y = self.first(x)
            y = y * 2.0 if bool(x.max() > 1.0) else y - 1.0
        else:
            y = self.second(x).relu()
        return y


class Counter(nn.Module):
    """A loop of a fixed number of turns over a tensor, one row a turn."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        state = torch.zeros([4])
        for i in range(5):
            state = torch.tanh(self.layer(state) + x[i])
        return state


class Nested(nn.Module):
    """A branch within a loop within a loop."""

    def forward(self, x: Tensor) -> Tensor:
        for i in range(3):
            for j in range(2):
                x = x * 0.5 - 0.4 * j if bool(x.mean() > 0) else x + 0.9
            x = x + i
        return x


class Stateful(nn.Module):
    """A running mean that the model keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(1, 4))
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        self.mean.mul_(0.5)
        self.mean.add_(self.layer(x) * 0.5)
        return x - self.mean


class Cache(nn.Module):
    """Attention of one more token, over a cache of keys and values that the model keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 6, 8))
        self.register_buffer("values", torch.zeros(1, 6, 8))
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        self.keys[:, 2:3] = self.k(x)
        self.values[:, 2:3] = self.v(x)
        scores = self.q(x) @ self.keys[:, :3].transpose(1, 2) / 3
        return torch.softmax(scores, -1) @ self.values[:, :3]
