"""The page on NNEF: every command and every block of Python in it runs."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.command.cli import main
from serde.core.weights import ArrayWeight
from serde.relay.ir.expr import Function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule

pytest.importorskip("nnef")

PAGE = (Path(__file__).parents[3] / "docs" / "nnef.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^serde .*$", PAGE, re.MULTILINE)
PYTHON = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the page starts from, in which its commands ran in order."""
    folder = tmp_path_factory.mktemp("guide")
    data, weight = relay.var("data", shape=(1, 3, 32, 32)), relay.var("fc.weight", shape=(10, 3072))
    bias = relay.var("fc.bias", shape=(10,))
    y = relay.nn.bias_add(relay.nn.dense(relay.nn.batch_flatten(data), weight), bias)
    values = np.random.default_rng(1).normal(size=(10, 3072)).astype("float32")
    module = IRModule({"main": Function([data, weight, bias], relay.nn.softmax(y, axis=1))})
    weights = {"fc.weight": ArrayWeight(values), "fc.bias": ArrayWeight(values[:, 0].copy())}
    meta = ModelMeta(inputs=("data",), outputs=("prob",))
    serde.from_relay(
        RelayModel(module, weights, meta), format="mxnet", path=folder / "net-symbol.json"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        codes = {command: main(shlex.split(command)[1:]) for command in COMMANDS}
    (folder / "codes.json").write_text(json.dumps(codes), encoding="utf-8")
    return folder


@pytest.mark.wide
@pytest.mark.parametrize("command", COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_of_the_page_runs(command: str, made: Path) -> None:
    assert json.loads((made / "codes.json").read_text(encoding="utf-8"))[command] == 0


def test_the_text_of_the_page_is_what_is_written(made: Path) -> None:
    text = (made / "net_nnef" / "graph.nnef").read_text(encoding="utf-8")
    block = re.search(r"^```text\n(version 1\.0;.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert block is not None
    for line in block[1].splitlines():
        assert line.strip() == "..." or line in text.splitlines()


@pytest.mark.wide
@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_the_code_of_the_page_runs(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net_nnef").mkdir()
    (tmp_path / "net_nnef" / "graph.nnef").write_text(
        "version 1.0;\nextension KHR_enable_fragment_definitions;\n"
        "fragment swish(x: tensor<scalar>) -> (y: tensor<scalar>);\n"
        "graph net(x) -> (y)\n{\n    x = external(shape = [2]);\n    y = swish(x);\n}\n"
    )
    found: dict[str, object] = {"relay": relay}
    exec(code, found)
    assert "sigmoid" in str(found["mod"])
