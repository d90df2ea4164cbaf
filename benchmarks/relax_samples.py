"""Prints, as Markdown tables, how samples of Relay's operators run as modules of Relax.

    python benchmarks/relax_samples.py [--failures] [operator or prefix* ...]

Each sample is built, compiled by TVM for this processor, run, and compared with the operator's
kernel, in processes that may crash: with its lengths, and with a symbol for each length. An
operator is right where all its samples are. The exit code is 0 where at least 95 % of the operators
are right with lengths, and nothing is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

LEAST_RIGHT = 0.95
"""Share of the operators that have to be right."""

HEADS = ("category", "operators", "right", "samples", "right", "refused", "wrong", "failed")


def rows(verdicts: dict[str, str]) -> list[tuple[str, ...]]:
    """The rows of a table: a category of operators each, and all of them."""
    from serde.relay.ir.registry import all_ops

    found: dict[str, dict[str, list[str]]] = {}
    for key, verdict in verdicts.items():
        name = key.rpartition("-")[0]
        category = all_ops()[name].infer.__module__.removeprefix("serde.relay.op.").split(".")[0]
        for each in (category, "all"):
            found.setdefault(each, {}).setdefault(name, []).append(verdict)
    return [(category, *_figures(list(found[category].values()))) for category in sorted(found)]


def _figures(operators: list[list[str]]) -> list[str]:
    counts = Counter(each for verdicts in operators for each in verdicts)
    right = sum(set(verdicts) == {"right"} for verdicts in operators)
    failed = counts["ERROR"] + counts["BUG"] + counts["CRASH"]
    cells = [counts.total(), counts["right"], counts["refused"], counts["WRONG"], failed]
    return [str(len(operators)), f"{right} ({right / len(operators):.1%})", *map(str, cells)]


def main() -> int:
    """Judges and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--failures", action="store_true", help="a line a sample that is not right")
    parser.add_argument("operators", nargs="*", help="operators, or prefixes with *")
    options = parser.parse_args()
    if find_spec("tvm") is None:
        print("TVM is not installed for this Python: nothing to run")
        return 0
    from support.relax_apart import FAILED
    from support.relax_samples import run_apart, select

    names, passed = select(options.operators), True
    for symbolic in (False, True):
        found, failures = dict[str, str](), []
        for key, verdict, said in run_apart(names, symbolic=symbolic):
            found[key] = verdict
            if verdict != "right":
                failures.append(f"{verdict} {key}: {said}")
        print("\nWith a symbol for each length:\n" if symbolic else "With lengths:\n")
        print("|", " | ".join(HEADS), "|")
        print("|" + "---|" * len(HEADS))
        for row in rows(found):
            print("|", " | ".join(row), "|", flush=True)
        if options.failures:
            print("", *sorted(failures), sep="\n")
        passed = passed and not set(FAILED) & set(found.values())
        if not symbolic:
            wrong = {key.rpartition("-")[0] for key, each in found.items() if each != "right"}
            every = {key.rpartition("-")[0] for key in found}
            passed = passed and len(wrong) <= (1 - LEAST_RIGHT) * len(every)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
