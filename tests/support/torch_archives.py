"""Writes the archives of ``tests/golden/torch``, with inputs and outputs beside each.

    .venv-torch/bin/python tests/support/torch_archives.py

Weights and inputs are drawn from a fixed seed; expected outputs are PyTorch's own, of the module
before it was exported. Archives differ between runs in an identifier that PyTorch draws.
"""

from __future__ import annotations

import inspect
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch._export.serde.serialize import serialize
from torch.export import Dim

OLDER = ("cnn", "shared")
"""Cases that are written in the layout of older releases, too."""

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "torch"


class Case(NamedTuple):
    """A module with arguments.

    Attributes:
        module: The module.
        args: Arguments by position.
        kwargs: Arguments by name.
        shapes: Which of their dimensions may have any length.
        more: Further arguments, of other lengths.
        core: Whether the program is decomposed into core operators.
    """

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = MappingProxyType({})
    shapes: Any = None
    more: tuple[tuple[Any, ...], ...] = ()
    core: bool = False


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8))
        self.block = nn.Conv2d(8, 8, 3, padding=1, groups=2, bias=False)
        self.head = nn.Linear(8, 5)
        nn.init.uniform_(self.stem[1].running_mean, -1, 1)
        nn.init.uniform_(self.stem[1].running_var, 0.5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.stem(x))
        y = nn.functional.max_pool2d(y + self.block(y), 2)
        return torch.softmax(self.head(y.mean((2, 3))), -1)


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(10, 3)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, (h, _) = self.lstm(self.embedding(tokens))
        return self.head(y), h


class Block(nn.Module):
    """A block of a transformer with a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.mlp = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm(x)).view(batch, length, 3, 2, width // 2)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(x)


class Masked(nn.Module):
    """Attention whose mask is made of places that are counted, as language models make it."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, 8), nn.Embedding(16, 8)

    def forward(self, tokens: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        batch, length = tokens.shape
        place = torch.arange(length)
        x = self.words(tokens) + self.places(place[None])
        seen = (place[None] <= place[:, None])[None] & present[:, None].to(torch.bool)
        parts = x.view(batch, length, 2, 4).transpose(1, 2)
        mask = seen[:, None].expand(batch, -1, length, length)
        return nn.functional.scaled_dot_product_attention(parts, parts, parts, attn_mask=mask)


class Dynamic(nn.Module):
    """Lengths that are computed, a number as an input, several outputs by name."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3)

    def forward(
        self, x: torch.Tensor, scale: int, mode: str = "sum", mask: torch.Tensor | None = None
    ) -> dict[str, Any]:
        y = self.conv(x)
        flat = y.reshape(x.shape[0] * y.shape[2], -1)
        half = x[:, :, : x.shape[2] // 2]
        return {"flat": flat * scale, "half": half, "none": None, "length": x.shape[2] + 1}


class Shared(nn.Module):
    """Weights that share memory, or do not lie in order in theirs."""

    def __init__(self) -> None:
        super().__init__()
        whole = torch.randn(6, 10)
        self.linear = nn.Linear(4, 5)
        self.tied = self.linear.weight
        self.transposed = nn.Parameter(torch.randn(6, 5).t())
        self.register_buffer("left", whole[:, :4])
        self.register_buffer("right", whole[1:, 4:])
        self.register_buffer("steps", whole[::2, ::3])
        self.register_buffer("expanded", torch.tensor([[2.0], [3.0]]).expand(2, 5))
        self.register_buffer("narrow", torch.randn(5).bfloat16(), persistent=False)
        self.register_buffer("empty", torch.zeros(0, 5))
        self.register_buffer("permuted", torch.randn(2, 3, 4).permute(2, 0, 1))
        self.register_buffer("flags", torch.tensor([True, False, True, True, False]))
        self.scalar = torch.tensor(3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.linear(x) @ self.transposed
        z = y @ self.left @ self.tied.t() + self.narrow.float() * self.scalar
        w = torch.cat([z + self.expanded, self.empty])
        return w, self.right.sum(0) + y, self.steps * 2, self.permuted.sum(1), w * self.flags


class Branches(nn.Module):
    """A loop and nested branches, with parameters of the module around them."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        def more(i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return i < n

        def step(i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return i + 1, torch.tanh(self.linear(y))

        def inner(y: torch.Tensor) -> torch.Tensor:
            return torch.cond(y.max() > 2, lambda y: y * 2, lambda y: self.linear(y) - 1, (y,))

        i, y = torch.while_loop(more, step, (torch.zeros((), dtype=torch.int64), x))
        return i, y + torch.cond(x.sum() > 0, inner, lambda y: y - 1, (x,))


class Counter(nn.Module):
    """A buffer and an input that the module changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("cache", torch.zeros(3, 4))

    def forward(self, x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        self.cache.index_copy_(0, place, x)
        x.mul_(2)
        return self.cache.sum(0) * self.count + x


class Quantized(nn.Module):
    """Operators of PT2E: quantised per channel and per tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (4, 6), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(4) * 0.02 + 0.001)
        self.register_buffer("zeros", torch.zeros(4, dtype=torch.int64))
        self.bias = nn.Parameter(torch.randn(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ops = torch.ops.quantized_decomposed
        x = ops.quantize_per_tensor(x, 0.02, 3, -128, 127, torch.int8)
        x = ops.dequantize_per_tensor(x, 0.02, 3, -128, 127, torch.int8)
        weight = ops.dequantize_per_channel(
            self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8
        )
        y = torch.relu(nn.functional.linear(x, weight, self.bias))
        y = ops.quantize_per_tensor(y, 0.05, -128, -128, 127, torch.int8)
        return ops.dequantize_per_tensor(y, 0.05, -128, -128, 127, torch.int8)


def cases() -> dict[str, Callable[[], Case]]:
    """Return the cases by name."""
    batch = Dim("batch", min=1, max=64)
    image = torch.randn
    return {
        "cnn": lambda: Case(
            Cnn(), (image(2, 3, 12, 12),), shapes=({0: batch},), more=((image(5, 3, 12, 12),),)
        ),
        "cnn_core": lambda: Case(Cnn(), (image(2, 3, 12, 12),), core=True),
        "lstm": lambda: Case(
            Lstm(), (torch.randint(0, 11, (2, 7)),), more=((torch.randint(0, 11, (2, 7)),),)
        ),
        "block": lambda: Case(
            Block(),
            (image(2, 5, 8),),
            shapes=({0: batch, 1: Dim.DYNAMIC},),
            more=((image(3, 4, 8),),),
        ),
        "block_core": lambda: Case(Block(), (image(2, 5, 8),), core=True),
        "dynamic": lambda: Case(
            Dynamic(),
            (image(2, 2, 8), 3),
            {"mode": "sum"},
            {"x": {0: batch, 2: 2 * Dim("half", min=2, max=50)}, "scale": Dim.DYNAMIC}
            | {"mode": None},
            more=((image(3, 2, 12), 5),),
        ),
        "masked": lambda: Case(
            Masked(),
            (torch.randint(0, 20, (2, 5)), torch.tensor([[1, 1, 1, 1, 0], [1] * 5])),
            shapes=({0: batch, 1: Dim("length", min=2, max=16)},) * 2,
            more=((torch.randint(0, 20, (3, 4)), torch.ones(3, 4, dtype=torch.int64)),),
        ),
        "shared": lambda: Case(Shared(), (image(2, 4),)),
        "branches": lambda: Case(
            Branches(),
            (image(2, 3).abs(), torch.tensor(4)),
            more=((image(2, 3).abs() + 3, torch.tensor(0)), (-image(2, 3).abs(), torch.tensor(2))),
        ),
        "counter": lambda: Case(Counter(), (image(2, 4), torch.tensor([2, 0])), core=True),
        "counter_in_place": lambda: Case(Counter(), (image(2, 4), torch.tensor([2, 0]))),
        "quantized": lambda: Case(Quantized(), (image(3, 6),)),
    }


def write(name: str, case: Case, *, older: bool = False) -> None:
    """Write one archive, and its inputs and outputs as ``<name>.npz``.

    Args:
        name: What it is called.
        case: The module with arguments.
        older: Whether to write it as PyTorch 2.7 laid it out, and nothing beside it.
    """
    module = case.module.eval()
    program = torch.export.export(module, case.args, dict(case.kwargs), dynamic_shapes=case.shapes)
    if case.core:
        program = program.run_decompositions()
    _shorten_traces(program.graph_module)
    if older:
        (GOLDEN / "older").mkdir(exist_ok=True)
        _write_older(GOLDEN / "older" / f"{name}.pt2", program)
        return
    torch.export.save(program, GOLDEN / f"{name}.pt2")
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    with torch.no_grad():
        for turn, args in enumerate((case.args, *case.more)):
            arrays |= {f"{turn}.{key}": each for key, each in _run(case, args).items()}
    np.savez_compressed(GOLDEN / f"{name}.npz", **arrays)


def _write_older(path: Path, program: torch.export.ExportedProgram) -> None:
    """Write an archive in the layout of PyTorch 2.7, whose pickles PyTorch makes still."""
    artifact = serialize(program)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {
            "serialized_exported_program.json": artifact.exported_program,
            "serialized_state_dict.pt": artifact.state_dict,
            "serialized_constants.pt": artifact.constants,
            "serialized_example_inputs.pt": artifact.example_inputs,
            "version": b"8.7",
        }.items():
            archive.writestr(zipfile.ZipInfo(name), content)


def _shorten_traces(module: torch.fx.GraphModule) -> None:
    """Leave out of stack traces where this program and PyTorch are installed."""
    for inner in module.modules():
        for node in inner.graph.nodes if isinstance(inner, torch.fx.GraphModule) else ():
            trace = node.meta.get("stack_trace")
            if trace:
                trace = trace.replace(f"{Path(torch.__file__).parents[1]}/", "/site-packages/")
                node.meta["stack_trace"] = trace.replace(f"{GOLDEN.parents[2]}/", "")


def _run(case: Case, args: tuple[Any, ...]) -> dict[str, np.ndarray[Any, Any]]:
    """Return arguments, outputs and new values of buffers and arguments that a module changes."""
    module = case.module
    before = {name: each.clone() for name, each in module.state_dict().items()}
    given = [each.clone() if isinstance(each, torch.Tensor) else each for each in args]
    found = module(*given, **case.kwargs)
    values = list(found.values()) if isinstance(found, dict) else found
    arrays = _arrays("input", args)
    arrays |= _arrays("output", values if isinstance(values, tuple | list) else [values])
    names = list(inspect.signature(module.forward).parameters)
    after = {**module.state_dict(), **dict(zip(names, given, strict=False))}
    before |= dict(zip(names, args, strict=False))
    for name, each in after.items():
        if isinstance(each, torch.Tensor) and not torch.equal(each, before[name]):
            arrays[f"{name}_new"] = each.numpy().copy()
            each.copy_(before[name])
    return arrays


def _arrays(title: str, values: Any) -> dict[str, np.ndarray[Any, Any]]:
    kept = [each for each in values if each is not None]
    return {f"{title}.{place}": np.asarray(each) for place, each in enumerate(kept)}


def main() -> None:
    """Write all archives, or those that are named."""
    import torch.ao.quantization.fx._decomposed  # declares operators of PT2E

    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or cases():
        torch.manual_seed(14)
        write(name, cases()[name]())
        if name in OLDER:
            torch.manual_seed(14)
            write(name, cases()[name](), older=True)


if __name__ == "__main__":
    main()
