"""Modules that were written go on training as the nets that they were made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
from serde.compat import import_mxnet

torch = pytest.importorskip("torch")
mx = import_mxnet()

STEPS = 20
"""Steps of each training."""

WITHIN = 1e-3
"""How far losses may be apart at any step."""


def export(net: Any, directory: Path, shape: tuple[int, ...]) -> Any:
    """Return the module that a Gluon net becomes as it is now."""
    net.export(str(directory / "net"))
    paths = str(directory / "net-symbol.json"), str(directory / "net-0000.params")
    return serde.export_model(*paths, format="torch", input_shapes={"data": shape})


def train_mxnet(
    net: Any, data: np.ndarray, label: np.ndarray, rate: float, outputs: int
) -> list[float]:
    """Train by MXNet; return the losses."""
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": rate})
    criterion = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    x, y, losses = mx.nd.array(data), mx.nd.array(label), []
    for _ in range(STEPS):
        with mx.autograd.record():
            loss = criterion(net(x).reshape((-1, outputs)), y).mean()
        loss.backward()
        trainer.step(1)
        losses.append(float(loss.asscalar()))
    return losses


def train_torch(
    module: Any, data: np.ndarray, label: np.ndarray, rate: float, outputs: int
) -> list[float]:
    """Train by PyTorch; return the losses."""
    trained = [each for each in module.parameters() if each.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=rate)
    x, y, losses = torch.from_numpy(data), torch.from_numpy(label).long(), []
    module.train()
    for _ in range(STEPS):
        loss = torch.nn.functional.cross_entropy(module(x).reshape(-1, outputs), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def resnet() -> Any:
    """A ResNet-18 of small images."""
    return mx.gluon.model_zoo.vision.resnet18_v1(classes=10, thumbnail=True)


def lstm() -> Any:
    """Two layers of LSTM in both directions, and a score of every step."""
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.rnn.LSTM(12, num_layers=2, bidirectional=True))
    net.add(mx.gluon.nn.Dense(5, flatten=False))
    return net


@pytest.mark.wide
@pytest.mark.parametrize(
    ("make", "shape", "labels", "outputs", "rate"),
    [
        pytest.param(resnet, (8, 3, 32, 32), 8, 10, 0.02, id="resnet18"),
        pytest.param(lstm, (7, 4, 6), 28, 5, 2.0, id="lstm"),
    ],
)
def test_trains_as_mxnet_does(
    tmp_path: Path,
    make: Callable[[], Any],
    shape: tuple[int, ...],
    labels: int,
    outputs: int,
    rate: float,
) -> None:
    generator = np.random.default_rng(5)
    data = generator.normal(size=shape).astype(np.float32)
    label = generator.integers(0, outputs, size=labels).astype(np.float32)
    mx.random.seed(3)
    net = make()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.nd.array(data))
    module = export(net, tmp_path, shape)
    expected = train_mxnet(net, data, label, rate, outputs)
    found = train_torch(module, data, label, rate, outputs)
    assert expected[0] - expected[-1] > 0.1
    np.testing.assert_allclose(found, expected, atol=WITHIN, rtol=0)


class Norms(mx.gluon.HybridBlock):
    """Batch normalisations of all kinds."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.plain = mx.gluon.nn.BatchNorm(momentum=0.7, epsilon=2e-3, in_channels=4)
            self.fixed = mx.gluon.nn.BatchNorm(scale=False, in_channels=4)
            self.frozen = mx.gluon.nn.BatchNorm(use_global_stats=True, in_channels=4)
            self.drop = mx.gluon.nn.Dropout(0.25)

    def hybrid_forward(self, F: Any, x: Any) -> Any:  # noqa: N803
        return self.drop(self.frozen(self.fixed(self.plain(x))))


@pytest.fixture
def norms(tmp_path: Path) -> tuple[Any, Any]:
    """A net of normalisations, and the module that it becomes."""
    net = Norms()
    net.initialize()
    net.hybridize()
    net(mx.nd.zeros((2, 4, 3, 3)))
    return net, export(net, tmp_path, (2, 4, 3, 3))


def test_attributes_of_training_arrive(norms: tuple[Any, Any]) -> None:
    _, module = norms
    plain, fixed = (each for each in module.modules() if isinstance(each, torch.nn.BatchNorm2d))
    (drop,) = (each for each in module.modules() if isinstance(each, torch.nn.Dropout))
    assert (plain.momentum, plain.eps, plain.weight.requires_grad) == (0.3, 2e-3, True)
    assert (fixed.momentum, fixed.eps, fixed.weight.requires_grad) == (0.1, 1e-5, False)
    assert drop.p == 0.25


def test_statistics_are_gathered_as_by_mxnet(norms: tuple[Any, Any]) -> None:
    """PyTorch gathers the unbiased variance, MXNet the biased one."""
    net, module = norms
    data = np.random.default_rng(2).normal(1, 2, size=(2, 4, 3, 3)).astype(np.float32)
    with mx.autograd.record():
        net(mx.nd.array(data)).backward()
    mx.nd.waitall()
    module.train()(torch.from_numpy(data))
    plain = next(each for each in module.modules() if isinstance(each, torch.nn.BatchNorm2d))
    mean, variance = net.plain.running_mean.data(), net.plain.running_var.data()
    np.testing.assert_allclose(plain.running_mean, mean.asnumpy(), rtol=1e-5)
    count = 2 * 3 * 3
    gathered = (plain.running_var.numpy() - 0.7) * (count - 1) / count + 0.7
    np.testing.assert_allclose(gathered, variance.asnumpy(), rtol=1e-4)


def test_frozen_statistics_stay_in_training(norms: tuple[Any, Any]) -> None:
    net, module = norms
    frozen = net.frozen.running_mean.name
    key = next(name for name in module.state_dict() if name.endswith(frozen.split("_", 1)[1]))
    before = module.state_dict()[key].clone()
    module.train()(torch.randn(2, 4, 3, 3))
    assert torch.equal(module.state_dict()[key], before)
    assert key not in dict(module.named_parameters())
