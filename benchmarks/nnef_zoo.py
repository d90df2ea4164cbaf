"""Prints, as a Markdown table, how nets of MXNet, gluoncv and gluonnlp become folders of NNEF.

    python benchmarks/nnef_zoo.py [--torch PYTHON] [name ...]

Nets of MXNet's own zoo are called ``zoo:NAME``. Each net gets calibrated random weights, is
written to MXNet's files and converted from them to a folder, whose shapes Khronos' package
infers. A process of the Python that has PyTorch runs the folder by NNEF-Tools' interpreter; the
folder is also read back, and run by MXNet. Both are compared with MXNet, in deviations of each
output. A net that selects boxes is compared element by element around its selections. Each net
has a process of its own. The exit code is 0 where every net is right.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]
os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")

from support.accuracy import FACES  # noqa: E402
from support.coreml_zoo import net_of  # noqa: E402
from support.nnef_zoo import COLUMNS, NAMES, Row, judge  # noqa: E402
from support.zoo import package_of  # noqa: E402

from benchmarks.rows import values_from_process  # noqa: E402
from serde.compat import import_mxnet  # noqa: E402


def main() -> int:
    """Measures and prints net by net."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = str(ROOT / ".venv-torch" / "bin" / "python")
    parser.add_argument("--torch", default=default, help="the Python that has NNEF-Tools")
    parser.add_argument("--only", action="store_true", help="print one net's figures as JSON")
    parser.add_argument("names", nargs="*", help="nets; all if left out")
    options = parser.parse_args()
    if options.only:
        (name,) = options.names
        row = judge(name, net_of(import_mxnet(), name), options.torch)
        print("\n" + json.dumps(asdict(row)))
        return 0
    names = options.names or NAMES
    if not options.names:
        names = [
            name for name in names if ":" in name or name in FACES or find_spec(package_of(name))
        ]
    print("|", " | ".join(COLUMNS), "|")
    print("|" + "---|" * len(COLUMNS))
    rows = []
    for name in names:
        rows.append(Row(**values_from_process(__file__, name, "--torch", options.torch)))
        print("|", " | ".join(rows[-1].cells()), "|", flush=True)
    refused = sum(bool(row.refused) for row in rows)
    wrong = sum(bool(row.faults) for row in rows)
    right = sum(not row.faults and not row.refused for row in rows)
    print(f"\n{right} of {len(rows)} are right, {refused} are refused, {wrong} are wrong")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
