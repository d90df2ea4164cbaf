"""Prints, as a markdown table, how nets of gluoncv and gluonnlp convert to ONNX.

    python benchmarks/zoo.py [--only] [name ...]

Each net gets calibrated random weights, is written to MXNet's files and converted from them
at several operator sets; ONNX Runtime is compared with MXNet, in deviations of each output.
A net that selects boxes is compared element by element around its selections, and as a
whole by the share of MXNet's detections that are found again. The Relay text of each is
parsed back and compared. A process of its own converts each net, and another measures, so
that memory stays bounded. The exit code is 0 where every net is right.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OPSETS_BELOW_NEWEST = (13, 17)

HEADS = ("net", "MXNet nodes", "ONNX nodes", "MXNet itself", "found", "s", "MB", "verdict")


@dataclass
class Row:
    """What is printed of a net.

    Attributes:
        name: The net.
        layers: Nodes of the symbol, variables left out.
        nodes: Nodes of the ONNX model at the newest operator set.
        errors: Difference by operator set.
        own: Difference between MXNet's two settings.
        found: Share of detections found again; None where the net does not select.
        seconds: Of one conversion, the start of Python left out.
        megabytes: Peak memory of a conversion beyond that of the import alone.
        faults: What is wrong, empty where all is right.
        refused: Operators without conversion, with their reasons.
    """

    name: str
    layers: int = 0
    nodes: int = 0
    errors: dict[int, float] = field(default_factory=dict)
    own: float = 0.0
    found: float | None = None
    seconds: float = 0.0
    megabytes: float = 0.0
    faults: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def cells(self, opsets: list[int]) -> list[str]:
        """The row of the table."""
        errors = [f"{self.errors[o]:.1e}" if o in self.errors else "" for o in opsets[:-1]]
        newest = [f"{e:.1e} ({o})" for o, e in self.errors.items() if o not in opsets[:-1]]
        errors.append(" ".join(newest))
        found = "" if self.found is None else f"{self.found:.0%}"
        faults = [*self.faults, *(f"refused: {each}" for each in self.refused)]
        rest = [f"{self.own:.1e}", found, f"{self.seconds:.1f}", f"{self.megabytes:.0f}"]
        verdict = "; ".join(faults) or "ok"
        return [self.name, str(self.layers), str(self.nodes), *errors, *rest, verdict]


def judge(name: str) -> Row:
    """Build, convert and compare one net."""
    from support.accuracy import LEAST_CHANGE, measure
    from support.oracle import PlainMxnet
    from support.zoo import (
        LEAST_CHANGE_OF_BOXES,
        around_selections,
        layers_of,
        newest_opset,
        selections,
        zoo_net,
    )

    from serde.compat import import_mxnet
    from serde.errors import UnsupportedModelError

    mx, row = import_mxnet(), Row(name)
    net = zoo_net(name)
    selects = bool(selections(net.symbol))
    row.layers = layers_of(net.symbol)
    compared = around_selections(mx, net) if selects else net
    oracle = PlainMxnet()
    with tempfile.TemporaryDirectory() as directory:
        try:
            opsets = (*OPSETS_BELOW_NEWEST, newest_opset(net.symbol))
            for figures in measure(mx, oracle, compared, opsets, Path(directory)):
                row.errors[figures.opset], row.own = figures.error, figures.own
                if figures.error > figures.bound:
                    row.faults.append(f"opset {figures.opset}: more than {figures.bound:.1e} off")
            if figures.change <= (LEAST_CHANGE_OF_BOXES if selects else LEAST_CHANGE):
                row.faults.append(f"outputs change by {figures.change:.2f} only")
            whole(net, row, Path(directory), selects)
        except UnsupportedModelError as error:
            issues = error.report.issues
            row.refused = sorted(
                f"{op} x{count} {reason}"
                for (op, reason), count in Counter((i.op, i.reason) for i in issues).items()
            )
        except Exception as error:  # whatever goes wrong is a line of the table
            row.faults.append(" ".join(f"{type(error).__name__}: {error}".split())[:200])
    oracle.close()
    return row


def whole(net: Any, row: Row, directory: Path, selects: bool) -> None:
    """Convert the net as it is, in a process of its own; run it; check its text."""
    import onnx
    from support.oracle import run_mxnet
    from support.runtime import run_onnx
    from support.zoo import LEAST_FOUND, MORE_NODES, found_again, text_fault

    from serde.compat import import_mxnet

    image = net.inputs(7)
    paths, target = net.save(import_mxnet(), directory / "whole"), directory / "whole.onnx"
    shapes = {name: values.shape for name, values in image.items()}
    done = subprocess.run(
        [sys.executable, __file__, "--convert", json.dumps([*map(str, paths), shapes]), target],
        stdout=subprocess.PIPE,
        check=True,
    )
    row.seconds, row.megabytes = json.loads(done.stdout)
    row.nodes = len(onnx.load(target, load_external_data=False).graph.node)
    if row.nodes > row.layers and row.name not in MORE_NODES:
        row.faults.append("more nodes than MXNet's")
    fault = text_fault(paths, image)
    if fault:
        row.faults.append(fault)
    if selects:
        expected = run_mxnet(net.reference, {**net.args, **net.aux}, image)
        row.found = found_again(expected, run_onnx(target, image)[1])
        if row.found < LEAST_FOUND:
            row.faults.append("detections are lost")


def convert(source: str, target: str) -> tuple[float, float]:
    """Convert a checkpoint; seconds and megabytes beyond those of the imports."""
    import serde

    symbol, params, shapes = json.loads(source)
    for module in (
        "onnx.checker",
        "serde.mxnet.importer",
        "serde.mxnet.ops",
        "serde.onnx.exporter",
    ):
        importlib.import_module(module)
    idle, start = peak(), time.perf_counter()
    serde.convert([symbol, params], target, input_shapes=shapes)
    return time.perf_counter() - start, peak() - idle


def peak() -> float:
    """The most megabytes that this process has had in memory."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1000


def measured(name: str) -> Row:
    """The row of a net, from a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--only", name], stdout=subprocess.PIPE, text=True, check=False
    )
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return Row(name, faults=[f"the process ended with {done.returncode}"])
    values = json.loads(lines[-1])
    return Row(**{**values, "errors": {int(k): v for k, v in values["errors"].items()}})


def main() -> int:
    """Measures and prints net by net."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]
    os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="store_true", help="print one net's figures as JSON")
    parser.add_argument("--convert", action="store_true", help="convert one checkpoint")
    parser.add_argument("names", nargs="*", help="nets; all if left out")
    options = parser.parse_args()
    if options.only:
        (name,) = options.names
        print(json.dumps(asdict(judge(name))))
        return 0
    if options.convert:
        print(json.dumps(convert(*options.names)))
        return 0
    if not all(map(importlib.util.find_spec, ("gluoncv", "gluonnlp"))):
        print("gluoncv and gluonnlp are not installed for this Python: no nets to measure")
        return 0
    from support.runtime import newest_runtime_opset
    from support.zoo import NAMES

    opsets = [*OPSETS_BELOW_NEWEST, newest_runtime_opset()]
    heads = [*HEADS[:3], *(f"opset {opset}" for opset in opsets[:-1]), "newest", *HEADS[3:]]
    print("|", " | ".join(heads), "|")
    print("|" + "---|" * len(heads))
    rows = []
    for name in options.names or NAMES:
        rows.append(measured(name))
        print("|", " | ".join(rows[-1].cells(opsets)), "|", flush=True)
    refused = sum(bool(row.refused) for row in rows)
    wrong = sum(bool(row.faults) for row in rows)
    right = sum(not row.faults and not row.refused for row in rows)
    print(f"\n{right} of {len(rows)} are right, {refused} are refused, {wrong} are wrong")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
