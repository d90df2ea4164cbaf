"""Small nets of PyTorch, one for each way of building that TVM's importer meets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812, as PyTorch's programs have it
from torch import Tensor, nn

__all__ = ["NETS", "Case", "Function"]

Case = tuple[nn.Module, tuple[Tensor, ...]]

NETS: dict[str, Callable[[], Case]] = {}


def _net(build: Callable[[], Case]) -> Callable[[], Case]:
    NETS[build.__name__.removeprefix("build_")] = build
    return build


class Function(nn.Module):
    """A module of one function."""

    def __init__(self, function: Callable[..., Any], **parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(parts)
        self._function = function

    def forward(self, *given: Tensor) -> Any:
        return self._function(*self.parts.values(), *given)


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, width: int, wide: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, wide, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(wide)
        self.second = nn.Conv2d(wide, wide, 3, 1, 1)
        self.short = nn.Identity() if width == wide else nn.Conv2d(width, wide, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.second(F.relu(self.norm(self.first(x)))) + self.short(x))


def _image(width: int = 3, size: int = 16) -> tuple[Tensor]:
    return (torch.randn(2, width, size, size),)


@_net
def build_resnet() -> Case:
    head = nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
    tail = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)
    return nn.Sequential(*head, Block(8, 8, 1), Block(8, 16, 2), *tail), _image(size=32)


@_net
def build_vgg() -> Case:
    layers = (nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, 2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(), nn.Linear(512, 10)), _image()


@_net
def build_mobile() -> Case:
    first = nn.Conv2d(3, 8, 3, 2, 1), nn.Hardswish(), nn.Conv2d(8, 8, 3, 1, 1, groups=8)
    last = nn.ReLU6(), nn.Conv2d(8, 16, 1), nn.SiLU(), nn.AvgPool2d(2), nn.Flatten(1)
    return nn.Sequential(*first, *last), _image()


@_net
def build_shuffle() -> Case:
    layers = nn.Conv2d(8, 8, 1, groups=2), nn.ChannelShuffle(2), nn.Conv2d(8, 8, 3, groups=8)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d((2, 3))), _image(8, 6)


@_net
def build_squeeze_and_excite() -> Case:
    def run(conv: Any, narrow: Any, widen: Any, x: Tensor) -> Tensor:
        y = conv(x)
        return y * torch.sigmoid(widen(F.relu(narrow(y.mean([2, 3])))))[:, :, None, None]

    parts = {"conv": nn.Conv2d(3, 8, 3), "narrow": nn.Linear(8, 2), "widen": nn.Linear(2, 8)}
    return Function(run, **parts), _image()


@_net
def build_densenet() -> Case:
    def run(first: Any, second: Any, x: Tensor) -> Tensor:
        x = torch.cat([x, first(x)], 1)
        return torch.cat([x, second(x)], 1).mean((2, 3))

    first = nn.Sequential(nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1))
    second = nn.Sequential(nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1))
    return Function(run, first=first, second=second), _image(4, 6)


@_net
def build_unet() -> Case:
    def run(down: Any, deep: Any, up: Any, out: Any, x: Tensor) -> Tensor:
        a = F.relu(down(x))
        b = F.relu(deep(F.max_pool2d(a, 2)))
        return torch.sigmoid(out(torch.cat([a, up(b)], 1)))

    parts = {"down": nn.Conv2d(3, 8, 3, padding=1), "deep": nn.Conv2d(8, 16, 3, padding=1)}
    parts |= {"up": nn.ConvTranspose2d(16, 8, 2, 2), "out": nn.Conv2d(16, 1, 1)}
    return Function(run, **parts), _image()


@_net
def build_autoencoder() -> Case:
    back = nn.ConvTranspose2d(4, 1, 3, 2, 1, 1)
    return nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.Tanh(), back, nn.Sigmoid()), _image(1, 8)


@_net
def build_prelu() -> Case:
    layers = nn.Conv2d(3, 4, 3), nn.PReLU(4), nn.Upsample(scale_factor=2), nn.ZeroPad2d(1)
    return nn.Sequential(*layers, nn.LogSoftmax(1)), _image(size=6)


@_net
def build_sequences_and_volumes() -> Case:
    def run(one: Any, back: Any, three: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return F.max_pool1d(back(one(x)), 2), F.avg_pool3d(three(y), 2)

    parts = {"one": nn.Conv1d(3, 4, 3, 2, 1), "three": nn.Conv3d(2, 3, 2)}
    back = nn.ConvTranspose1d(4, 2, 3, 2, 1, output_padding=1)
    net = Function(run, one=parts["one"], back=back, three=parts["three"])
    return net, (torch.randn(1, 3, 12), torch.randn(1, 2, 5, 5, 5))


@_net
def build_perceptron() -> Case:
    layers = nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(), nn.Linear(16, 4)
    return nn.Sequential(*layers, nn.Softmax(-1)), (torch.randn(3, 8),)


@_net
def build_embedding() -> Case:
    parts = {"table": nn.Embedding(20, 8), "out": nn.Linear(8, 20)}
    net = Function(lambda table, out, i: out(table(i).mean(1)), **parts)
    return net, (torch.randint(0, 20, (2, 6)),)


@_net
def build_encoder() -> Case:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 2), (torch.randn(2, 5, 16),)


@_net
def build_vision_transformer() -> Case:
    def run(patches: Any, token: Any, layer: Any, head: Any, x: Tensor) -> Tensor:
        x = patches(x).flatten(2).transpose(1, 2)
        first = token(torch.zeros(1, 1, dtype=torch.int64)).expand(x.shape[0], -1, -1)
        return head(layer(torch.cat([first, x], 1))[:, 0])

    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
    parts = {"patches": nn.Conv2d(3, 16, 4, 4), "token": nn.Embedding(1, 16)}
    return Function(run, **parts, layer=layer, head=nn.Linear(16, 7)), _image(size=8)


@_net
def build_attention() -> Case:
    net = Function(
        lambda part, x: part(x, x, x), part=nn.MultiheadAttention(8, 2, batch_first=True)
    )
    return net, (torch.randn(2, 4, 8),)


@_net
def build_scaled_product() -> Case:
    def run(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        attend = F.scaled_dot_product_attention
        return attend(q, k, v), attend(q, k, v, is_causal=True)

    return Function(run), tuple(torch.randn(1, 2, 4, 8) for _ in range(3))


@_net
def build_language_model() -> Case:
    def run(words: Any, places: Any, joint: Any, out: Any, i: Tensor) -> Tensor:
        x = words(i) + places(torch.arange(i.shape[1]))
        count, length, width = x.shape
        parts = joint(x).split(16, -1)
        q, k, v = (y.view(count, length, 2, 8).transpose(1, 2) for y in parts)
        scores = (q @ k.transpose(-2, -1)) * 8**-0.5
        mask = torch.tril(torch.ones(length, length))
        weights = scores.masked_fill(mask == 0, float("-inf")).softmax(-1)
        return out(x + (weights @ v).transpose(1, 2).reshape(count, length, width))

    parts = {"words": nn.Embedding(30, 16), "places": nn.Embedding(12, 16)}
    net = Function(run, **parts, joint=nn.Linear(16, 48), out=nn.Linear(16, 30, bias=False))
    return net, (torch.randint(0, 30, (2, 6)),)


@_net
def build_lstm() -> Case:
    return nn.LSTM(4, 6, batch_first=True), (torch.randn(2, 5, 4),)


@_net
def build_gru() -> Case:
    return nn.GRU(4, 6, batch_first=True), (torch.randn(2, 5, 4),)


@_net
def build_rnn() -> Case:
    return nn.RNN(4, 6, batch_first=True), (torch.randn(2, 5, 4),)


@_net
def build_norms() -> Case:
    def run(group: Any, instance: Any, layer: Any, x: Tensor) -> tuple[Tensor, ...]:
        rest = F.normalize(x), F.rms_norm(x, (4,))
        return group(x), instance(x), layer(x), *rest

    parts = {"group": nn.GroupNorm(2, 8), "instance": nn.InstanceNorm2d(8, affine=True)}
    return Function(run, **parts, layer=nn.LayerNorm([8, 4, 4])), _image(8, 4)


@_net
def build_activations() -> Case:
    names = "elu celu softplus mish hardsigmoid hardtanh leaky_relu logsigmoid softsign tanhshrink"
    functions = [getattr(F, name) for name in names.split()]
    return Function(lambda x: [function(x) for function in functions]), (torch.randn(2, 6),)


@_net
def build_halves() -> Case:
    return Function(lambda x: (F.glu(x, -1), F.gelu(x), F.log_softmax(x, -1))), (torch.randn(2, 6),)


@_net
def build_slices_and_sorting() -> Case:
    def run(x: Tensor) -> tuple[Tensor, ...]:
        best, places = torch.topk(x, 2, -1)
        return x[:, 1:, ::2], torch.cumsum(x, 1), best, places, torch.argmax(x, 1)

    return Function(run), (torch.randn(2, 4, 6),)


@_net
def build_moments() -> Case:
    def run(x: Tensor) -> tuple[Tensor, ...]:
        view = x.permute(0, 2, 1).contiguous().view(2, -1)
        return view, torch.where(x > 0, x, -x), x.std(1), x.var(dim=[1, 2])

    return Function(run), (torch.randn(2, 4, 6),)


@_net
def build_lookups() -> Case:
    def run(x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        zeros = torch.zeros_like(x)
        return torch.gather(x, 1, i), x[i[:, 0] % 2], torch.scatter(x, 1, i, zeros)

    return Function(run), (torch.randn(2, 6), torch.randint(0, 6, (2, 6)))


@_net
def build_one_hot() -> Case:
    return Function(lambda i: F.one_hot(i, 6)), (torch.randint(0, 6, (2, 6)),)


@_net
def build_padding() -> Case:
    def run(x: Tensor) -> tuple[Tensor, ...]:
        modes = ("reflect", "replicate", "circular")
        edges = [F.pad(x, (1, 1, 1, 1), mode) for mode in modes]
        return F.pad(x, (1, 2, 0, 1)), *edges, F.pixel_shuffle(x, 2), torch.roll(x, 1, 2)

    return Function(run), _image(4, 4)


@_net
def build_products() -> Case:
    def run(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        summed = torch.einsum("bij,bjk->bik", a, b)
        return summed, torch.bmm(a, b), torch.outer(a[0, 0], b[0, 0]), a @ b

    return Function(run), (torch.randn(2, 3, 4), torch.randn(2, 4, 5))


@_net
def build_resizing() -> Case:
    def run(x: Tensor) -> list[Tensor]:
        modes = ({"mode": "nearest"}, {"mode": "bilinear"}, {"mode": "bicubic"})
        aligned = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
        return [aligned, *(F.interpolate(x, scale_factor=2, **each) for each in modes)]

    return Function(run), (torch.randn(1, 2, 4, 5),)


@_net
def build_integers() -> Case:
    def run(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        floats = torch.atan2(a.float(), b.float()), a.float().round()
        return a // b, a % b, a & b, (a > b).int(), torch.clamp(a, -1, 3), *floats

    return Function(run), (torch.randint(-9, 9, (3, 4)), torch.randint(1, 5, (3, 4)))
