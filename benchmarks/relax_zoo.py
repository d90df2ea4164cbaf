"""Prints, as a Markdown table, how TVM computes nets of MXNet, gluoncv and gluonnlp.

    python benchmarks/relax_zoo.py [name ...]

Nets of MXNet's own zoo are called ``zoo:NAME``. Each net gets calibrated random weights, is
written to MXNet's files and becomes a module of Relax, which TVM compiles for this processor and
runs. What it gives is compared with MXNet, in deviations of each output. A net that selects boxes
is compared element by element around its selections. TVM's code is not tuned, so images are small
where a net takes small ones. Each net has a process of its own. The exit code is 0 where every net
is right.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]
os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")

LONGEST = 1800
"""Seconds that a net may take."""


def measured(name: str) -> dict[str, object]:
    """The row of a net, from a process of its own."""
    command = [sys.executable, __file__, "--only", name]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=False, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return {"name": name, "faults": [f"more than {LONGEST} s"]}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return {"name": name, "faults": [f"the process ended with {done.returncode}"]}
    return json.loads(lines[-1])


def main() -> int:
    """Measures and prints net by net."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="store_true", help="print one net's figures as JSON")
    parser.add_argument("names", nargs="*", help="nets; all if left out")
    options = parser.parse_args()
    if not all(map(find_spec, ("tvm", "mxnet"))):
        print("TVM and MXNet are not installed for this Python: nothing to compare")
        return 0
    from support.accuracy import FACES
    from support.relax_zoo import COLUMNS, NAMES, Row, build, judge
    from support.zoo import package_of

    from serde.compat import import_mxnet

    if options.only:
        (name,) = options.names
        row = judge(name, build(import_mxnet(), name))
        print("\n" + json.dumps(asdict(row)))
        return 0
    names = options.names or [
        name for name in NAMES if ":" in name or name in FACES or find_spec(package_of(name))
    ]
    print("|", " | ".join(COLUMNS), "|")
    print("|" + "---|" * len(COLUMNS))
    rows = []
    for name in names:
        rows.append(Row(**measured(name)))
        print("|", " | ".join(rows[-1].cells()), "|", flush=True)
    refused = sum(bool(row.refused) for row in rows)
    wrong = sum(bool(row.faults) for row in rows)
    right = sum(not row.faults and not row.refused for row in rows)
    print(f"\n{right} of {len(rows)} are right, {refused} are refused, {wrong} are wrong")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
