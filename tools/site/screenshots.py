"""Pictures of what serde shows, for the site: taken by Chromium, none where it is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import serde

ROOT = Path(__file__).resolve().parents[2]
WIDTH, HEIGHT = 1200, 720
TEXTS = {"view": "A network as serde view shows it", "batch": "The report of a batch"}


def make_pictures(folder: Path) -> dict[str, str]:
    """Take the pictures, and return the Markdown that shows each by its name.

    Args:
        folder: Where they go; made where there are any.
    """
    browser = shutil.which("chromium")
    if browser is None:
        print("chromium is not installed: the site gets no pictures", file=sys.stderr)
        return {}
    folder.mkdir()
    pages = {"view": _view(folder), "batch": _batch(folder)}
    for name, page in pages.items():
        size = f"--window-size={WIDTH},{HEIGHT}"
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", size]
        shot = f"--screenshot={folder / name}.png"
        command = [browser, *flags, "--virtual-time-budget=4000", shot, page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
        page.unlink()
    return {name: f"![{text}](screenshots/{name}.png)" for name, text in TEXTS.items()}


def residual_net(path: Path, *, unknown: bool = False) -> Path:
    """Write a small network of convolutions with two residual blocks."""
    draw = np.random.default_rng(7)
    weights, nodes = {}, []

    def conv(scope: str, number: int, read: str, inputs: int) -> str:
        own = f"{scope}_{number}"
        held = {f"{own}_weight": (16, inputs, 3, 3), f"{own}_bias": (16,)}
        for name, shape in held.items():
            weights[name] = draw.normal(0, 0.2, shape).astype(np.float32)
        node = helper.make_node("Conv", [read, *held], [own], f"{scope}/conv{number}")
        node.attribute.append(helper.make_attribute("pads", [1] * 4))
        nodes.append(node)
        nodes.append(helper.make_node("Relu", [own], [f"{own}_act"], f"{scope}/relu{number}"))
        return f"{own}_act"

    last = conv("stem", 1, "image", 3)
    for block in ("block1", "block2"):
        inner = conv(block, 2, conv(block, 1, last, 16), 16)
        nodes.append(helper.make_node("Add", [inner, last], [block], f"{block}/add"))
        last = block
    if unknown:
        nodes.append(helper.make_node("Gate", [last], ["gated"], "gate", domain="corp"))
        last = "gated"
    weights["classes"] = draw.normal(size=(16, 10)).astype(np.float32)
    nodes += [
        helper.make_node("GlobalAveragePool", [last], ["pooled"], "head/pool"),
        helper.make_node("Flatten", ["pooled"], ["features"], "head/flatten"),
        helper.make_node("Gemm", ["features", "classes"], ["scores"], "head/dense"),
        helper.make_node("Softmax", ["scores"], ["prob"], "head/softmax"),
    ]
    shapes = {"image": [1, 3, 32, 32], "prob": [1, 10]}
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    ]
    held = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "net", ports[:1], ports[1:], held)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("corp", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def _view(folder: Path) -> Path:
    """The page of a network."""
    net = residual_net(folder / "net.onnx")
    serde.view(net, path=folder / "view.html")
    net.unlink()
    return folder / "view.html"


def _batch(folder: Path) -> Path:
    """The report of a batch in which not all goes well."""
    models = folder / "models"
    models.mkdir()
    for number in range(6):
        residual_net(models / f"net{number}.onnx", unknown=number == 4)
    (models / "broken.onnx").write_bytes((models / "net0.onnx").read_bytes()[:900])
    report = folder / "batch.html"
    command = ["-m", "serde", "batch", "models", "--to", "mxnet", "--out", "out"]
    subprocess.run(
        [sys.executable, *command, "--report", report.name],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        check=False,
        capture_output=True,
    )
    shutil.rmtree(models)
    shutil.rmtree(folder / "out")
    return report
