"""Quantised programs of PyTorch: the integers that they compute, beside PyTorch's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import serde
from serde.engine.interpreter import RelayEngine

torch = pytest.importorskip("torch")
nn = torch.nn
F = torch.nn.functional

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _engine() -> Any:
    """The kernels of x86 with the seed of every case."""
    before = torch.backends.quantized.engine
    if "x86" not in torch.backends.quantized.supported_engines:
        pytest.skip("needs the quantised kernels of x86")
    torch.backends.quantized.engine = "x86"
    torch.manual_seed(0)
    yield
    torch.backends.quantized.engine = before


class _One(nn.Module):
    """A function of one quantised tensor."""

    def __init__(self, function: Callable[..., Any], dtype: Any) -> None:
        super().__init__()
        self.function, self.dtype = function, dtype

    def forward(self, x: Any) -> Any:
        zero = 60 if self.dtype == torch.quint8 else -4
        found = self.function(torch.quantize_per_tensor(x, 0.0535, zero, self.dtype))
        return found.int_repr() if found.is_quantized else found


class _Two(_One):
    """A function of two."""

    def forward(self, x: Any, y: Any) -> Any:
        zero = 60 if self.dtype == torch.quint8 else -4
        a = torch.quantize_per_tensor(x, 0.0535, zero, self.dtype)
        b = torch.quantize_per_tensor(y, 0.107, zero + 41, self.dtype)
        return self.function(a, b).int_repr()


def _run(module: Any, *inputs: Any) -> tuple[list[Any], list[Any]]:
    """Return what the interpreter makes of a traced module, and what PyTorch does."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(module.eval(), inputs)
        expected = module(*inputs)
    engine = RelayEngine(serde.to_relay(traced))
    given = {n: x.numpy() for n, x in zip(engine.inputs, inputs, strict=True)}
    results = expected if isinstance(expected, tuple) else (expected,)
    return engine.run(given), [each.numpy() for each in results]


def _check_equal(module: Any, *inputs: Any) -> None:
    found, expected = _run(module, *inputs)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


OPS = torch.ops.quantized
_SLOPES = torch.tensor([0.5, 0.9, 1.3, 0.7])
_SCALES = torch.tensor([0.061, 0.1, 0.25, 0.033])
_ZEROS = torch.tensor([1, 0, 5, 3])
_VARIANCE = torch.tensor([0.6, 1.1, 1.4, 0.8])

UNARY: dict[str, Callable[..., Any]] = {
    "dequantize": lambda a: a.dequantize(),
    "dequantize_a_list": lambda a: torch.dequantize([a, a.flip(1)])[1],
    "adaptive_avg_pool2d": lambda a: F.adaptive_avg_pool2d(a, 1),
    "avg_pool2d": lambda a: F.avg_pool2d(a, 2),
    "mean": lambda a: a.mean([2, 3]),
    "max_pool2d": lambda a: F.max_pool2d(a, 3, 2, 1),
    "relu": F.relu,
    "relu6": F.relu6,
    "clamp": lambda a: torch.clamp(a, -0.5, 1.1),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": lambda a: OPS.hardswish(a, 0.05, 20),
    "leaky_relu": lambda a: OPS.leaky_relu(a, 0.1, False, 0.05, 20),
    "leaky_relu_of_its_scale": lambda a: F.leaky_relu(a, 0.2),
    "prelu": lambda a: OPS.prelu(a, torch.quantize_per_tensor(_SLOPES, 0.01, 3, a.dtype), 0.05, 9),
    "hardtanh": lambda a: F.hardtanh(a, -0.3, 0.9),
    "clamp_below": lambda a: torch.clamp(a, min=-0.3),
    "quantized_relu6": lambda a: OPS.relu6(a, False),
    "quantized_sigmoid": lambda a: OPS.sigmoid(a, 0.01, 20),
    "less": lambda a: a < a.flip(3),
    "elu": lambda a: OPS.elu(a, 0.05, 20, 1.3, 1.1, 0.9),
    "celu": lambda a: OPS.celu(a, 0.05, 20, 1.3),
    "softmax": lambda a: OPS.softmax(a, 1, 1 / 256, 0),
    "threshold": lambda a: OPS.threshold(a, 0.3, 0.5),
    "batch_norm2d": lambda a: OPS.batch_norm2d(
        a, _SLOPES, _VARIANCE, _SLOPES, _VARIANCE, 1e-5, 0.03, 100
    ),
    "batch_norm_relu": lambda a: OPS.batch_norm_relu(
        a, _SLOPES, _VARIANCE, _SLOPES, _VARIANCE, 1e-5, 0.03, 100
    ),
    "layer_norm": lambda a: OPS.layer_norm(a, [8], None, None, 1e-5, 0.03, 100),
    "instance_norm": lambda a: OPS.instance_norm(a, _SLOPES, _VARIANCE, 1e-5, 0.03, 100),
    "group_norm": lambda a: OPS.group_norm(a, 2, _SLOPES, _VARIANCE, 1e-5, 0.03, 100),
    "add_scalar": lambda a: OPS.add_scalar(a, 0.35),
    "add_scalar_out_of_range": lambda a: OPS.add_scalar_relu(a, -17.35),
    "add_tensor": lambda a: OPS.add_scalar(a, torch.tensor(0.4)),
    "mul_scalar": lambda a: OPS.mul_scalar_relu(a, -0.35),
    "mul_zero": lambda a: OPS.mul_scalar(a, 0.0),
    "upsample_nearest2d": lambda a: F.interpolate(a, scale_factor=2),
    "views": lambda a: a[:, 1:3].permute(0, 2, 1, 3).reshape(2, -1).unsqueeze(1),
    "chunks": lambda a: OPS.add(*a.chunk(2, 1), 0.1, 30),
    "constant_pad_nd": lambda a: F.pad(a, (1, 2), value=0.4),
    "reflection_pad2d": lambda a: F.pad(a, (1, 2, 1, 0), mode="reflect"),
    "greatest": lambda a: a.max(1)[0],
    "int_repr": lambda a: a.int_repr().to(torch.int32) + 1,
    "requantize": lambda a: torch.quantize_per_tensor(a.dequantize(), 0.25, 7, torch.quint8),
    "requantize_by_tensors": lambda a: torch.quantize_per_tensor(
        a.dequantize(), torch.tensor(0.02), torch.tensor(4), torch.quint8
    ),
    "simulated_by_tensors": lambda a: torch.fake_quantize_per_tensor_affine(
        a.dequantize(), torch.tensor(0.25), torch.tensor(3).int(), 0, 100
    ),
    "per_channel": lambda a: torch.quantize_per_channel(
        a.dequantize(), _SCALES, _ZEROS, 1, torch.qint8
    ),
}

BINARY: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: OPS.add(a, b, 0.08, 70),
    "add_relu": lambda a, b: OPS.add_relu(a, b, 0.08, 70),
    "add_of_one_scale": lambda a, b: OPS.add(a, a, 0.107, 33),
    "mul": lambda a, b: OPS.mul(a, b, 0.08, 70),
    "mul_relu": lambda a, b: OPS.mul_relu(a, b, 0.08, 70),
    "cat_relu": lambda a, b: OPS.cat_relu([a, b], 1, 0.0535, 71),
    "cat": lambda a, b: OPS.cat([a, b], 1, 0.0535, 71),
    "torch_cat": lambda a, b: torch.cat([a, b], 1),
    "matmul": lambda a, b: OPS.matmul(a, b.transpose(2, 3), 0.3, 30),
}


@pytest.mark.parametrize("dtype", ["quint8", "qint8"])
@pytest.mark.parametrize("name", UNARY)
def test_functions_give_the_same_integers(name: str, dtype: str) -> None:
    _check_equal(_One(UNARY[name], getattr(torch, dtype)), torch.randn(2, 4, 8, 8) * 2)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_give_the_same_integers(name: str) -> None:
    inputs = (torch.randn(2, 4, 8, 8) * 2, torch.randn(2, 4, 8, 8) * 2)
    _check_equal(_Two(BINARY[name], torch.quint8), *inputs)


@pytest.mark.parametrize("scale", [0.25, 0.1, 0.037])
@pytest.mark.parametrize("zero_point", [0, 3, 120])
def test_halves_of_steps_are_rounded_as_by_pytorch(scale: float, zero_point: int) -> None:
    halves = ((np.arange(-150, 150) + 0.5) * np.float32(scale)).astype(np.float32)
    near = [halves, np.nextafter(halves, np.float32(np.inf)), np.nextafter(halves, np.float32(0))]

    class Quantize(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.quantize_per_tensor(x, scale, zero_point, torch.quint8).int_repr()

    # Kernels work in vectors, and otherwise on what is left over.
    rows = np.concatenate(near)[: 16 * 56]
    _check_equal(Quantize(), torch.from_numpy(rows))


class _Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm1, self.relu = nn.BatchNorm2d(width), nn.ReLU()
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.add = nn.quantized.FloatFunctional()

    def forward(self, x: Any) -> Any:
        y = self.relu(self.norm1(self.conv1(x)))
        return self.add.add_relu(self.norm2(self.conv2(y)), x)


class _Net(nn.Module):
    """A residual net as users write it for quantisation."""

    def __init__(self) -> None:
        super().__init__()
        quantization = torch.ao.quantization
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.norm, self.relu = nn.Conv2d(3, 8, 5, 2, 2), nn.BatchNorm2d(8), nn.ReLU()
        self.pool, self.blocks = nn.MaxPool2d(3, 2, 1), nn.Sequential(_Block(8), _Block(8))
        self.depthwise = nn.Conv2d(8, 8, 3, groups=8, padding=1)
        self.mean, self.dense = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 10)

    def forward(self, x: Any) -> Any:
        x = self.pool(self.relu(self.norm(self.conv(self.quant(x)))))
        x = self.mean(self.depthwise(self.blocks(x)))
        return self.dequant(self.dense(torch.flatten(x, 1)))


def _quantize(net: Any, inputs: Any) -> Any:
    quantization = torch.ao.quantization
    net.eval()
    quantization.fuse_modules(net, [["conv", "norm", "relu"]], inplace=True)
    for block in net.blocks:
        pairs = [["conv1", "norm1", "relu"], ["conv2", "norm2"]]
        quantization.fuse_modules(block, pairs, inplace=True)
    net.qconfig = quantization.get_default_qconfig("x86")
    quantization.prepare(net, inplace=True)
    net(inputs)
    return quantization.convert(net, inplace=True)


def test_a_residual_net_quantised_in_eager_mode_is_exact() -> None:
    x = torch.randn(2, 3, 32, 32)
    _check_equal(_quantize(_Net(), x), x)


class _Layer(nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        quantization = torch.ao.quantization
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        return self.dequant(self.layer(self.quant(x)))


LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "conv1d": (lambda: nn.Conv1d(3, 8, 3, stride=2, padding=1), (2, 3, 9)),
    "conv2d": (lambda: nn.Conv2d(4, 8, 3, dilation=2, padding=1, groups=2), (2, 4, 9, 8)),
    "conv3d": (lambda: nn.Conv3d(3, 8, 3, padding=1), (2, 3, 5, 6, 4)),
    "linear": (lambda: nn.Linear(6, 5), (2, 3, 6)),
    "linear without bias": (lambda: nn.Linear(6, 5, bias=False), (4, 6)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_quantised_layers_are_exact(name: str) -> None:
    build, shape = LAYERS[name]
    quantization = torch.ao.quantization
    module, x = _Layer(build()).eval(), torch.randn(shape)
    module.qconfig = quantization.get_default_qconfig("x86")
    quantization.prepare(module, inplace=True)
    module(x)
    _check_equal(quantization.convert(module, inplace=True), x)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_transposed_layers_are_exact(ndim: int) -> None:
    """As fbgemm computes them, and floats beside them; oneDNN gives other sums."""
    torch.backends.quantized.engine = "fbgemm"
    kind = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[ndim - 1]
    quantization = torch.ao.quantization
    module, x = _Layer(kind(4, 6, 3, stride=2)).eval(), torch.randn(2, 4, *range(4, 4 + ndim))
    observer = quantization.default_observer
    weight = quantization.default_weight_observer
    module.qconfig = quantization.QConfig(activation=observer, weight=weight)
    quantization.prepare(module, inplace=True)
    module(x)
    _check_equal(quantization.convert(module, inplace=True), x)


class _Sequences(nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        outputs, states = self.layer(x)
        return (outputs, *states) if isinstance(states, tuple) else (outputs, states)


DYNAMIC: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "linear": (lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), (6, 8)),
    "lstm": (lambda: _Sequences(nn.LSTM(8, 6, 2, bidirectional=True)), (5, 2, 8)),
    "gru": (lambda: _Sequences(nn.GRU(8, 6, batch_first=True)), (2, 5, 8)),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_layers_that_quantise_when_they_run(name: str) -> None:
    """A step of the quantised state would show as a hundredth."""
    build, shape = DYNAMIC[name]
    kinds = {nn.Linear, nn.LSTM, nn.GRU}
    module = torch.ao.quantization.quantize_dynamic(build().eval(), kinds)
    for found, expected in zip(*_run(module, torch.randn(shape)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["embedding", "bag"])
def test_tables_of_bytes(kind: str) -> None:
    table = nn.Embedding(20, 8) if kind == "embedding" else nn.EmbeddingBag(20, 8, mode="sum")
    holder = nn.Sequential(table).eval()
    quantization = torch.ao.quantization
    table.qconfig = quantization.float_qparams_weight_only_qconfig
    quantization.prepare(holder, inplace=True)
    quantization.convert(holder, inplace=True)
    shape = (7,) if kind == "embedding" else (3, 4)
    (found,), (expected,) = _run(holder, torch.randint(0, 20, shape))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


class _Decomposed(nn.Module):
    """A graph as quantisation of PyTorch 2 export leaves it."""

    def __init__(self) -> None:
        super().__init__()
        weight = torch.randn(5, 6)
        self.register_buffer("scales", weight.abs().amax(1) / 127)
        self.register_buffer("zeros", torch.zeros(5, dtype=torch.int64))
        whole = torch.round(weight / self.scales[:, None]).to(torch.int8)
        self.register_buffer("weight", whole)

    def forward(self, x: Any) -> Any:
        ops = torch.ops.quantized_decomposed
        data = ops.quantize_per_tensor(x, 0.0371, 131, 0, 255, torch.uint8)
        real = ops.dequantize_per_tensor(data, 0.0371, 131, 0, 255, torch.uint8)
        weight = ops.dequantize_per_channel(
            self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8
        )
        found = F.linear(real, weight)
        scale, zero = ops.choose_qparams.tensor(found, -128, 127, 1e-5, torch.int8)
        narrow = ops.quantize_per_tensor.tensor(found, scale, zero, -128, 127, torch.int8)
        reduced = ops.quantize_per_tensor(found, 0.05, 3, 0, 127, torch.uint8)
        token_scale, token_zero = ops.choose_qparams_per_token_asymmetric(found, torch.int8)
        token = ops.quantize_per_token(found, token_scale, token_zero, -128, 127, torch.int8)
        return data, narrow, reduced, token


def test_decomposed_quantisation_gives_the_same_integers() -> None:
    import torch.ao.quantization.fx._decomposed

    module, x = _Decomposed().eval(), torch.randn(40, 6) * 2
    expected = [each.numpy() for each in module(x)]
    engine = RelayEngine(serde.to_relay(torch.export.export(module, (x,))))
    for found, other in zip(engine.run({"x": x.numpy()}), expected, strict=True):
        assert found.dtype == other.dtype
        np.testing.assert_array_equal(found, other)


@pytest.mark.parametrize("with_zeros", [True, False])
def test_decomposed_quantisation_in_groups(with_zeros: bool) -> None:
    import torch.ao.quantization.fx._decomposed

    class Groups(nn.Module):
        def forward(self, x: Any, scales: Any, zeros: Any) -> Any:
            ops = torch.ops.quantized_decomposed
            whole = ops.quantize_per_channel_group(x, scales, zeros, -8, 7, torch.int8, 4)
            given = zeros if with_zeros else None
            real = ops.dequantize_per_channel_group(
                whole, scales, given, -8, 7, torch.int8, 4, torch.float32
            )
            return whole, real

    inputs = torch.randn(3, 8), torch.rand(3, 2) + 0.1, torch.randint(-3, 4, (3, 2))
    expected = [each.numpy() for each in Groups()(*inputs)]
    engine = RelayEngine(serde.to_relay(torch.export.export(Groups(), inputs)))
    feeds = dict(zip(("x", "scales", "zeros"), (each.numpy() for each in inputs), strict=True))
    for found, other in zip(engine.run(feeds), expected, strict=True):
        assert found.dtype == other.dtype
        np.testing.assert_array_equal(found, other)


def test_simulated_quantisation() -> None:
    class Simulate(nn.Module):
        def forward(self, x: Any) -> Any:
            one = torch.fake_quantize_per_tensor_affine(x, 0.25, 3, 0, 255)
            scales, zeros = torch.tensor([0.25, 0.1]), torch.tensor([1, 5]).int()
            return one, torch.fake_quantize_per_channel_affine(x, scales, zeros, 0, -100, 127)

    halves = torch.tensor([(i + 0.5) * 0.25 for i in range(-8, 8)]).repeat(2, 1)
    _check_equal(Simulate(), halves)


def test_what_quantised_tensors_lack_is_said() -> None:
    module = _One(lambda a: F.interpolate(a, scale_factor=2, mode="bilinear"), torch.quint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(module, torch.randn(2, 4, 3, 3))
    with pytest.raises(serde.UnsupportedModelError, match="quantised tensors"):
        serde.to_relay(traced)
