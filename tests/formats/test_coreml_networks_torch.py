"""NeuralNetworks that coremltools makes of PyTorch nets, against what PyTorch gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.coreml_layers import evaluate
from support.coreml_models import tools

import serde

torch = pytest.importorskip("torch")
torch_nets = pytest.importorskip("support.torch_nets")
nn = torch.nn


class Attention(nn.Module):
    """A layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.inward, self.outward = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: Any) -> Any:
        q, k, v = self.inward(self.first(x)).view(2, 5, 3, 4, 4).permute(2, 0, 3, 1, 4)
        scores = torch.softmax(q @ k.transpose(-1, -2) / 2, -1)
        x = x + self.outward((scores @ v).permute(0, 2, 1, 3).reshape(2, 5, 16))
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


class Pieces(nn.Module):
    """Indexing, joining and ordering."""

    def forward(self, x: Any) -> Any:
        y = torch.cat([x[:, 1:3], x[:, ::2] * 2], 1)
        best, _ = torch.topk(y, 2, dim=-1)
        return torch.where(y > 0, y, y.sum(-1, keepdim=True)), best, y.cumsum(1)


class Upward(nn.Module):
    """Images made larger in each of the ways there are."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(3, 4, 3, 2, 1)

    def forward(self, x: Any) -> Any:
        y = self.up(x)
        y = nn.functional.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
        y = nn.functional.interpolate(y, scale_factor=2, mode="nearest")
        return nn.functional.pixel_shuffle(nn.functional.pad(y, (1, 1, 2, 0), "reflect"), 2)


def _activations() -> Any:
    kinds = [
        nn.ReLU(), nn.LeakyReLU(0.1), nn.PReLU(4), nn.ELU(), nn.Sigmoid(), nn.Tanh(), nn.Softplus(),
        nn.Hardsigmoid(), nn.ReLU6(), nn.GELU(), nn.SiLU(), nn.Hardswish(), nn.Softsign(),
    ]  # fmt: skip
    return nn.Sequential(*between(kinds))


def between(kinds: list[Any]) -> list[Any]:
    """The activations with convolutions of one by one between them."""
    return [each for kind in kinds for each in (nn.Conv2d(4, 4, 1), kind)]


NETS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "activations": (_activations, (2, 4, 5, 5)),
    "attention": (Attention, (2, 5, 16)),
    "pieces": (Pieces, (2, 4, 6)),
    "upward": (Upward, (1, 3, 5, 6)),
    "conv3d": (
        lambda: nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.MaxPool3d(2)), (1, 2, 6, 6, 4)
    ),
    "norms": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 6, 3), nn.InstanceNorm2d(6, affine=True), nn.AvgPool2d(2),
            nn.LocalResponseNorm(3),
        ),
        (2, 3, 9, 9),
    ),
    "depthwise": (
        lambda: nn.Sequential(
            nn.Conv2d(4, 8, 3, 2, 1, groups=4), nn.BatchNorm2d(8), nn.ReLU6(),
            nn.AvgPool2d(3, 2, 1), nn.Flatten(), nn.Linear(32, 3), nn.Softmax(-1),
        ),
        (2, 4, 7, 8),
    ),
}  # fmt: skip


def check(net: Any, example: tuple[Any, ...]) -> None:
    """Convert a net by way of coremltools, and compare."""
    ct = tools()
    with torch.no_grad():
        expected = net(*example)
        traced = torch.jit.trace(net, example, check_trace=False)
    given = {f"x{i}": each.numpy() for i, each in enumerate(example)}
    inputs = [
        ct.TensorType(
            name=name, shape=each.shape, dtype=np.int32 if each.dtype.kind == "i" else np.float32
        )
        for name, each in given.items()
    ]
    model = ct.convert(traced, inputs=inputs, convert_to="neuralnetwork")
    ours = serde.to_relay(model.get_spec())
    arrays = {
        each.name_hint: given[each.name_hint].astype(each.type.dtype) for each in ours.inputs()
    }
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for found, theirs in zip(evaluate(ours, arrays), wanted, strict=True):
        scale = max(1.0, float(theirs.double().std()))
        assert found.shape == theirs.shape
        np.testing.assert_allclose(found / scale, theirs.numpy() / scale, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", NETS)
def test_layers(name: str) -> None:
    make, shape = NETS[name]
    torch.manual_seed(2)
    check(make().eval(), (torch.randn(*shape),))


@pytest.mark.parametrize("name", torch_nets.NETS)
def test_net(name: str) -> None:
    net = torch_nets.NETS[name]
    check(net.built(), tuple(net.inputs(2, 8)))
