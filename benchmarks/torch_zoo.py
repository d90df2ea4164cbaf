"""Prints, as a Markdown table, how nets of MXNet, gluoncv and gluonnlp become PyTorch's modules.

    python benchmarks/torch_zoo.py [--torch PYTHON] [name ...]

Nets of MXNet's own zoo are called ``zoo:NAME``. Each net gets calibrated random weights, is
written to MXNet's files and converted from them to a folder of source and weights. A process of
the Python that has PyTorch loads the folder by its own ``from_pretrained``, runs the module, and
asks whether ``torch.jit.script`` and ``torch.export`` take it. What it gives is compared with
MXNet, in deviations of each output. A net that selects boxes is compared element by element
around its selections. Each net has a process of its own. The exit code is 0 where every net is
right and 95 % are scripted or exported.
"""

from __future__ import annotations

import argparse
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

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]
os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")

import numpy as np  # noqa: E402
from support.accuracy import CEILING, FACES, FLOOR, LEAST_CHANGE, ZOO, refer  # noqa: E402
from support.coreml_zoo import net_of  # noqa: E402
from support.oracle import PlainMxnet  # noqa: E402
from support.zoo import LEAST_CHANGE_OF_BOXES, NAMES, around_selections, selections  # noqa: E402

import serde  # noqa: E402
from benchmarks.rows import values_from_process  # noqa: E402
from serde.compat import import_mxnet  # noqa: E402
from serde.errors import UnsupportedModelError  # noqa: E402

RUNNER = ROOT / "tests" / "support" / "torch_runner.py"
COLUMNS = ("net", "lines", "error", "MXNet itself", "write s", "script", "export", "verdict")
LEAST_TAKEN = 0.95
"""Share of the nets that ``torch.jit.script`` or ``torch.export`` has to take."""


@dataclass
class Row:
    """What is printed of a net.

    Attributes:
        name: The net.
        lines: Lines of ``model.py``.
        error: PyTorch against MXNet, in deviations.
        own: Difference between MXNet's two settings.
        seconds: Of the conversion.
        script: Why ``torch.jit.script`` does not take it, empty where it does.
        export: Why ``torch.export`` does not take it, likewise.
        faults: What is wrong, empty where all is right.
        refused: Operators without conversion, with their reasons.
    """

    name: str
    lines: int = 0
    error: float = float("nan")
    own: float = 0.0
    seconds: float = 0.0
    script: str = "not run"
    export: str = "not run"
    faults: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def is_taken(self) -> bool:
        """Whether one of PyTorch's own tools takes the module."""
        return not (self.script and self.export)

    def cells(self) -> list[str]:
        """The row of the table."""
        faults = [*self.faults, *(f"refused: {each}" for each in self.refused)]
        figures = [str(self.lines), f"{self.error:.1e}", f"{self.own:.1e}", f"{self.seconds:.1f}"]
        taken = [self.script or "yes", self.export or "yes"]
        return [self.name, *figures, *taken, "; ".join(faults) or "ok"]


def judge(name: str, python: str) -> Row:
    """Build, convert and compare one net."""
    mx, row = import_mxnet(), Row(name)
    net = net_of(mx, name)
    selects = bool(selections(net.symbol))
    if selects:
        net = around_selections(mx, net)
    oracle = PlainMxnet()
    with tempfile.TemporaryDirectory() as text:
        directory = Path(text)
        try:
            paths, image = net.save(mx, directory / "net"), net.inputs(7)
            judged = refer(oracle, mx, net, directory)
            row.own = judged.own
            shapes = {each: values.shape for each, values in image.items()}
            start = time.perf_counter()
            folder = directory / "net_torch"
            serde.convert(list(paths), folder, target_format="torch", input_shapes=shapes)
            row.seconds = time.perf_counter() - start
            row.lines = len((folder / "model.py").read_text(encoding="utf-8").splitlines())
            row.error = judged.error(run(row, python, folder, image))
            bound = min(max(FLOOR, 3 * judged.own), CEILING)
            if not row.error <= bound:
                row.faults.append(f"more than {bound:.1e} off")
            if judged.change <= (LEAST_CHANGE_OF_BOXES if selects else LEAST_CHANGE):
                row.faults.append(f"outputs change by {judged.change:.2f} only")
        except UnsupportedModelError as error:
            issues = Counter((each.op, each.reason) for each in error.report.issues)
            row.refused = sorted(f"{op} x{n} {why}" for (op, why), n in issues.items())
        except Exception as error:  # whatever goes wrong is a line of the table
            row.faults.append(" ".join(f"{type(error).__name__}: {error}".split())[:300])
    oracle.close()
    return row


def run(row: Row, python: str, folder: Path, image: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Run a written folder by PyTorch."""
    inputs, outputs = folder.parent / "inputs.npz", folder.parent / "outputs.npz"
    np.savez(inputs, **image)
    command = [python, str(RUNNER), str(folder), str(inputs), str(outputs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"PyTorch: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    said = json.loads(done.stdout.strip().splitlines()[-1])
    row.script, row.export = said["script"], said["export"]
    with np.load(outputs) as found:
        return [found[str(place)] for place in range(len(found.files))]


def main() -> int:
    """Measures and prints net by net."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = str(ROOT / ".venv-torch" / "bin" / "python")
    parser.add_argument("--torch", default=default, help="the Python that has PyTorch")
    parser.add_argument("--only", action="store_true", help="print one net's figures as JSON")
    parser.add_argument("names", nargs="*", help="nets; all if left out")
    options = parser.parse_args()
    if options.only:
        print("\n" + json.dumps(asdict(judge(options.names[0], options.torch))))
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
        rows.append(Row(**values_from_process(__file__, name, "--torch", options.torch)))
        print("|", " | ".join(rows[-1].cells()), "|", flush=True)
    refused = sum(bool(row.refused) for row in rows)
    wrong = sum(bool(row.faults) for row in rows)
    right = sum(not row.faults and not row.refused for row in rows)
    taken = sum(row.is_taken for row in rows)
    print(f"\n{right} of {len(rows)} are right, {refused} are refused, {wrong} are wrong")
    print(f"{taken} of {len(rows)} are scripted or exported")
    return 0 if right == len(rows) and taken >= LEAST_TAKEN * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
