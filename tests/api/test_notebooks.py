"""The notebooks run from top to bottom, and print what stands in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NAMES = (
    "coreml_for_an_app",
    "mxnet_to_onnx_and_pytorch",
    "relay_for_compilers",
    "view_batch_and_int8",
)
NEEDS = {
    "coreml_for_an_app": ("coremltools", "onnxruntime"),
    "mxnet_to_onnx_and_pytorch": ("onnxruntime",),
    "relay_for_compilers": ("onnxruntime", "tvm"),
    "view_batch_and_int8": ("onnxruntime", "sympy"),
}


def read(name: str) -> Any:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def printed(cell: Any) -> str:
    """What a cell printed, whatever its fractions were."""
    text = "".join(each.get("text", "") for each in cell.outputs if each.get("name") == "stdout")
    return re.sub(r"\b\d+\.\d+(?:e[-+]\d+)?\b", "#", text)


def test_these_are_the_notebooks() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_teaches_in_small_steps(name: str) -> None:
    notebook = read(name)
    nbformat.validate(notebook)
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds[0] == "markdown"
    assert kinds.count("code") >= 6
    assert kinds.count("markdown") >= 7
    for cell in notebook.cells:
        assert len(cell.source.splitlines()) <= 40
    assert "assert" in notebook.cells[-1].source
    assert (FOLDER / f"{name}.ipynb").stat().st_size < 20_000


@pytest.mark.wide
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_prints_what_stands_in_it(name: str, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    for package in NEEDS[name]:
        pytest.importorskip(package)
    written, run = read(name), read(name)
    for cell in run.cells:
        cell.outputs = []
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(run, timeout=300, kernel_name="python3", resources=place).execute()
    for wanted, found in zip(written.cells, run.cells, strict=True):
        if wanted.cell_type == "code":
            assert printed(found) == printed(wanted), wanted.source
            assert all(each.output_type == "stream" for each in wanted.outputs)
