"""Prints, as a Markdown table, how nets of MXNet, gluoncv and gluonnlp become TFLite models.

    python benchmarks/tflite_zoo.py [--float] [name ...]

Nets of MXNet's own zoo are called ``zoo:NAME``. Each net gets calibrated random weights, is
written to MXNet's files and converted from them; an image comes in with its channels last.
What LiteRT's optimised kernels give is compared with MXNet, in deviations of each output; a net
that selects boxes is compared element by element around its selections. Then it is quantised to
int8 with ranges of four samples: the power of MXNet's outputs over that of the difference, and
the share of four other samples whose greatest score is the same (``--float`` leaves that out).
Each net has a process of its own. The exit code is 0 where no net is wrong.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]
os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")

import numpy as np  # noqa: E402
from support.accuracy import CEILING, FACES, FLOOR, LEAST_CHANGE, ZOO, refer  # noqa: E402
from support.coreml_zoo import net_of  # noqa: E402
from support.oracle import PlainMxnet  # noqa: E402
from support.tflite_models import run_litert  # noqa: E402
from support.zoo import LEAST_CHANGE_OF_BOXES, NAMES, around_selections, selections  # noqa: E402

import serde  # noqa: E402
from benchmarks.rows import values_from_process  # noqa: E402
from serde.compat import import_mxnet  # noqa: E402
from serde.errors import UnsupportedModelError  # noqa: E402
from serde.tflite.codec import load  # noqa: E402

COLUMNS = ("net", "nodes", "transposes", "s", "MB", "error", "MXNet itself", "int8 SNR dB",
           "same class", "verdict")  # fmt: skip
CALIBRATED, JUDGED = range(100, 104), range(7, 11)
"""Seeds of samples."""


@dataclass
class Row:
    """What is printed of a net.

    Attributes:
        name: The net.
        nodes: Operators of the file.
        transposes: Those that are transposes.
        seconds: Of the conversion.
        megabytes: Of the file.
        error: LiteRT against MXNet, in deviations.
        own: Difference between MXNet's two settings.
        signal: Of the net in int8, the ratio in decibels; the least over the outputs.
        same: Of the net in int8, the share of samples with the same class.
        faults: What is wrong, empty where all is right.
        refused: Operators without conversion, with their reasons.
    """

    name: str
    nodes: int = 0
    transposes: int = 0
    seconds: float = 0.0
    megabytes: float = 0.0
    error: float = float("nan")
    own: float = 0.0
    signal: float | None = None
    same: float | None = None
    faults: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def cells(self) -> list[str]:
        """The row of the table."""
        faults = [*self.faults, *(f"refused: {each}" for each in self.refused)]
        counts = [str(self.nodes), str(self.transposes)]
        figures = [f"{self.seconds:.1f}", f"{self.megabytes:.1f}"]
        errors = [f"{self.error:.1e}", f"{self.own:.1e}"]
        int8 = ["" if self.signal is None else f"{self.signal:.1f}"]
        int8 += ["" if self.same is None else f"{self.same:.0%}"]
        return [self.name, *counts, *figures, *errors, *int8, "; ".join(faults) or "ok"]


def judge(name: str, *, quantise: bool) -> Row:
    """Build, convert and compare one net."""
    mx, row, oracle = import_mxnet(), Row(name), PlainMxnet()
    net = net_of(mx, name)
    selects = bool(selections(net.symbol))
    compared = around_selections(mx, net) if selects else net
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        try:
            judged = refer(oracle, mx, compared, folder)
            row.own = judged.own
            convert(row, compared, folder / "net.tflite", mx)
            row.error = judged.error(run(folder / "net.tflite", compared.inputs(7)))
            bound = min(max(FLOOR, 3 * judged.own), CEILING)
            if not row.error <= bound:
                row.faults.append(f"more than {bound:.1e} off")
            if judged.change <= (LEAST_CHANGE_OF_BOXES if selects else LEAST_CHANGE):
                row.faults.append(f"outputs change by {judged.change:.2f} only")
            if quantise and not selects:
                measure_int8(row, net, folder, mx)
        except UnsupportedModelError as error:
            issues = Counter((each.op, each.reason) for each in error.report.issues)
            row.refused = sorted(f"{op} x{n} {why}" for (op, why), n in issues.items())
        except Exception as error:  # whatever goes wrong is a line of the table
            row.faults.append(" ".join(f"{type(error).__name__}: {error}".split())[:300])
    oracle.close()
    return row


def images_of(inputs: dict[str, np.ndarray]) -> list[str]:
    """Inputs that are images of three channels."""
    return [name for name, x in inputs.items() if x.ndim == 4 and x.shape[1] == 3]


def convert(row: Row, net: Any, target: Path, mx: Any) -> None:
    """Write a net and note what was written."""
    inputs = net.inputs(7)
    paths, begun = net.save(mx, target.with_name("net")), time.perf_counter()
    shapes = {each: values.shape for each, values in inputs.items()}
    serde.convert(list(paths), target, input_shapes=shapes, images=images_of(inputs))
    row.seconds = time.perf_counter() - begun
    row.megabytes = target.stat().st_size / 1e6
    kinds = Counter(each.name for graph in load(target).subgraphs for each in graph.operators)
    row.nodes, row.transposes = kinds.total(), kinds["TRANSPOSE"]


def run(path: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What LiteRT gives for a sample."""
    last = images_of(inputs)
    given = {k: x.transpose(0, 2, 3, 1).copy() if k in last else x for k, x in inputs.items()}
    model = load(path)
    graph = model.subgraphs[0]
    feeds = [given[graph.tensors[i].name] for i in graph.inputs]
    kinds = [graph.tensors[i].dtype for i in graph.inputs]
    typed = [np.asarray(x, kind) for x, kind in zip(feeds, kinds, strict=True)]
    return run_litert(path.read_bytes(), typed, optimised=True)


def measure_int8(row: Row, net: Any, folder: Path, mx: Any) -> None:
    """Quantise a net, which is compared with MXNet on samples on which no range was measured."""
    paths, inputs = net.save(mx, folder / "net"), net.inputs(7)
    last = images_of(inputs)

    def drawn(seeds: range) -> list[dict[str, np.ndarray]]:
        samples = map(net.inputs, seeds)
        return [
            {k: x.transpose(0, 2, 3, 1).copy() if k in last else x for k, x in each.items()}
            for each in samples
        ]

    report = serde.Report()
    serde.convert(
        list(paths), folder / "small.tflite", images=last, int8=True, report=report,
        input_shapes={each: values.shape for each, values in inputs.items()},
        calibration=drawn(CALIBRATED), check_data=drawn(JUDGED),
    )  # fmt: skip
    smaller = [each.after for each in report.accuracy]
    row.signal = min(each.snr for each in smaller)
    row.same = min((each.agreement for each in smaller if each.agreement is not None), default=None)


def main() -> int:
    """Measures and prints net by net."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--float", action="store_true", help="without int8")
    parser.add_argument("--only", action="store_true", help="print one net's figures as JSON")
    parser.add_argument("names", nargs="*", help="nets; all if left out")
    options = parser.parse_args()
    if options.only:
        print("\n" + json.dumps(asdict(judge(options.names[0], quantise=not options.float))))
        return 0
    names = options.names
    if not names:
        names = [*(f"zoo:{name}" for name in ZOO), *FACES]
        if all(map(importlib.util.find_spec, ("gluoncv", "gluonnlp"))):
            names += NAMES
    print("|", " | ".join(COLUMNS), "|")
    print("|" + "---|" * len(COLUMNS))
    rows = []
    for name in names:
        rows.append(Row(**values_from_process(__file__, name, *["--float"] * options.float)))
        print("|", " | ".join(rows[-1].cells()), "|", flush=True)
    refused = sum(bool(row.refused) for row in rows)
    wrong = sum(bool(row.faults) for row in rows)
    print(f"\n{len(rows) - refused - wrong} of {len(rows)} are right, {refused} are refused, "
          f"{wrong} are wrong")  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
