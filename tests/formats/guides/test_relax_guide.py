"""docs/compile-with-tvm.md: every command and every block of Python in it runs, and is right."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.command.cli import main
from serde.core.weights import ArrayWeight
from serde.relay.ir.expr import Function
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule

pytest.importorskip("tvm")

PAGE = (Path(__file__).parents[3] / "docs" / "compile-with-tvm.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(kind, body) for kind, body in BLOCK.findall(PAGE) if not body.startswith("pip ")]

pytestmark = pytest.mark.wide


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], list[int]]:
    """The folder in which the page is read from top to bottom, its names, and its exit codes."""
    folder = tmp_path_factory.mktemp("guide")
    names, kernel, weight = (
        {},
        relay.var("conv_weight", shape=(4, 3, 3, 3)),
        relay.var("fc_weight", shape=(10, 4 * 16 * 16)),
    )
    rng = np.random.default_rng(9)
    values = {
        each.name_hint: ArrayWeight((rng.normal(size=each.type.shape) / 8).astype(np.float32))
        for each in (kernel, weight)
    }
    data = relay.var("data", shape=(1, 3, 32, 32))
    y = relay.nn.relu(relay.nn.conv2d(data, kernel, padding=1, channels=4, kernel_size=(3, 3)))
    y = relay.nn.batch_flatten(relay.nn.max_pool2d(y, (2, 2), (2, 2)))
    body = relay.nn.softmax(relay.nn.dense(y, weight), axis=1)
    module = IRModule({"main": Function([data, kernel, weight], body)})
    model = RelayModel(module, values, ModelMeta(inputs=("data",), outputs=("prob",)))
    serde.from_relay(model, format="mxnet", path=folder / "net-symbol.json")
    codes = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for kind, text in BLOCKS:
            if kind == "python":
                exec(compile(text, "page", "exec"), names)
                continue
            commands = [line for line in text.splitlines() if line.startswith("serde ")]
            codes += [main(shlex.split(each)[1:]) for each in commands]
    return folder, names, codes


def test_every_command_is_done(page: tuple[Path, dict[str, Any], list[int]]) -> None:
    assert page[2] == [0] * len(re.findall(r"^serde ", PAGE, re.MULTILINE))
    assert os.path.isdir(page[0] / "net_relax")


def test_every_way_gives_what_the_net_gives(page: tuple[Path, dict[str, Any], list[int]]) -> None:
    folder, names, _ = page
    images, parts = names["images"], []
    source = folder / "net-symbol.json"
    model = serde.to_relay(source, input_shapes={"data": (1, 3, 32, 32)})
    for image in images:
        given = {**{k: w.array() for k, w in model.params.items()}, "data": image[None]}
        evaluate = relay.create_executor(mod=model.mod).evaluate()
        parts.append(evaluate(**given))
    wanted = np.concatenate([np.asarray(each) for each in parts])
    for name, count in {"prob": 2, "alone": 1, "by_hand": 1}.items():
        np.testing.assert_allclose(names[name], wanted[:count], rtol=1e-5, atol=1e-6)
    loaded = names["net"]
    assert (loaded.inputs, loaded.target) == (("data",), "llvm")
    np.testing.assert_allclose(loaded.run(images)[0], wanted, rtol=1e-5, atol=1e-6)
