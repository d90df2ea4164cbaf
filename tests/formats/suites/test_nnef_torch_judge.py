"""NNEF-Tools' PyTorch interpreter and the specification on every fragment of NNEF."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.nnef_faults import TORCH_CASES, find_reason
from support.nnef_grid import CASES
from support.nnef_judges import JudgeFault, agree, run_torch
from support.nnef_reference import run

nnef = pytest.importorskip("nnef", reason="the package nnef is not installed")
pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("nnef_tools", reason="NNEF-Tools are not installed")

pytestmark = [pytest.mark.wide, pytest.mark.filterwarnings("ignore::UserWarning")]


@pytest.mark.parametrize("name", sorted(CASES))
def test_torch_agrees(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    reason = find_reason(TORCH_CASES, name)
    if reason is not None:
        wrong = pytest.mark.xfail(raises=(JudgeFault, AssertionError), reason=reason, strict=True)
        request.applymarker(wrong)
    path = tmp_path / "net"
    inputs = CASES[name].write(path)
    expected = list(run(nnef.load_graph(str(path)), inputs).values())
    assert agree(run_torch(path, list(inputs.values())), expected) == ""
