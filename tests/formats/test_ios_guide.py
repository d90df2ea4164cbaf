"""The guide to Core ML: every command in it runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.cli import main
from serde.relay.expr import Function, Var
from serde.relay.model import ModelMeta, RelayModel
from serde.relay.module import IRModule
from serde.relay.types import TensorType
from serde.weights import ArrayWeight

GUIDE = (Path(__file__).parents[2] / "docs" / "ios.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^serde .*$", GUIDE, re.MULTILINE)


def write_net(folder: Path) -> None:
    """Write a net of four classes as MXNet's files, and their names."""
    data = Var("data", TensorType((1, 3, 224, 224), "float32"))
    kernel = Var("kernel", TensorType((4, 3, 16, 16), "float32"))
    y = relay.nn.conv2d(data, kernel, strides=(16, 16), channels=4, kernel_size=(16, 16))
    y = relay.nn.softmax(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)), axis=1)
    values = np.random.default_rng(1).normal(size=(4, 3, 16, 16)).astype(np.float32)
    main_function = Function([data, kernel], y)
    meta = ModelMeta(inputs=("data",), outputs=("scores",))
    module = IRModule({"main": main_function})
    model = RelayModel(module, {"kernel": ArrayWeight(values)}, meta)
    serde.from_relay(model, format="mxnet", path=folder / "net-symbol.json")
    (folder / "synset.txt").write_text("tench\ngoldfish\nshark\nray\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with what the guide starts from, and a package."""
    monkeypatch.chdir(tmp_path)
    write_net(tmp_path)
    return tmp_path


def test_the_guide_has_commands() -> None:
    assert len(COMMANDS) >= 10


@pytest.mark.parametrize("command", COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_of_the_guide_runs(command: str, folder: Path) -> None:
    arguments = shlex.split(command)[1:]
    if "Net.mlpackage" in arguments[:2] and "net-symbol.json" not in arguments:
        assert main(shlex.split(COMMANDS[1])[1:]) == 0
    assert main(arguments) == 0
    assert (folder / "Net.mlpackage").exists()


def test_the_python_of_the_guide_runs(folder: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    exec(code, {})
    model = serde.to_relay("Net.mlpackage")
    assert model.meta.labels == ("tench", "goldfish", "shark", "ray")
    assert model.meta.extra["data.description"] == "The photo."
    assert model.meta.extra["data_3.range"] == "224:512:256"
    assert model.meta.extra["data.color_space"] == "BGR"
