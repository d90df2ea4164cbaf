"""Scripts of PyTorch with inputs and attributes of every kind, and what changes them."""

from collections.abc import Callable
from typing import Dict, List, NamedTuple, Optional, Tuple  # noqa: UP035

import torch
from torch import Tensor, nn

__all__ = ["QUANTIZED", "SCRIPTS"]

# TorchScript reads the annotations of this module as they stand.
# ruff: noqa: UP006, UP045, SIM108


class Point(NamedTuple):
    x: Tensor
    y: Tensor


class Tuples(nn.Module):
    def forward(self, x: Tensor, pair: Tuple[Tensor, int]) -> Tuple[Tensor, Tensor]:
        return x + pair[0] * pair[1], x


class Lists(nn.Module):
    def forward(self, x: Tensor, parts: List[Tensor]) -> List[Tensor]:
        return [x + parts[0], torch.cat(parts)]


class Dicts(nn.Module):
    def forward(self, x: Tensor, named: Dict[str, Tensor]) -> Dict[str, Tensor]:
        return {"y": x + named["a"], "z": named["b"]}


class Numbered(nn.Module):
    def forward(self, x: Tensor, named: Dict[int, Tensor]) -> Tensor:
        return x + named[3]


class Named(nn.Module):
    def forward(self, x: Tensor, point: Point) -> Point:
        return Point(x + point.x, point.y)


class Optionals(nn.Module):
    def forward(
        self, x: Tensor, y: Optional[Tensor] = None, scale: float = 2.0, text: str = "a"
    ) -> Tensor:
        if y is not None:
            x = x + y
        return x * scale if text == "a" else x


class Numbers(nn.Module):
    def forward(self, x: Tensor, count: int, scale: float, flag: bool) -> Tensor:
        return x * scale + count if flag else x


class Attributes(nn.Module):
    sizes: List[int]
    table: Dict[str, Tensor]
    parts: List[Tensor]
    mixed: Tuple[int, Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.sizes = [1, 2, 3]
        self.table = {"a": torch.ones(3), "b": torch.zeros(3)}
        self.parts = [torch.ones(3), torch.ones(1)]
        self.mixed = (2, torch.ones(3))
        self.kind = torch.float16
        self.place = torch.device("cpu")
        self.text = "sum"
        self.number = 1.5
        self.nothing: Optional[Tensor] = None
        self.low = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
        self.turned = nn.Parameter(torch.arange(12.0).reshape(3, 4).t()[::1, :])
        self.row = nn.Parameter(torch.ones(1, 3).expand(4, 3))

    def forward(self, x: Tensor) -> Tensor:
        if self.nothing is not None:
            x = x + self.nothing
        y = x + self.table["a"] + self.parts[0] + self.mixed[1] * self.mixed[0]
        y = y.to(self.place).to(self.kind).float() * self.number + self.low.float()
        for size in self.sizes:
            y = y + size
        return y + self.row if self.text == "sum" else y + self.turned


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.register_buffer("total", torch.zeros(3))
        self.inner = nn.BatchNorm1d(3)

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.total = self.total + x.sum(0)
        return self.inner(x) + self.total * self.count


class Branches(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            y = x + 1
        else:
            y = x - 1
        count = 0
        while count < 3:
            y = y * 2
            count += 1
        for each in range(int(x.size(0))):
            y = y + each
        assert y.dim() == 2, "two axes"
        if y.size(0) > 100:
            raise RuntimeError("too many")
        return y


@torch.jit.script
class Pair:
    def __init__(self, x: Tensor, y: int) -> None:
        self.x = x
        self.y = y

    def scale(self) -> Tensor:
        return self.x * self.y


class Objects(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pair = Pair(x, 3)
        pair.y = pair.y + 1
        value = torch.jit.annotate(Optional[Tensor], x)
        if torch.jit.isinstance(value, Tensor):
            return pair.scale() + value
        return pair.scale()


class Strided(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = torch.as_strided(x, [4, 3], [3, 1]) + torch.as_strided(x, [4, 3], [1, 4])
        return y + torch.arange(3, device=x.device, dtype=torch.float)


SCRIPTS = {
    "tuples": (Tuples, {"x": [4, 3], "pair.0": [4, 3]}),
    "tuples-alone": (Tuples, {"x": [4, 3]}),
    "lists": (Lists, {"x": [4, 3], "parts.0": [4, 3], "parts.1": [4, 3]}),
    "lists-empty": (Lists, {"x": [4, 3]}),
    "dicts": (Dicts, {"x": [4, 3], "named.a": [4, 3], "named.b": [4, 3]}),
    "dicts-empty": (Dicts, {"x": [4, 3]}),
    "numbered": (Numbered, {"x": [4, 3], "named.3": [4, 3]}),
    "numbered-text": (Numbered, {"x": [4, 3], "named.z": [4, 3]}),
    "named": (Named, {"x": [4, 3], "point.0": [4, 3], "point.1": [2]}),
    "optionals": (Optionals, {"x": [4, 3]}),
    "optionals-given": (Optionals, {"x": [4, 3], "y": [4, 3], "scale": []}),
    "optionals-text": (Optionals, {"x": [4, 3], "text": []}),
    "numbers": (Numbers, {"x": [4, 3]}),
    "attributes": (Attributes, {"x": [4, 3]}),
    "counter": (Counter, {"x": [4, 3]}),
    "branches": (Branches, {"x": [4, 3]}),
    "objects": (Objects, {"x": [4, 3]}),
    "strided": (Strided, {"x": [4, 3]}),
}
"""Modules, and the shapes that are given for them."""


def _quantized(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    """Return what makes a module of one quantised layer, whose weights are packed."""

    def build() -> nn.Module:
        class Quantized(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = make()

            def forward(self, x: Tensor) -> Tensor:
                return self.layer(torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)).dequantize()

        return Quantized()

    return build


def _tables() -> nn.Module:
    class Tables(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = torch.quantize_per_tensor(torch.ones(3), 0.1, 3, torch.qint8)
            scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.zeros(3, dtype=torch.int64)
            self.many = torch.quantize_per_channel(torch.ones(3, 2), scales, zeros, 0, torch.qint8)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.one.dequantize() + self.many.dequantize().sum()

    return Tables()


def _dynamic(kind: type[nn.Module], *sizes: int) -> nn.Module:
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(kind(*sizes)), {kind})


QUANTIZED = {
    "linear": (_quantized(lambda: torch.ao.nn.quantized.Linear(3, 4)), [4, 3]),
    "conv": (_quantized(lambda: torch.ao.nn.quantized.Conv2d(3, 4, 3, padding=1)), [1, 3, 5, 5]),
    "tables": (_tables, [4, 3]),
    "dynamic": (lambda: _dynamic(nn.Linear, 3, 4), [4, 3]),
    "lstm": (lambda: _dynamic(nn.LSTM, 3, 4)[0], [4, 1, 3]),
    "gru": (lambda: _dynamic(nn.GRU, 3, 4)[0], [4, 1, 3]),
    "embedding": (
        lambda: torch.ao.nn.quantized.EmbeddingBag(10, 4, mode="sum", include_last_offset=True),
        [4],
    ),
}
"""What makes modules with packed parameters, and the shape of their input."""
