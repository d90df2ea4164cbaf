"""The guide to Core ML: every command in it runs."""

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
from serde.relay.ir.expr import Function, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType

GUIDE = (Path(__file__).parents[3] / "docs" / "ios.md").read_text(encoding="utf-8")
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


@pytest.mark.wide
@pytest.mark.parametrize("command", COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_of_the_guide_runs(command: str, folder: Path) -> None:
    arguments = shlex.split(command)[1:]
    if "Net.mlpackage" in arguments[:2] and "net-symbol.json" not in arguments:
        assert main(shlex.split(COMMANDS[1])[1:]) == 0
    assert main(arguments) == 0
    assert (folder / "Net.mlpackage").exists()


IMAGE = "data:BGR,scale=1/58,red_bias=-2.1,green_bias=-2.0,blue_bias=-1.8"
CONVERT = ["convert", "net-symbol.json", "Net.mlpackage", "--input-shape", "data:1,3,224,224"]


@pytest.mark.wide
@pytest.mark.parametrize("precision", ["float16", "float32"])
def test_a_check_knows_of_images_and_labels(
    precision: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--image", IMAGE, "--class-labels", "synset.txt", "--compute-precision", precision]
    mapping = ["--tensor-mapping", "names.json"]
    assert main([*CONVERT, *asked, *mapping, "--check"]) == 0
    assert "classLabel_probs" in capsys.readouterr().err
    names = json.loads((folder / "names.json").read_text(encoding="utf-8"))
    assert names["outputs"] == {"scores_output": "classLabel_probs"}


def test_inspect_shows_what_apps_see(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--image", IMAGE, "--class-labels", "synset.txt", "--describe", "data=The photo."]
    assert main([*CONVERT, *asked, "-q"]) == 0
    assert main(["inspect", "Net.mlpackage", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["facts"]
    assert facts["input data"] == "BGR image; 224x224; The photo."
    assert facts["labels"] == "4: tench, goldfish, shark, ray"


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (["--range", "H:224:448:256"], "1 x 3 x 224..448 x 1..1024, by default 1x3x256x1"),
        (
            ["--enumerated-shape", "1,3,224,224", "--enumerated-shape", "1x3x64x96"],
            "1x3x224x224 or 1x3x64x96",
        ),
    ],
)
def test_inspect_shows_flexible_lengths(
    flags: list[str], shown: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = ["--input-shape", "data:1,3,H,W"]
    assert main([*CONVERT[:3], *shape, *flags]) == 0
    told = "dynamic dimensions get lengths from 1 to 1024"
    assert (told in capsys.readouterr().err) == (flags[0] == "--range")
    assert main(["inspect", "Net.mlpackage"]) == 0
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--image", "data:CMYK"], "accepted forms: data  data:BGR"),
        (["--image", "data", "--image", "data:BGR"], "--image: data is given twice"),
        (["--range", "H:8"], "--range H:8: expected one of: N:1:8"),
        (["--range", "H:8:4"], "expected 1 <= lower <= default <= upper"),
        (["--enumerated-shape", "data:1,3,N,8"], "expected data:1,3,224,224"),
        (["--class-labels", "none.txt"], "class_labels: none.txt: No such file"),
        (["--class-labels", "a", "--class-labels", "b"], "--class-labels: is given twice"),
        (["--describe", "data"], "--describe data: expected NAME=TEXT"),
        (["--output-image", "scores_output"], "RGB image is a tensor of [1, 3, H, W]"),
    ],
)
def test_a_flag_that_says_nothing_usable(
    flags: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*CONVERT, *flags]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "Net.mlpackage").exists()


def test_the_python_of_the_guide_runs(folder: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    exec(code, {})
    model = serde.to_relay("Net.mlpackage")
    assert model.meta.labels == ("tench", "goldfish", "shark", "ray")
    assert model.meta.extra["data.description"] == "The photo."
    assert model.meta.extra["data_3.range"] == "224:512:256"
    assert model.meta.extra["data.color_space"] == "BGR"
