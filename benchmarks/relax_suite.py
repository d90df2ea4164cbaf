"""Prints how cases of onnx's backend suite run on TVM: through serde, and through TVM's importer.

    python benchmarks/relax_suite.py [--failures] [case or pattern ...]

Every case is compiled for this processor as it is, and with constant inputs as initializers, in
processes that may crash. Results are judged as the suite does. A case of the column "serde only"
is right through serde and not through ``tvm.relax.frontend.onnx.from_onnx``. The exit code is 0
where at least 85 % are right through serde with constant inputs, and none is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

LEAST_RIGHT = 0.85
"""Share of the cases that have to be right through serde, with constant inputs."""

HEADS = ("inputs", "way", "cases", "right", "refused", "wrong", "failed", "crashed", "share")


def figures(verdicts: dict[str, str]) -> list[str]:
    """The cells of a row behind its names."""
    counts = Counter(verdicts.values())
    failed = counts["ERROR"] + counts["BUG"]
    cells = [counts["right"], counts["refused"], counts["WRONG"], failed, counts["CRASH"]]
    share = f"{counts['right'] / max(len(verdicts), 1):.1%}"
    return [str(each) for each in (len(verdicts), *cells)] + [share]


def main() -> int:
    """Judges and prints way by way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--failures", action="store_true", help="one line a case that is not right")
    parser.add_argument("cases", nargs="*", help="names of cases, or patterns; all if left out")
    options = parser.parse_args()
    if find_spec("tvm") is None:
        print("TVM is not installed for this Python: nothing to run")
        return 0
    from support.relax_suite import WAYS, run_apart, select

    names = select(options.cases)
    failures: list[str] = []
    passed = True
    print("|", " | ".join([*HEADS, "serde only", "TVM only"]), "|")
    print("|" + "---|" * (len(HEADS) + 2))
    for freeze, label in ((False, "as they are"), (True, "constant")):
        found: dict[str, dict[str, str]] = {way: {} for way in WAYS}
        for way, verdicts in found.items():
            for name, verdict, said in run_apart(names, way=way, freeze=freeze):
                verdicts[name] = verdict
                if verdict != "right":
                    failures.append(f"{label}, {way}: {verdict} {name}: {said}")
        ours, theirs = found["serde"], found["tvm"]
        only = sum(ours[each] == "right" != theirs[each] for each in names)
        other = sum(theirs[each] == "right" != ours[each] for each in names)
        for way, verdicts in found.items():
            ends = [str(only), str(other)] if way == "serde" else ["", ""]
            print("|", " | ".join([label, way, *figures(verdicts), *ends]), "|", flush=True)
        passed = passed and "WRONG" not in ours.values() and "CRASH" not in ours.values()
        enough = sum(each == "right" for each in ours.values()) >= LEAST_RIGHT * len(ours)
        passed = passed and (enough or not freeze)
    if options.failures:
        print("", *failures, sep="\n")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
