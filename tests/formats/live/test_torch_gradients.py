"""Operators of ATen's core that give gradients, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import serde
from serde.engine.interpreter import RelayEngine

torch = pytest.importorskip("torch")
aten = torch.ops.aten

pytestmark = pytest.mark.filterwarnings("ignore")


class _Call(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def _check(function: Callable[..., Any], *inputs: Any) -> None:
    with torch.no_grad():
        expected = function(*inputs)
        program = torch.export.export(_Call(function), inputs)
    engine = RelayEngine(serde.to_relay(program))
    given = {n: x.numpy() for n, x in zip(engine.inputs, inputs, strict=True)}
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for found, other in zip(engine.run(given), wanted, strict=True):
        assert found.shape == tuple(other.shape)
        np.testing.assert_allclose(found, other.numpy(), rtol=1e-4, atol=1e-4)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


CONVOLUTIONS = [(1, 4, 1, 0, 1, 1), (2, 3, 2, 1, 2, 2), (2, 3, 3, 2, 1, 1), (3, 2, 2, 1, 1, 2)]


@pytest.mark.parametrize(("ndim", "size", "stride", "padding", "dilation", "groups"), CONVOLUTIONS)
def test_convolution(
    ndim: int, size: int, stride: int, padding: int, dilation: int, groups: int
) -> None:
    x, weight = torch.randn(2, 4, *[9, 8, 7][:ndim]), torch.randn(6, 4 // groups, *[size] * ndim)
    window = [[stride] * ndim, [padding] * ndim, [dilation] * ndim, False, [0] * ndim, groups]
    grad = torch.randn(aten.convolution(x, weight, None, *window).shape)

    def backward(grad: Any, x: Any, weight: Any) -> Any:
        return aten.convolution_backward(grad, x, weight, [6], *window, [True, True, True])

    _check(backward, grad, x, weight)


def test_max_pool() -> None:
    x, window = torch.randn(2, 3, 8, 9), ([3, 3], [2, 2], [1, 1], [1, 1], False)
    found, indices = aten.max_pool2d_with_indices(x, *window)
    _check(
        lambda grad, x, indices: aten.max_pool2d_with_indices_backward(grad, x, *window, indices),
        torch.randn(found.shape), x, indices,
    )  # fmt: skip


AVERAGES = [
    (2, 2, 0, True, None),
    (3, 2, 1, True, None),
    (3, 1, 1, False, 5),
    (3, 2, 0, False, None),
]


@pytest.mark.parametrize(("size", "stride", "padding", "counts", "divisor"), AVERAGES)
def test_average_pool(
    size: int, stride: int, padding: int, counts: bool, divisor: int | None
) -> None:
    x = torch.randn(2, 3, 8, 9)
    window = ([size] * 2, [stride] * 2, [padding] * 2, False, counts, divisor)
    grad = torch.randn(aten.avg_pool2d(x, *window).shape)
    _check(lambda grad, x: aten.avg_pool2d_backward(grad, x, *window), grad, x)


def test_adaptive_average_pool() -> None:
    x, grad = torch.randn(2, 3, 8, 9), torch.randn(2, 3, 3, 4)
    _check(aten._adaptive_avg_pool2d_backward, grad, x)


def test_embedding() -> None:
    indices = torch.tensor([[1, 2, 6], [1, 1, 0]])
    _check(
        lambda grad, indices: aten.embedding_dense_backward(grad, indices, 7, 2, False),
        torch.randn(2, 3, 4), indices,
    )  # fmt: skip


def test_layer_norm() -> None:
    x, weight, bias = torch.randn(2, 3, 8, 9), torch.randn(8, 9), torch.randn(8, 9)
    _, mean, inverse = aten.native_layer_norm(x, [8, 9], weight, bias, 1e-5)

    def backward(grad: Any, x: Any, *rest: Any) -> Any:
        return aten.native_layer_norm_backward(grad, x, [8, 9], *rest, [True, True, True])

    _check(backward, torch.randn(x.shape), x, mean, inverse, weight, bias)


def test_group_norm() -> None:
    x, weight = torch.randn(2, 6, 5, 4), torch.randn(6)
    _, mean, inverse = aten.native_group_norm(x, weight, weight, 2, 6, 20, 3, 1e-5)

    def backward(grad: Any, x: Any, *rest: Any) -> Any:
        return aten.native_group_norm_backward(grad, x, *rest, 2, 6, 20, 3, [True, True, True])

    _check(backward, torch.randn(x.shape), x, mean, inverse, weight)
