"""Archives beside the programs that PyTorch has in memory: the same graph, the same numbers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
archives = pytest.importorskip("support.torch_archives")
nets = pytest.importorskip("support.torch_nets")
sequences = pytest.importorskip("support.torch_sequences")

from support.pt2 import archive_of, members_of  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.export import Dim  # noqa: E402

from serde.torch.live.exported import from_exported_program  # noqa: E402
from serde.torch.model import Graph, TorchModel  # noqa: E402
from serde.torch.pt2.reader import load_archive  # noqa: E402

# PyTorch warns of itself when it exports and saves.
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


class Numbers(nn.Module):
    """Arithmetic of lengths and numbers."""

    def forward(self, x: Tensor, n: int) -> tuple[Any, ...]:
        length = x.shape[0] * 2 + n
        part = x[: max(1, x.shape[0] // 2)]
        y = x.new_zeros(x.shape[0] + 1) + n / 2
        return part, y, length, torch.arange(length - n), x.sum().item(), x.nonzero()


class Lists(nn.Module):
    """Operators of several results, of which some are used, used twice or not at all."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        first, second, _ = torch.split(x, 2)
        values, _ = torch.max(x, 1)
        a, _, _, d = x.unbind(1)
        parts = torch.chunk(x, 3)
        top = torch.topk(x, 2)
        return first, second + first, values, a * d, torch.cat([parts[2], parts[2]]), top.indices


class Arguments(nn.Module):
    """Arguments of every kind."""

    def forward(self, x: Tensor, flag: bool = True, text: str = "a", none: Any = None) -> Any:
        i = torch.tensor([0, 1])
        y = x.to(torch.float64, memory_format=torch.contiguous_format)
        z = torch.full((2, 3), float("inf"), dtype=torch.float16, device="cpu")
        w = x[:, i][None].clone(memory_format=torch.preserve_format)
        v = torch.nn.functional.interpolate(x[None, None], scale_factor=(2.0, 0.5))
        u = torch.where(x > 0, x, -float("inf")) if flag else x
        return {"y": y, "deep": [z, {"w": w, "none": None}], "v": v, "u": u, "s": 3, "t": (x, x)}


class Complex(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.view_as_real(torch.fft.fft(x) * 2j)


class Strides(nn.Module):
    """Averages of an image with channels last, whose decomposition restates strides."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.nn.functional.adaptive_avg_pool2d(x.permute(0, 3, 1, 2) + 1, 1)
        return torch.nn.functional.layer_norm(y.permute(0, 2, 3, 1), (4,))


class Grown(nn.Module):
    """Scans and maps."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        from torch._higher_order_ops import map as mapped, scan

        carry, rows = scan(lambda c, row: (c + row, c * row), x[0], x)
        return carry, rows, mapped(lambda row, y: row * y.sum(), x * 2, x)


def example(module: nn.Module, *args: Any, shapes: Any = None, **kwargs: Any) -> Callable[[], Any]:
    return lambda: torch.export.export(module.eval(), args, kwargs, dynamic_shapes=shapes)


def of_case(name: str) -> Callable[[], Any]:
    def make() -> Any:
        import torch.ao.quantization.fx._decomposed  # declares operators of PT2E

        torch.manual_seed(1)
        case = archives.cases()[name]()
        args = case.module.eval(), case.args, dict(case.kwargs)
        program = torch.export.export(*args, dynamic_shapes=case.shapes)
        return program.run_decompositions() if case.core else program

    return make


def of_net(name: str, *, core: bool) -> Callable[[], Any]:
    def make() -> Any:
        net = nets.NETS[name]
        module, inputs = net.built(), net.inputs(2, 8)
        fixed = name in ("lstm", "gru", "resnet", "unet")
        shapes = None if fixed else [dict.fromkeys(axes, Dim.AUTO) for axes in net.axes.values()]
        program = torch.export.export(module, inputs, dynamic_shapes=shapes)
        return program.run_decompositions() if core else program

    return make


PROGRAMS: dict[str, Callable[[], Any]] = {
    **{name: of_case(name) for name in archives.cases()},
    **{name: of_net(name, core=False) for name in nets.NETS},
    **{f"{name}_core": of_net(name, core=True) for name in ("resnet", "bert", "gru")},
    "numbers": example(
        Numbers(), torch.randn(6), 3, shapes={"x": {0: Dim.DYNAMIC}, "n": Dim.DYNAMIC}
    ),
    "lists": example(Lists(), torch.randn(6, 4)),
    "arguments": example(Arguments(), torch.randn(4, 6)),
    "complex": example(Complex(), torch.randn(6)),
    "grown": example(Grown(), torch.randn(5, 3)),
    "strides_core": lambda: example(Strides(), torch.randn(2, 3, 3, 4))().run_decompositions(),
    "state": example(sequences.Stateful(), torch.randn(1, 4)),
    "state_core": lambda: example(sequences.Stateful(), torch.randn(1, 4))().run_decompositions(),
    "cache_core": lambda: example(sequences.Cache(), torch.randn(1, 1, 8))().run_decompositions(),
    "training": lambda: torch.export.export(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout()).train(),
        (torch.randn(2, 3, 5, 5),),
    ).run_decompositions(),
}


def signature(model: TorchModel) -> dict[str, Any]:
    found = {key: getattr(model, key) for key in ("inputs", "outputs", "notes")}
    return {**found, "weights": list(model.weights), "graph": text_of(model.graph)}


def text_of(graph: Graph) -> list[str]:
    """Return a graph as lines, so that a difference shows in its line."""
    return [f"{graph.inputs} {graph.outputs} {graph.weights}", *map(repr, graph.nodes)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_graph_in_memory_is_that_of_its_archive(tmp_path: Path, name: str) -> None:
    program = PROGRAMS[name]()
    path = tmp_path / "a.pt2"
    torch.export.save(program, path)
    live, stored = from_exported_program(program), load_archive(path)
    assert signature(live) == signature(stored)
    for key, weight in live.weights.items():
        np.testing.assert_array_equal(stored.weights[key].array(), weight.array())


def test_strides_that_are_restated_are_no_operator() -> None:
    model = from_exported_program(PROGRAMS["strides_core"]())
    assert "aten::as_strided" not in {node.op for node in model.nodes()}


class Largest(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return torch.topk(x, 2)


def test_tuples_that_torch_cannot_write_have_plain_names() -> None:
    program = torch.export.export(Largest(), (torch.randn(3, 4),))
    assert from_exported_program(program).outputs == ["getitem", "getitem_1"]


class Bomb:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> object:
        return os.mkdir, (self.path,)


def test_torch_runs_sample_inputs_that_serde_does_not(tmp_path: Path) -> None:
    """The attack is a real one: ``torch.export.load`` falls for it."""
    made = tmp_path / "made"
    members = members_of(archives.GOLDEN / "cnn.pt2")
    torch.save(Bomb(os.fspath(made)), tmp_path / "sample.pt")
    members["data/sample_inputs/model.pt"] = (tmp_path / "sample.pt").read_bytes()
    path = tmp_path / "a.pt2"
    path.write_bytes(archive_of(members))
    load_archive(path)
    assert not made.exists()
    with pytest.raises((TypeError, AttributeError, AssertionError, RuntimeError, ValueError)):
        torch.export.load(path)
    assert made.is_dir()
