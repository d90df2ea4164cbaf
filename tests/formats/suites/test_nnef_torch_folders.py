"""NNEF-Tools' PyTorch interpreter and the specification on the public folders of NNEF."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.nnef_faults import TORCH
from support.nnef_folders import FOLDERS
from support.nnef_judges import JudgeFault, agree, run_torch
from support.nnef_reference import run

nnef = pytest.importorskip("nnef", reason="the package nnef is not installed")
pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("nnef_tools", reason="NNEF-Tools are not installed")

pytestmark = [
    pytest.mark.wide,
    pytest.mark.skipif(not FOLDERS, reason="no public folders beside the repository"),
    pytest.mark.filterwarnings("ignore:Using a non-tuple sequence:UserWarning"),
]


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_torch_agrees(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if name in TORCH:
        wrong = pytest.mark.xfail(
            raises=(JudgeFault, AssertionError), reason=TORCH[name], strict=True
        )
        request.applymarker(wrong)
    path = tmp_path / name
    inputs = FOLDERS[name].fill(path)
    expected = list(run(nnef.load_graph(str(path)), inputs).values())
    assert agree(run_torch(path, list(inputs.values())), expected) == ""
