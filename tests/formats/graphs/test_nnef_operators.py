"""Every fragment of NNEF with every parameter: read, written again, and written as ONNX.

Expected values are those of the specification in NumPy. Khronos' C++ runtime (here) and the
PyTorch interpreter of NNEF-Tools (`test_nnef_torch_judge`) confirm them where they can.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.nnef_cases import Case
from support.nnef_faults import (
    CASE_ONNX,
    CASE_READ,
    CASE_WRITTEN,
    KHRONOS_CASES,
    KHRONOS_UNSAFE,
    SHAPES,
    Rules,
    find_reason,
)
from support.nnef_grid import CASES
from support.nnef_judges import JudgeFault, Khronos, agree, run_onnx
from support.nnef_reference import run
from support.tiers import first_of

import serde
from serde.engine.interpreter import RelayEngine
from serde.errors import UnsupportedModelError
from serde.nnef.fragments import FRAGMENTS

nnef = pytest.importorskip("nnef", reason="the package nnef is not installed")


def operation(name: str) -> str:
    """Return the operation that a case is of."""
    return CASES[name].op


NAMES = sorted(CASES)
FIRST = {
    name
    for _, cases in itertools.groupby(sorted(NAMES, key=operation), operation)
    for name in itertools.islice(cases, 3)
}
"""Three cases of each operation."""


@dataclass
class Filled:
    """A case with values, and what it computes.

    Attributes:
        case: The case.
        path: The folder.
        inputs: Values of its inputs.
        expected: Its outputs, by the specification.
    """

    case: Case
    path: Path
    inputs: Mapping[str, np.ndarray]
    expected: list[np.ndarray]

    @functools.cached_property
    def model(self) -> Any:
        """The folder as Relay."""
        return serde.to_relay(self.path)

    def arguments(self) -> dict[str, np.ndarray]:
        """Values of the inputs of the module: where the graph has a state, it is one."""
        states = {}
        if self.case.op == "update":
            states = {"w": nnef.load_graph(str(self.path)).tensors["w"].data}
        return {**self.inputs, **states}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nnef")


@pytest.fixture(scope="module")
def khronos() -> Iterator[Khronos]:
    judge = Khronos()
    yield judge
    judge.close()


@pytest.fixture(scope="module")
def filled_cases() -> dict[str, Filled]:
    """The cases that tests have filled so far."""
    return {}


@pytest.fixture
def filled(name: str, scratch: Path, filled_cases: dict[str, Filled]) -> Filled:
    if name not in filled_cases:
        path = scratch / f"{name}.nnef"
        inputs = CASES[name].write(path)
        expected = list(run(nnef.load_graph(str(path)), inputs).values())
        filled_cases[name] = Filled(CASES[name], path, inputs, expected)
    return filled_cases[name]


def expect_gap(request: pytest.FixtureRequest, rules: Rules, *errors: type[Exception]) -> None:
    """Let the test fail, and nothing else, if the list says so."""
    reason = find_reason(rules, request.node.callspec.params["name"])
    if reason is not None:
        request.applymarker(pytest.mark.xfail(raises=errors, reason=reason, strict=True))


def test_all_fragments_have_cases() -> None:
    declared = {"external", "variable", "constant"}
    assert {each.op for each in CASES.values()} - declared == set(FRAGMENTS) - declared


@pytest.mark.sparse(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.wide
def test_shapes_agree(filled: Filled, request: pytest.FixtureRequest) -> None:
    """Khronos' shape inference finds the shapes that the specification has."""
    expect_gap(request, SHAPES, nnef.Error, TypeError, AssertionError)
    graph = nnef.load_graph(str(filled.path))
    nnef.infer_shapes(graph)
    shapes = [tuple(graph.tensors[name].shape) for name in graph.outputs]
    assert shapes == [each.shape for each in filled.expected]


@pytest.mark.sparse(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.wide
def test_khronos_agrees(
    filled: Filled, name: str, khronos: Khronos, scratch: Path, request: pytest.FixtureRequest
) -> None:
    """Khronos' runtime computes what the specification says, but for what is known."""
    unsafe = find_reason(KHRONOS_UNSAFE, name)
    if unsafe:
        pytest.skip(unsafe)
    expect_gap(request, KHRONOS_CASES, JudgeFault, AssertionError)
    found = khronos.run(filled.path, list(filled.inputs.values()), scratch)
    assert agree(found, filled.expected) == ""


@pytest.mark.sparse(4)
@pytest.mark.thin(2)
@pytest.mark.parametrize("name", first_of(NAMES, FIRST))
def test_read(filled: Filled, request: pytest.FixtureRequest) -> None:
    expect_gap(request, CASE_READ, UnsupportedModelError)
    found = RelayEngine(filled.model).run(filled.arguments())
    assert agree(found, filled.expected) == ""


@pytest.mark.sparse(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.wide
def test_read_from_memory(filled: Filled, request: pytest.FixtureRequest) -> None:
    """A graph in memory means what its folder means, and is left as it was."""
    expect_gap(request, CASE_READ, UnsupportedModelError)
    graph = nnef.load_graph(str(filled.path))
    before = repr(graph)
    found = RelayEngine(serde.to_relay(graph)).run(filled.arguments())
    assert agree(found, filled.expected) == ""
    assert repr(graph) == before


@pytest.mark.sparse(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.wide
def test_written_again(
    filled: Filled, name: str, khronos: Khronos, scratch: Path, request: pytest.FixtureRequest
) -> None:
    expect_gap(request, CASE_READ + CASE_WRITTEN, UnsupportedModelError)
    target = scratch / f"{name}-again.nnef"
    serde.from_relay(filled.model, format="nnef", path=target)
    graph = nnef.load_graph(str(target))
    arguments = list(filled.arguments().values())
    found = run(graph, dict(zip(graph.inputs, arguments, strict=True)))
    assert agree(list(found.values()), filled.expected) == ""
    nnef.infer_shapes(graph)
    shapes = [tuple(graph.tensors[output].shape) for output in graph.outputs]
    assert shapes == [each.shape for each in filled.expected]
    if find_reason(KHRONOS_UNSAFE + KHRONOS_CASES, name) is None:
        assert agree(khronos.run(target, arguments, scratch), filled.expected) == ""


@pytest.mark.sparse(4)
@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.wide
def test_on_to_onnx(filled: Filled, opset: int, request: pytest.FixtureRequest) -> None:
    expect_gap(request, CASE_READ + CASE_ONNX, UnsupportedModelError)
    proto = serde.from_relay(filled.model, format="onnx", opset=opset)
    found = run_onnx(proto.SerializeToString(), list(filled.arguments().values()))
    assert agree(found, filled.expected) == ""
