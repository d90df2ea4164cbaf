"""Random graphs of NNEF: read, written again, and written as ONNX."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.nnef_judges import Khronos, agree, run_onnx
from support.nnef_random import Graph
from support.nnef_reference import run

import serde
from serde.engine.interpreter import RelayEngine

nnef = pytest.importorskip("nnef", reason="the package nnef is not installed")

LOOSE: Final = {"tolerance": 2e-4, "scale": 1.0}
"""Errors add up along a graph, and stay where values cancel out."""

SEEDS = [pytest.param(seed, marks=pytest.mark.wide if seed >= 20 else ()) for seed in range(300)]


@pytest.fixture(scope="module")
def khronos() -> Iterator[Khronos]:
    judge = Khronos()
    yield judge
    judge.close()


@pytest.mark.wide
@pytest.mark.sparse(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_graph(seed: int, khronos: Khronos, tmp_path: Path) -> None:
    case = Graph(seed, 4 + seed % 12).case(f"random-{seed}")
    path, target = tmp_path / "net.nnef", tmp_path / "again.nnef"
    inputs = case.write(path)
    arguments = list(inputs.values())
    expected = list(run(nnef.load_graph(str(path)), inputs).values())
    assert agree(khronos.run(path, arguments, tmp_path), expected, **LOOSE) == ""
    model = serde.to_relay(path)
    assert agree(RelayEngine(model).run(inputs), expected, **LOOSE) == ""
    serde.from_relay(model, format="nnef", path=target)
    again = nnef.load_graph(str(target))
    assert agree(list(run(again, inputs).values()), expected, **LOOSE) == ""
    nnef.infer_shapes(again)
    assert agree(khronos.run(target, arguments, tmp_path), expected, **LOOSE) == ""
    proto = serde.from_relay(model, format="onnx", opset=13 if seed % 2 else 17)
    found = run_onnx(proto.SerializeToString(), arguments)
    assert agree(found, expected, **LOOSE) == ""
