"""Every pair of formats there is: nets carried from one to the other, and checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from support.accuracy import Net, face_net, zoo_net

import serde
from serde.bridge.formats import format_names, get_bridge
from serde.core.optional import is_installed
from serde.core.report import Report
from serde.errors import SerdeError, UnsupportedModelError

NETS = ("recurrent", "arcface", "mobilefacenet", "retinaface", "resnet18_v2", "squeezenet1.1")
"""Nets that the table is made of, the fast one first."""


@dataclass(frozen=True)
class Verdict:
    """How one conversion went.

    Attributes:
        net: The net.
        source: Format that was converted.
        target: Format that came out.
        nodes: Operators in the source and in the target.
        worst: Largest difference of an output from the original net, relative to its size.
        engines: What ran the original net and the target.
        refused: What the conversion cannot say; empty where it went through.
        fault: What went wrong; empty where the target agrees, or was refused.
    """

    net: str
    source: str
    target: str
    nodes: tuple[int, int]
    worst: float
    engines: tuple[str, str]
    refused: str
    fault: str

    def row(self) -> tuple[str, ...]:
        """Return the entries of a row of the table."""
        nodes = f"{self.nodes[0]} -> {self.nodes[1]}"
        outcome = self.fault or (f"refused: {self.refused}" if self.refused else "agrees")
        return (
            self.net, self.source, self.target, nodes, f"{self.worst:.1e}", *self.engines, outcome
        )  # fmt: skip


COLUMNS = ("net", "source", "target", "operators", "max rel", "original in", "target in", "verdict")


PRECISE = {"coreml": {"compute_precision": "float32"}}
"""Options with which a format computes as its sources do."""


WRITTEN_BY = {"nnef": "nnef", "relax": "tvm", "torch": "torch"}
"""Packages without which no files of a format can be made, or none be read or run."""


def readable() -> list[str]:
    """Formats that can be read and written, so that files of them can be made."""
    return [
        name
        for name in format_names()
        if get_bridge(name).import_options is not None and name in writable()
    ]


def writable() -> list[str]:
    """Formats that can be written, and run here; libraries are modules of Relax, compiled."""
    names = [name for name in format_names() if name != "tvm"]
    there = [name for name in names if is_installed(WRITTEN_BY.get(name, "serde"))]
    return [name for name in there if get_bridge(name).export_options is not None]


def build(mx: Any, name: str) -> Net:
    """Return a net of MXNet's with parameters."""
    if name == "recurrent":
        return recurrent_net(mx)
    if name in ("arcface", "mobilefacenet", "retinaface"):
        return face_net(mx, name)
    return zoo_net(mx, name, 224 if name.startswith("squeezenet") else 64)


def recurrent_net(mx: Any) -> Net:
    """Two layers of LSTM in both directions, a softmax over the steps, and a dense layer."""
    length, batch, width, hidden = 5, 2, 6, 4
    x = mx.sym.RNN(
        mx.sym.transpose(mx.sym.Variable("data"), axes=(1, 0, 2)),
        mx.sym.Variable("lstm_parameters"), mx.sym.zeros((4, batch, hidden)),
        mx.sym.zeros((4, batch, hidden)),
        mode="lstm", state_size=hidden, num_layers=2, bidirectional=True, name="lstm",
    )  # fmt: skip
    x = mx.sym.softmax(x, axis=0, name="steps")
    x = mx.sym.FullyConnected(mx.sym.transpose(x, axes=(1, 0, 2)), num_hidden=3, name="fc")
    shape = (batch, length, width)
    shapes, _, _ = x.infer_shape(data=shape)
    rng = np.random.default_rng(5)
    args = {
        name: mx.nd.array(rng.uniform(-0.5, 0.5, sizes))
        for name, sizes in zip(x.list_arguments(), shapes, strict=True)
        if name != "data"
    }
    return Net(x, args, {}, shape)


def verdicts(mx: Any, names: Sequence[str], directory: Path) -> Iterator[Verdict]:
    """Convert nets from every format to every format; yield a verdict for each.

    The targets are judged by the original net, run by MXNet, not by the source of the step.
    """
    for name in names:
        net = build(mx, name)
        folder = directory / name
        folder.mkdir()
        original = str(net.save(mx, folder / "net")[0])
        sources = {"mxnet": original}
        for source in readable():
            if source not in sources:
                sources[source] = str(folder / f"source{get_bridge(source).suffixes[0]}")
                serde.convert(
                    original,
                    sources[source],
                    input_shapes={"data": net.shape},
                    **PRECISE.get(source, {}),
                )
        for source, path in sources.items():
            for target in writable():
                out = folder / f"{source}-to{get_bridge(target).suffixes[0]}"
                yield _verdict(name, source, target, (original, path, str(out)), net.shape)


def _verdict(
    net: str, source: str, target: str, paths: tuple[str, str, str], shape: tuple[int, ...]
) -> Verdict:
    original, path, out = paths
    shapes = {"input_shapes": {"data": shape}}
    report, check = Report(), Report()
    fault, refused, worst = "", "", float("nan")
    try:
        given = {**(shapes if source == "mxnet" else {}), **PRECISE.get(target, {})}
        serde.convert(path, out, report=report, **given)
        serde.check(original, out, report=check, **shapes)
    except UnsupportedModelError as error:
        refused = ", ".join(sorted({issue.op for issue in error.report.issues}))
    except SerdeError as error:
        fault = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    if check.verdicts:
        worst = max(verdict.max_rel for verdict in check.verdicts)
        fault = fault or ("" if check.passed else "differs")
    counts = (report.before.total(), report.after.total())
    return Verdict(net, source, target, counts, worst, check.engines or ("", ""), refused, fault)
