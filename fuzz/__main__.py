"""Fuzzes readers and converters.

    python -m fuzz --format onnx --seconds 60 [--runs N] [--seed N] [--to none|one|all|TARGET]
    python -m fuzz --replay fuzz/.findings/onnx/*.zip [--to TARGET]

A run takes a seed, changes it in a few places, reads it and, as ``--to`` says, writes it: not at
all, as one format that is drawn, as each, or as the one named. Each distinct finding, by kind,
exception and place, is printed, made smaller and kept in ``fuzz/.findings``. Seed and number of a
run give the same run again.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from fuzz.judge import FORMS, INSPECT
from fuzz.runner import Session, replay
from fuzz.seeds import FORMATS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzzes readers.")
    parser.add_argument("--format", choices=FORMATS, action="append", help="all if left out")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each format (60)")
    parser.add_argument("--runs", type=int, default=sys.maxsize, help="at most, for each format")
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--to", default="one", choices=("none", "one", "all", INSPECT, *FORMS))
    parser.add_argument("--only", default="", help="seeds whose name holds this text")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / ".findings")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="CASE")
    given = parser.parse_args()
    if given.replay:
        return 1 if sum(replay(path, given.to) for path in given.replay) else 0
    found = 0
    for format in given.format or FORMATS:
        session = Session(
            format, given.seed, given.to, given.out, only=given.only, shrink=not given.no_shrink
        )
        started = time.monotonic()
        runs = session.run(given.first, given.runs, given.seconds)
        elapsed = time.monotonic() - started
        found += len(session.keeper.findings)
        print(
            f"{format}: {runs} runs in {elapsed:.0f} s, {len(session.keeper.findings)} findings; "
            f"read {session.accepted}"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
