"""docs/onnx-target.md: every command and every block of it runs and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import tomllib

import serde
import serde.relay as relay
from serde.target.drawing import draw
from serde.target.splitting import split

ROOT = Path(serde.__file__).parents[1]
PAGE = (ROOT / "docs" / "onnx-target.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = [(each["kind"], each["body"]) for each in BLOCK.finditer(PAGE)]


def make_checkpoint(folder: Path) -> None:
    """Write the MXNet checkpoint that the page begins with."""
    rng = np.random.default_rng(8)
    params: dict[str, np.ndarray] = {}

    def weight(name: str, *shape: int) -> relay.Expr:
        params[name] = (rng.normal(size=shape) / 4).astype(np.float32)
        return relay.var(name, shape=shape)

    def conv(x: Any, name: str, filters: int, channels: int) -> Any:
        held = weight(f"{name}_weight", filters, channels, 3, 3)
        y = relay.nn.conv2d(x, held, channels=filters, kernel_size=(3, 3), padding=(1, 1))
        return relay.nn.bias_add(y, weight(f"{name}_bias", filters))

    data = relay.var("data", shape=(1, 3, 16, 16))
    first = relay.nn.relu(conv(data, "conv0", 4, 3))
    gated = relay.add(relay.sigmoid(first), first)
    second = relay.nn.max_pool2d(conv(gated, "conv1", 4, 4), (2, 2), (2, 2))
    dense = relay.nn.dense(relay.nn.batch_flatten(second), weight("fc_weight", 10, 256))
    body = relay.nn.softmax(relay.nn.bias_add(dense, weight("fc_bias", 10)))
    mod = relay.IRModule.from_expr(body)
    serde.from_relay((mod, params), path=folder / "net-symbol.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page")
    make_checkpoint(made)
    return made


def run_shell(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run commands; ``serde`` is that of this Python."""
    script = f'serde() {{ "{sys.executable}" -m serde "$@"; }}\n{text}'
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.mark.wide
def test_the_page_runs_from_top_to_bottom(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("serde.target.regions._RUNNERS", {})
    names: dict[str, Any] = {}
    printed = ""
    ran = 0
    for kind, body in BLOCKS:
        if kind == "toml":
            text = body.partition("\n")
            if text[0].startswith("# "):
                (folder / text[0].removeprefix("# ")).write_text(body)
            else:
                assert tomllib.loads(body)
        elif kind == "sh":
            done = run_shell(folder, body)
            whole = "stay on the host" not in done.stdout
            assert done.returncode == (0 if whole else 1), done.stderr
            printed = done.stdout
        elif kind == "text":
            assert [line.rstrip() for line in printed.strip().splitlines()] == [
                line.rstrip() for line in body.strip().splitlines()
            ]
        else:
            assert kind == "python"
            exec(compile(body, "docs/onnx-target.md", "exec"), names)
        ran += 1
    assert ran == len(BLOCKS) == 11
    assert "region tvmgen_default_onnx_main_0 {'data': (1, 3, 16, 16)}" in capsys.readouterr().out
    assert (folder / "again" / "manifest.json").is_file()
    assert (folder / "split.svg").read_text().count('<rect class="n"') == 12


@pytest.mark.wide
@pytest.mark.parametrize("count", [1, 200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_drawing_has_every_node_once(count: int) -> None:
    x = relay.var("x", shape=(2, 3))
    body, before = relay.tanh(x), x
    for index in range((count - 1) // 2):
        joined = (relay.add, relay.multiply)[index % 2](body, before)
        before, body = body, relay.exp(relay.negative(joined)) if index % 7 else relay.tanh(joined)
    found = split(relay.IRModule.from_expr(body), supported=["Add", "Tanh"]).partition
    root = ET.fromstring(draw(found))
    space = "{http://www.w3.org/2000/svg}"
    nodes = root.findall(f".//{space}g/{space}g")
    assert len(nodes) == len(found.nodes) >= count
    places = {(each[1].get("x"), each[1].get("y")) for each in nodes}
    assert len(places) == len(nodes)
    edges = root.findall(f".//{space}path")
    assert len(edges) == sum(len(node.sources) for node in found.nodes)


@pytest.mark.parametrize("name", ["a<b>&\"'", "\x01\x00\x1f", "]]>", "\ufffe", "\x7f\u00e9"])
def test_a_drawing_is_xml_whatever_nodes_are_called(name: str) -> None:
    x = relay.var("x", shape=(2, 3))
    node = relay.negative(x)
    body = relay.Call(node.op, node.args, node.attrs, span=relay.Span(name))
    mod = relay.IRModule.from_expr(relay.Function([x], body))
    text = draw(split(mod, supported=["Exp"]).partition)
    (title,) = (each for each in ET.fromstring(text).iter() if each.tag.endswith("title"))
    assert title.text is not None
    assert title.text.startswith("negative ")


def test_what_is_written_as_nothing_says_so() -> None:
    x = relay.var("x", shape=(2, 3))
    mod = relay.IRModule.from_expr(relay.annotation.stop_fusion(x))
    found = split(mod).partition
    assert [gap.reason for gap in found.staying[0].gaps] == [
        "is written as nothing, and what it passes on is not in a region"
    ]
