"""What docs/relax.md shows, run as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import serde
from serde.command.cli import main
from serde.relax.live import shared_array
from serde.testing import small_model

tvm = pytest.importorskip("tvm")

PAGE = (Path(__file__).parents[3] / "docs" / "relax.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^serde .*", PAGE, re.MULTILINE)


@pytest.mark.wide
def test_the_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    serde.export_model(small_model(), format="onnx", path="net.onnx")
    assert len(COMMANDS) == 4
    for command in COMMANDS:
        assert main(shlex.split(command)[1:]) == 0, command
    assert {each.name for each in (tmp_path / "net_relax").iterdir()} == {
        "model.py",
        "model.params",
    }
    assert serde.check("net.onnx", "net_nnef").passed


@pytest.mark.wide
def test_the_first_lines_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = small_model()
    serde.export_model(model, format="onnx", path="net.onnx")
    code = re.search(r"## In memory\n\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert code is not None
    known: dict[str, object] = {"serde": serde, "tvm": tvm}
    exec(compile(code[1], "docs/relax.md", "exec"), known)
    params = known["params"]
    assert isinstance(params, dict)
    found = [shared_array(each) for each in params["main"]]
    wanted = {name: weight.array() for name, weight in model.params.items()}
    assert len(found) == len(wanted)
    for each in found:
        assert each is not None
        assert any(np.array_equal(each, other) for other in wanted.values())
