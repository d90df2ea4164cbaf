"""The guide to PyTorch: every command and every block of Python in it runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
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

pytest.importorskip("torch")

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^serde .*$", GUIDE, re.MULTILINE)
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
READS_ARCHIVE = next(place for place, block in enumerate(BLOCKS) if "net.pt2" in block)


def write_net(folder: Path) -> None:
    """Write a net of ten classes as MXNet's files."""
    rng = np.random.default_rng(1)
    shapes = {"conv_weight": (8, 3, 3, 3), "dense_weight": (10, 8)}
    shapes |= {f"norm_{name}": (8,) for name in ("gamma", "beta", "moving_mean", "moving_var")}
    data = Var("data", TensorType((8, 3, 32, 32), "float32"))
    w = {name: Var(name, TensorType(shape, "float32")) for name, shape in shapes.items()}
    y = relay.nn.conv2d(data, w["conv_weight"], padding=(1, 1), channels=8, kernel_size=(3, 3))
    norm = [w[f"norm_{name}"] for name in ("gamma", "beta", "moving_mean", "moving_var")]
    y = relay.nn.relu(relay.nn.batch_norm(y, *norm)[0])
    y = relay.nn.dense(
        relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)), w["dense_weight"], units=10
    )
    function = Function([data, *w.values()], relay.nn.softmax(y, axis=1))
    values = {
        name: ArrayWeight(rng.uniform(0.5, 1.5, shape).astype(np.float32) / len(shape))
        for name, shape in shapes.items()
    }
    meta = ModelMeta(inputs=("data",), outputs=("softmax",))
    model = RelayModel(IRModule({"main": function}), values, meta)
    serde.from_relay(model, format="mxnet", path=folder / "net-symbol.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with what the guide starts from."""
    path = tmp_path_factory.mktemp("guide")
    write_net(path)
    here = Path.cwd()
    os.chdir(path)
    try:
        for command in COMMANDS:
            assert main(shlex.split(command)[1:]) == 0
        assert (
            main(shlex.split("convert net-symbol.json net.pt2 --input-shape data:8,3,32,32")) == 0
        )
    finally:
        os.chdir(here)
    return path


def test_the_guide_has_commands_and_blocks() -> None:
    assert len(COMMANDS) >= 2
    assert len(BLOCKS) >= 5


def test_torch_commands_of_the_guide_write_folders(folder: Path) -> None:
    written = sorted(path.name for path in folder.glob("*_torch/*.*"))
    assert written == 2 * ["config.json"] + 2 * ["model.py"] + 2 * ["model.safetensors"]


@pytest.mark.parametrize("place", range(len(BLOCKS)))
def test_a_block_of_the_torch_guide_runs(place: int, folder: Path) -> None:
    """The second block goes on from the first."""
    text = "".join(BLOCKS[: place + 1]) if place == 1 else BLOCKS[place]
    text = text if "import serde" in text or "serde." not in text else f"import serde\n{text}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    if place == 1:
        losses = [float(line.split()[1]) for line in done.stdout.splitlines()]
        assert losses == sorted(losses, reverse=True)
    assert place != READS_ARCHIVE or (folder / "net.onnx").exists()
