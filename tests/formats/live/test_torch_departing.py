"""Where PyTorch departs from a program's exact result."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import serde
from serde.errors import CheckError
from serde.torch.releases import without_deprecations

torch = pytest.importorskip("torch")


class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Blocks with a write in place, and a way around each."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(20))

    def forward(self, x: Any) -> Any:
        for index, layer in enumerate(self.layers):
            made = torch.relu_(layer(x))
            x = x + (torch.erf(made) if index == 11 else torch.tanh(made))
        return x


@contextmanager
def wrong_kernel() -> Iterator[None]:
    """One operator that computes another."""
    with torch.library._scoped_library("aten", "IMPL") as library, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl("erf", torch.sin, "CPU")
        yield


@pytest.fixture(scope="module")
def program() -> Any:
    torch.manual_seed(0)
    return torch.export.export(Net().eval(), (torch.randn(3, 16),))


def test_a_program_agrees_with_its_exact_result(program: Any) -> None:
    found = serde.bisect(program, runtime=True)
    assert found.agrees
    assert found.runs == 1
    assert found.engine.startswith("torch ")


def test_a_wrong_kernel_is_found_at_its_node(program: Any) -> None:
    with wrong_kernel():
        found = serde.bisect(program, runtime=True)
    assert found.first is not None
    assert found.first.name == "erf"
    assert 1 < found.runs <= 5


def test_a_wrong_kernel_is_found_in_an_archive(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.export.save(program, tmp_path / "net.pt2")
    monkeypatch.setattr("serde.torch.engine.can_start", lambda: False)
    with wrong_kernel():
        found = serde.bisect(tmp_path / "net.pt2", runtime=True)
    assert found.first is not None
    assert found.first.name == "erf"


def test_inner_values_of_a_trace_cannot_be_asked_for() -> None:
    with without_deprecations():
        traced = torch.jit.trace(Net(), (torch.ones(3, 16),))
    with wrong_kernel(), pytest.raises(CheckError, match="inner values cannot be asked for"):
        serde.bisect(traced, runtime=True)
