"""Prints, as a Markdown table, the verdict on every pair of formats there is.

    python benchmarks/pairs.py [net ...]

Nets of MXNet are written in each format that can be read, and converted from there to each
that can be written; what comes out is run beside the original net in MXNet on the same
inputs. The exit code is 1 where one differs; what is refused is listed with its operators.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples")]
os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")

from support.pairs import COLUMNS, NETS, verdicts  # noqa: E402

from serde.compat import import_mxnet  # noqa: E402


def main(names: list[str]) -> int:
    """Convert, check and print row by row."""
    mx = import_mxnet()
    print("|", " | ".join(COLUMNS), "|")
    print("|" + "---|" * len(COLUMNS))
    found = []
    with tempfile.TemporaryDirectory() as directory:
        for verdict in verdicts(mx, names or NETS, Path(directory)):
            print("|", " | ".join(verdict.row()), "|", flush=True)
            found.append(verdict)
    wrong = sum(bool(verdict.fault) for verdict in found)
    refused = sum(bool(verdict.refused) for verdict in found)
    agree = len(found) - wrong - refused
    print(f"\n{agree} of {len(found)} agree, {refused} are refused, {wrong} are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
