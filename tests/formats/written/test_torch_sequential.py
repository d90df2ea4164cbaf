"""Rows of layers in written folders: as serde writes them, and as people write them by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

from support.torch_runner import load  # noqa: E402
from torch import nn  # noqa: E402

import serde  # noqa: E402
from serde.engine.interpreter import RelayEngine  # noqa: E402
from serde.torch.written.source import LOADER  # noqa: E402


class Inverted(nn.Module):
    """Wider, one filter a channel, narrower, beside what it is given."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Sequential(
            nn.Sequential(nn.Conv2d(width, 2 * width, 1, bias=False), nn.BatchNorm2d(2 * width)),
            nn.ReLU6(), nn.Conv2d(2 * width, width, 3, padding=1), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        return x + self.conv(x)


class Classifier(nn.Module):
    """Features of an image, and what is made of them."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3, 2), nn.BatchNorm2d(4), nn.LeakyReLU(0.1), nn.MaxPool2d(3, 2, 1),
            *(Inverted(4) for _ in range(4)), nn.AvgPool2d(2), nn.Conv2d(4, 6, 1), nn.GELU("tanh"),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(24, 5), nn.Hardswish(), nn.Linear(5, 5), nn.Softmax(1)
        )

    def forward(self, x: Any) -> Any:
        return self.classifier(nn.functional.adaptive_avg_pool2d(self.features(x), 2))


NETS: dict[str, tuple[Callable[[], Any], tuple[int, ...], tuple[str, ...]]] = {
    "image": (Classifier, (2, 3, 16, 16), (
        "self.features = nn.Sequential(", "nn.LeakyReLU(0.1)", "nn.AvgPool2d(2)",
        "*(ResidualBlock() for _ in range(4))", 'nn.GELU(approximate="tanh")',
        "nn.MaxPool2d(3, stride=2, padding=1)", "self.conv = nn.Sequential(",
        "self.classifier = nn.Sequential(", "nn.Softmax(dim=1)", "nn.ReLU6()",
    )),
    "plain": (lambda: nn.Sequential(nn.Conv1d(3, 4, 3), nn.SiLU(), nn.AdaptiveAvgPool1d(2),
                                    nn.Flatten(), nn.Linear(8, 2), nn.Sigmoid()),
              (2, 3, 9), ("self.layers = nn.Sequential(", "nn.Flatten(),", "nn.Sigmoid(),",
                          "return self.layers(input)")),
}  # fmt: skip


def values(*shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(5).normal(size=shape).astype(np.float32))


def vary(net: Any) -> Any:
    """Give a net weights and statistics that say something, and the mode for inference."""
    rng = np.random.default_rng(6)
    for name, each in net.state_dict().items():
        if each.is_floating_point():
            drawn = torch.from_numpy(rng.normal(scale=0.5, size=tuple(each.shape)))
            each.copy_(drawn.abs() + 0.5 if "var" in name else drawn)
    return net.eval()


def check(folder: Path, x: Any, expected: Any) -> None:
    """Compare the module of a folder, and what is read back of it, with expected values."""
    with torch.no_grad():
        np.testing.assert_allclose(load(folder)(x), expected, rtol=1e-4, atol=1e-5)
    back = serde.to_relay(folder)
    (found,) = RelayEngine(back).run({back.meta.inputs[0]: x.numpy()})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETS)
def test_rows_are_written_as_they_were(name: str, tmp_path: Path) -> None:
    make, shape, parts = NETS[name]
    net, x = vary(make()), values(*shape)
    serde.export_model(net, format="torch", path=tmp_path / "net", example_inputs=(x,))
    text = (tmp_path / "net" / "model.py").read_text(encoding="utf-8")
    assert [part for part in parts if part not in text] == []
    check(tmp_path / "net", x, net(x).detach())
    again = tmp_path / "again"
    serde.export_model(serde.to_relay(tmp_path / "net"), format="torch", path=again)
    check(again, x, net(x).detach())


LISTED = """
def make_layers(widths, normalize):
    layers, before = [], 3
    for width in widths:
        if width == "M":
            layers += [nn.MaxPool2d(kernel_size=2, stride=2)]
        else:
            conv = nn.Conv2d(before, width, kernel_size=3, padding=1)
            layers.extend([conv, nn.BatchNorm2d(width)] if normalize else [conv])
            layers.append(nn.ReLU(True))
            before = width
    return nn.Sequential(*layers)


class Model(nn.Module):
    def __init__(self, classes: int = 3, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = make_layers([4, "M", 5, "M"], True)
        self.avgpool = nn.AdaptiveAvgPool2d((2, 2))
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), nn.Linear(5 * 2 * 2, 6), nn.ReLU(inplace=True),
            nn.Dropout(dropout), nn.Linear(6, classes), nn.LogSoftmax(dim=1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.avgpool(self.features(x))
        return self.classifier(torch.flatten(x, 1))
"""

SUBCLASS = """
class ConvNormActivation(nn.Sequential):
    def __init__(self, before, after, stride=1):
        super().__init__(
            nn.ReflectionPad2d(1), nn.Conv2d(before, after, 3, stride, bias=False),
            nn.BatchNorm2d(after), nn.Hardtanh(-1.0, 2.0, True),
        )
        self.out_channels = after


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        relu = nn.ReLU()
        self.stem = ConvNormActivation(3, 4, stride=2)
        self.body = nn.Sequential(OrderedDict([
            ("conv", nn.Conv2d(self.stem.out_channels, 4, 1)), ("act", relu), ("twice", relu),
        ]))
        self.body.add_module("drop", nn.Dropout2d(0.3))
        self.body.append(nn.GLU(1))
        self.body.conv.weight.requires_grad_(False)
        self.body[0].bias.requires_grad_(False)

    def forward(self, x):
        x = self.body(self.stem(x))
        return x
"""

SLICES = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.ConstantPad2d((1, 0, 2, 1), 0.5), nn.Conv2d(3, 4, 3), nn.Softplus(beta=2),
            nn.Sequential(nn.ZeroPad2d(1), nn.Conv2d(4, 4, 3), nn.ReplicationPad2d(1)),
        )
        self.tail = nn.Sequential()
        self.tail.extend([nn.Flatten(2), nn.Unflatten(2, (-1, 3)), nn.Identity()])

    def forward(self, x):
        y = self.layers[:2](x)
        for layer in self.layers[2:]:
            y = layer(y)
        return self.tail(y + self.layers[-1][1].bias[:, None, None] * len(self.layers))
"""
HEAD = """from collections import OrderedDict
from pathlib import Path

import torch
from torch import nn
"""


@pytest.mark.parametrize("text", [LISTED, SUBCLASS, SLICES], ids=["listed", "subclass", "slices"])
def test_rows_that_people_write_are_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(f"{HEAD}\n{text}{LOADER}", encoding="utf-8")
    scope: dict[str, Any] = {}
    exec(compile(f"{HEAD}\n{text}", "model.py", "exec"), scope)
    net, x = vary(scope["Model"]()), values(2, 3, 8, 8)
    safetensors.save_file(net.state_dict(), tmp_path / "model.safetensors")
    entry = {"name": "x", "argument": "x", "shape": [2, 3, 8, 8], "dtype": "float32"}
    config = {"inputs": [entry], "outputs": [{"name": "y"}]}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    check(tmp_path, x, net(x).detach())
