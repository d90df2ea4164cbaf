"""Prints, as a Markdown table, how nets of MXNet, gluoncv and gluonnlp become ML Programs.

    python benchmarks/coreml_zoo.py [name ...]

Nets of MXNet's own zoo are called ``zoo:NAME``. Each net gets calibrated random weights, is
written to MXNet's files, converted from them in float32 and in float16, loaded by coremltools,
which checks the type of every value, and run by the executor of the tests; that computes each
operation of a float16 program on operands of float16, and rounds its result once. What it
gives is compared with MXNet in float32, in deviations of each output. A net that selects boxes
is compared element by element around its selections, and as a whole by the share of MXNet's
detections that are found again. Each net has a process of its own, so that memory stays
bounded. The exit code is 0 where every net is right.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]
os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")

from support.accuracy import FACES, ZOO  # noqa: E402
from support.coreml_zoo import COLUMNS, Row, judge, net_of  # noqa: E402
from support.zoo import NAMES  # noqa: E402

from benchmarks.rows import values_from_process  # noqa: E402
from serde.compat import import_mxnet  # noqa: E402


def main(names: list[str]) -> int:
    """Measures and prints net by net."""
    if names[:1] == ["--only"]:
        mx = import_mxnet()
        print("\n" + json.dumps(asdict(judge(names[1], net_of(mx, names[1])))))
        return 0
    if not names:
        names = [*(f"zoo:{name}" for name in ZOO), *FACES]
        if all(map(importlib.util.find_spec, ("gluoncv", "gluonnlp"))):
            names += NAMES
    print("|", " | ".join(COLUMNS), "|")
    print("|" + "---|" * len(COLUMNS))
    rows = []
    for name in names:
        rows.append(Row(**values_from_process(__file__, name)))
        print("|", " | ".join(rows[-1].cells()), "|", flush=True)
    refused = sum(bool(row.refused) for row in rows)
    wrong = sum(bool(row.faults) for row in rows)
    right = sum(not row.faults and not row.refused for row in rows)
    print(f"\n{right} of {len(rows)} are right, {refused} are refused, {wrong} are wrong")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
