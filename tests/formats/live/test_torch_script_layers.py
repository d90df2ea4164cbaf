"""Layers of PyTorch in programs of TorchScript, fused ones among them, against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from support.torch_compiled import X, compare, interpret, script, trace  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import serde  # noqa: E402


class Tagger(nn.Module):
    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.layers = getattr(nn, kind)(3, 5, 2, **options)

    def forward(self, x: Tensor) -> Any:
        return self.layers(x)


class Attention(nn.Module):
    def __init__(self, weights: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.weights = weights

    def forward(self, x: Tensor, y: Tensor) -> Any:
        found, weights = self.attention(x, y, y, need_weights=self.weights)
        return (found, weights) if weights is not None else found


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2)
        )
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.classify = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        y = self.up(self.layers(x))
        y = nn.functional.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=False)
        return self.classify(nn.functional.adaptive_avg_pool2d(y, 1).flatten(1))


def layers() -> dict[str, tuple[nn.Module, tuple[Tensor, ...]]]:
    torch.manual_seed(5)
    steps, text = torch.randn(4, 2, 3), torch.randn(2, 5, 8)
    return {
        "mlp": (nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)), (X,)),
        "convolutions": (Convolutions(), (torch.randn(2, 3, 8, 8),)),
        "lstm": (Tagger("LSTM", bidirectional=True), (steps,)),
        "gru": (Tagger("GRU", batch_first=True), (steps,)),
        "rnn": (Tagger("RNN"), (steps,)),
        "embedding_bag": (nn.EmbeddingBag(9, 4, mode="sum"), (torch.tensor([[1, 2], [3, 8]]),)),
        "attention": (Attention(True), (text, text[:, :3])),
        "attention_alone": (Attention(False), (text, text[:, :3])),
        "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (text,)),
        "encoder_before": (
            nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", norm_first=True), (text,),
        ),
        "decoder": (nn.TransformerDecoderLayer(8, 2, 16), (text, text[:, :, :])),
        "transformer": (nn.Transformer(8, 2, 1, 1, 16, batch_first=True), (text, text[:, :2])),
    }  # fmt: skip


LAYERS = tuple(layers())


@pytest.mark.parametrize("name", LAYERS)
def test_traced_layers(name: str) -> None:
    module, inputs = layers()[name]
    traced = trace(module, *inputs)
    compare(interpret(serde.to_relay(traced), *inputs), traced(*inputs))


@pytest.mark.parametrize("name", LAYERS)
def test_scripted_layers(name: str) -> None:
    module, inputs = layers()[name]
    scripted = script(module)
    names = [each.name for each in scripted.forward.schema.arguments[1:]]
    given = dict(zip(names, inputs, strict=False))
    model = serde.to_relay(
        scripted,
        input_shapes={key: tuple(each.shape) for key, each in given.items()},
        input_dtypes={key: str(each.dtype).removeprefix("torch.") for key, each in given.items()},
    )
    with torch.no_grad():
        compare(interpret(model, *inputs), scripted(*inputs))


class Fused(nn.Module):
    """The attention of several heads that PyTorch's fast path records."""

    def __init__(self, weights: bool, average: bool, kind: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(2)
        self.given = nn.ParameterList(
            torch.randn(shape, generator=generator) * 0.4 for shape in ((24, 8), 24, (8, 8), 8)
        )
        self.weights, self.average, self.kind = weights, average, kind

    def forward(self, x: Tensor, mask: Tensor) -> Any:
        found, weights = torch._native_multi_head_attention(
            x, x, x, 8, 2, *self.given, mask, self.weights, self.average, self.kind
        )
        return (found, weights) if self.weights else found


MASKS = {
    "of queries": (0, torch.tensor([[False, True, False], [False] * 3, [True, False, False]])),
    "of keys": (1, torch.tensor([[False, False, True], [False] * 3])),
    "of all": (2, torch.tensor([False, True, False]).expand(2, 2, 3, 3)),
    "of floats": (0, torch.tensor([[0.0, float("-inf"), 0.0], [0.0] * 3, [0.0, 0.0, -0.5]])),
    "of nothing": (1, torch.tensor([[True] * 3, [False] * 3])),
}


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize(
    ("weights", "average"), [(True, True), (True, False), (False, True)], ids=str
)
def test_fused_attention(weights: bool, average: bool, kind: str) -> None:
    number, mask = MASKS[kind]
    x = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(1))
    traced = trace(Fused(weights, average, number), x, mask)
    with torch.no_grad():
        compare(interpret(serde.to_relay(traced), x, mask), traced(x, mask))


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_fused_encoder_layers(activation: str, first: bool, padded: bool) -> None:
    torch.manual_seed(4)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.1, activation, 1e-5, True, first).eval()

    class Padded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Tensor, padding: Tensor) -> Tensor:
            return self.layer(x, src_key_padding_mask=padding)

    x = torch.randn(2, 3, 8)
    inputs = (x, torch.tensor([[False, False, True], [False] * 3]))[: 1 + padded]
    traced = trace(Padded() if padded else layer, *inputs)
    assert "_transformer_encoder_layer_fwd" in str(traced.inlined_graph)
    with torch.no_grad():
        compare(interpret(serde.to_relay(traced), *inputs), traced(*inputs))


def test_a_traced_dimension_may_be_made_open() -> None:
    traced = trace(Convolutions(), torch.randn(2, 3, 8, 8))
    model = serde.to_relay(traced, input_shapes={"x": ("n", 3, 8, 8)}, allow=["other-lengths"])
    x = torch.randn(5, 3, 8, 8)
    with torch.no_grad():
        compare(interpret(model, x), traced(x))


POOLS = {
    "mean": nn.AvgPool2d(64, ceil_mode=True),
    "mean with padding": nn.AvgPool2d(8, padding=3, ceil_mode=True),
    "mean of the data": nn.AvgPool2d(8, padding=2, ceil_mode=True, count_include_pad=False),
    "sum": nn.AvgPool2d((9, 2), ceil_mode=True, divisor_override=7),
    "maximum": nn.MaxPool2d(64, ceil_mode=True),
    "apart": nn.MaxPool2d((4, 2), stride=(9, 1), dilation=(3, 1), ceil_mode=True),
}


@pytest.mark.parametrize("open_lengths", [False, True])
@pytest.mark.parametrize("name", POOLS)
def test_windows_longer_than_the_data(name: str, open_lengths: bool) -> None:
    """Rounding up lets them be, as in the last layer of EfficientNet."""
    x = torch.randn(2, 3, 5, 4)
    options: dict[str, Any] = {}
    if open_lengths:
        shape = ("n", 3, "h", 4) if POOLS[name].padding == 0 else ("n", 3, 5, 4)
        options = {"input_shapes": {"input": shape}, "allow": ["other-lengths"]}
    model = serde.to_relay(trace(POOLS[name], x), **options)
    compare(interpret(model, x), POOLS[name](x))
