"""The public folders of NNEF: read, written again, and written as ONNX.

What each means is decided by the specification in NumPy together with Khronos' C++ runtime (here)
and the PyTorch interpreter of NNEF-Tools (`test_nnef_torch_folders`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.nnef_faults import FOLDER_ONNX, FOLDER_READ, FOLDER_WRITTEN, KHRONOS
from support.nnef_folders import FOLDERS
from support.nnef_judges import JudgeFault, Khronos, agree, run_onnx
from support.nnef_reference import run
from support.tiers import first_of

import serde
from serde.engine.interpreter import RelayEngine
from serde.errors import UnsupportedModelError

nnef = pytest.importorskip("nnef", reason="the package nnef is not installed")

pytestmark = pytest.mark.skipif(not FOLDERS, reason="no public folders beside the repository")

NAMES = sorted(FOLDERS)


@dataclass
class Case:
    """A folder with values, and what it computes.

    Attributes:
        path: The folder.
        inputs: Values of its inputs.
        expected: Its outputs, by the specification.
    """

    path: Path
    inputs: Mapping[str, np.ndarray]
    expected: list[np.ndarray]

    @functools.cached_property
    def model(self) -> Any:
        """The folder as Relay."""
        return serde.to_relay(self.path)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nnef")


@pytest.fixture(scope="module")
def khronos() -> Iterator[Khronos]:
    judge = Khronos()
    yield judge
    judge.close()


@pytest.fixture(scope="module")
def cases(scratch: Path) -> dict[str, Case]:
    """The folders that tests have filled so far."""
    return {}


@pytest.fixture
def case(name: str, scratch: Path, cases: dict[str, Case]) -> Case:
    if name not in cases:
        path = scratch / f"{name}.nnef"
        inputs = FOLDERS[name].fill(path)
        expected = list(run(nnef.load_graph(str(path)), inputs).values())
        cases[name] = Case(path, inputs, expected)
    return cases[name]


def expect_gap(request: pytest.FixtureRequest, gaps: Mapping[str, str], *errors: Any) -> None:
    """Let the test fail, and nothing else, if the list says so."""
    name = request.node.callspec.params["name"]
    if name in gaps:
        mark = pytest.mark.xfail(raises=errors, reason=gaps[name], strict=True)
        request.applymarker(mark)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.wide
def test_khronos_agrees(
    case: Case, khronos: Khronos, scratch: Path, request: pytest.FixtureRequest
) -> None:
    """Khronos' runtime computes what the specification says, but for what is known."""
    expect_gap(request, KHRONOS, JudgeFault, AssertionError)
    found = khronos.run(case.path, list(case.inputs.values()), scratch)
    assert agree(found, case.expected) == ""


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", first_of(NAMES, NAMES[::3]))
def test_read(case: Case, request: pytest.FixtureRequest) -> None:
    expect_gap(request, FOLDER_READ, UnsupportedModelError)
    found = RelayEngine(case.model).run(case.inputs)
    assert agree(found, case.expected) == ""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.wide
def test_written_again(
    case: Case, khronos: Khronos, scratch: Path, name: str, request: pytest.FixtureRequest
) -> None:
    expect_gap(request, FOLDER_READ | FOLDER_WRITTEN, UnsupportedModelError)
    target = scratch / f"{name}-again.nnef"
    serde.from_relay(case.model, format="nnef", path=target)
    graph = nnef.load_graph(str(target))
    nnef.infer_shapes(graph)
    found = run(graph, dict(zip(graph.inputs, case.inputs.values(), strict=True)))
    assert agree(list(found.values()), case.expected) == ""
    for output, values in zip(graph.outputs, case.expected, strict=True):
        assert tuple(graph.tensors[output].shape) == values.shape
    if name in KHRONOS:
        return
    assert agree(khronos.run(target, list(case.inputs.values()), scratch), case.expected) == ""


@pytest.mark.sparse(4)
@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.wide
def test_on_to_onnx(case: Case, opset: int, request: pytest.FixtureRequest) -> None:
    expect_gap(request, FOLDER_READ | FOLDER_ONNX, UnsupportedModelError)
    proto = serde.from_relay(case.model, format="onnx", opset=opset)
    found = run_onnx(proto.SerializeToString(), list(case.inputs.values()))
    assert agree(found, case.expected) == ""
