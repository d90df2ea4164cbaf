"""PyTorch nets that take images, small: of each kind that people move to phones."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = [
    "Deeplab",
    "Densenet",
    "Inception",
    "Mobilenet",
    "PixelShuffle",
    "Shufflenet",
    "Squeezenet",
    "Temporal",
    "Upsampler",
    "Volume",
]


def conv(before: int, after: int, size: int = 3, **options: int) -> nn.Sequential:
    """A convolution, its normalisation and a rectifier."""
    padding = options.pop("padding", size // 2)
    layer = nn.Conv2d(before, after, size, padding=padding, bias=False, **options)
    return nn.Sequential(layer, nn.BatchNorm2d(after), nn.ReLU())


class Gate(nn.Module):
    """Channels weighed by what is in them (squeeze and excitation)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.down(functional.adaptive_avg_pool2d(x, 1)))
        return x * functional.hardsigmoid(self.up(y))


class Inverted(nn.Module):
    """Wider, one filter a channel, narrower."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        wide = 4 * before
        self.same = before == after and stride == 1
        self.layers = nn.Sequential(
            nn.Conv2d(before, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.Hardswish(),
            nn.Conv2d(wide, wide, 5, stride, 2, groups=wide, bias=False), nn.BatchNorm2d(wide),
            nn.Hardswish(), Gate(wide), nn.Conv2d(wide, after, 1, bias=False),
            nn.BatchNorm2d(after),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return x + y if self.same else y


class Mobilenet(nn.Module):
    """After MobileNetV3: inverted residuals with gates."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish(),
            Inverted(8, 8, 1), Inverted(8, 12, 2), Inverted(12, 12, 1),
        )  # fmt: skip
        self.head = nn.Sequential(
            nn.Linear(12, 24), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(24, 6)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x).mean([2, 3]))


class Densenet(nn.Module):
    """Each layer takes all before it; between blocks there are halves of everything."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.blocks = nn.ModuleList([self.block(8), self.block(8)])
        self.between = nn.Sequential(
            nn.BatchNorm2d(20), nn.ReLU(), nn.Conv2d(20, 8, 1, bias=False), nn.AvgPool2d(2)
        )
        self.norm, self.out = nn.BatchNorm2d(20), nn.Linear(20, 5)

    @staticmethod
    def block(width: int) -> nn.ModuleList:
        return nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(width + 4 * i), nn.ReLU(),
                nn.Conv2d(width + 4 * i, 4, 3, padding=1, bias=False),
            )
            for i in range(3)
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for index, block in enumerate(self.blocks):
            if index:
                x = self.between(x)
            for layer in block:
                x = torch.cat([x, layer(x)], 1)
        x = functional.adaptive_avg_pool2d(functional.relu(self.norm(x)), (1, 1))
        return self.out(torch.flatten(x, 1))


class Inception(nn.Module):
    """Branches of several sizes, some of them of one row or column, and pooling that rounds up."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(3, 8, stride=2)
        self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.one = conv(8, 4, 1)
        self.row = nn.Conv2d(8, 4, (1, 7), padding=(0, 3))
        self.column = nn.Conv2d(4, 4, (7, 1), padding=(3, 0))
        self.average = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        self.after = conv(8, 4, 1)
        self.down = nn.Conv2d(12, 6, 3, stride=(2, 1), padding="valid")
        self.out = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.stem(x))
        x = torch.cat([self.one(x), self.column(self.row(x)), self.after(self.average(x))], 1)
        return self.out(functional.adaptive_max_pool2d(self.down(x), 1).flatten(1))


class Shufflenet(nn.Module):
    """Halves that go separate ways, and channels shuffled between them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(3, 8, stride=2)
        self.branches = nn.ModuleList(
            nn.Sequential(
                conv(4, 4, 1), nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.BatchNorm2d(4),
                conv(4, 4, 1),
            )
            for _ in range(2)
        )  # fmt: skip
        self.grouped = nn.Conv2d(8, 8, 1, groups=2)
        self.out = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for branch in self.branches:
            first, second = x.chunk(2, dim=1)
            x = torch.cat((first, branch(second)), dim=1)
            n, c, h, w = x.shape
            x = x.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, c, h, w)
        return self.out(self.grouped(x).mean((2, 3)))


class Squeezenet(nn.Module):
    """Narrow, then wide in two ways, and a convolution as the classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2)
        self.squeeze = nn.Conv2d(8, 3, 1)
        self.wide = nn.ModuleList([nn.Conv2d(3, 6, 1), nn.Conv2d(3, 6, 3, padding=1)])
        self.out = nn.Conv2d(12, 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(functional.relu(self.stem(x)), 3, 2)
        x = functional.relu(self.squeeze(x))
        x = functional.relu(torch.cat([layer(x) for layer in self.wide], 1))
        return torch.softmax(8 * self.out(x).mean((2, 3)), 1)


class Deeplab(nn.Module):
    """Dilated convolutions beside a mean of all, back to the size of the image."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(3, 8, stride=2)
        self.rates = nn.ModuleList(conv(8, 4, padding=rate, dilation=rate) for rate in (1, 2, 3))
        self.whole = nn.Conv2d(8, 4, 1)
        self.out = nn.Conv2d(16, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.stem(x)
        parts = [layer(y) for layer in self.rates]
        whole = self.whole(functional.adaptive_avg_pool2d(y, 1))
        parts.append(functional.interpolate(whole, size=y.shape[2:], mode="nearest"))
        y = self.out(torch.cat(parts, 1))
        return functional.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=True)


class Upsampler(nn.Module):
    """Images made larger by each means there is.

    Args:
        dilation: Of the last deconvolution.
        fraction: Whether some factors are no integers.
    """

    def __init__(self, dilation: int = 2, *, fraction: bool = True) -> None:
        super().__init__()
        self.fraction = fraction
        self.first = nn.ConvTranspose2d(3, 6, 3, 2, 1, output_padding=1)
        self.grouped = nn.ConvTranspose2d(6, 4, 4, 2, 1, groups=2)
        self.dilated = nn.ConvTranspose2d(4, 2, 3, padding=2, dilation=dilation, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = self.dilated(functional.elu(self.grouped(functional.elu(self.first(x)))))
        whole = (
            functional.interpolate(y, scale_factor=2, mode="nearest"),
            functional.interpolate(y, scale_factor=3, mode="bilinear", align_corners=True),
        )
        if not self.fraction:
            return whole
        return (
            *whole,
            functional.interpolate(y, scale_factor=(1.5, 2.5), mode="bilinear"),
            functional.interpolate(y, size=(50, 41), mode="bilinear", align_corners=True),
            functional.interpolate(y, size=(11, 9), mode="nearest"),
            functional.interpolate(y[:, 0], scale_factor=2, mode="linear"),
        )


class PixelShuffle(nn.Module):
    """Channels become pixels, and on request the other way round; paddings of every mode."""

    def __init__(self, *, back: bool = True) -> None:
        super().__init__()
        self.back = back
        self.first, self.second = nn.Conv2d(3, 12, 3), nn.Conv2d(12, 8, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(functional.pad(x, (2, 1, 0, 3), "reflect"))
        if self.back:
            y = functional.pixel_unshuffle(functional.pixel_shuffle(torch.tanh(y), 2), 2)
        y = self.second(functional.pad(y, (1, 1, 2, 0), "replicate"))
        return functional.pixel_shuffle(functional.pad(y, (0, 1, 1, 0), value=0.5), 2)


class Temporal(nn.Module):
    """Dilated causal convolutions over time."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(4, 8, 3, dilation=2**i) for i in range(3))
        self.back = nn.ModuleList(nn.Conv1d(4, 4, 1) for _ in range(3))
        self.up = nn.ConvTranspose1d(4, 3, 4, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        for index, (layer, back) in enumerate(zip(self.layers, self.back, strict=True)):
            y = layer(functional.pad(x, (2 * 2**index, 0)))
            x = x + back(functional.glu(y, 1))
        return self.up(functional.max_pool1d(x, 2) + functional.avg_pool1d(x, 2))


class Volume(nn.Module):
    """Convolutions and pooling of three axes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv3d(2, 6, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm3d(6)
        self.second = nn.Conv3d(6, 4, (1, 3, 3), stride=(1, 2, 1), groups=2)
        self.up = nn.ConvTranspose3d(4, 2, 2, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = functional.max_pool3d(functional.relu(self.norm(self.first(x))), 2)
        y = self.second(y)
        return self.up(y), functional.avg_pool3d(y, (2, 1, 2)).mean((2, 3))
