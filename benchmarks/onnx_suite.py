"""How many cases of onnx's backend suite are converted, in all and by operator.

`python benchmarks/onnx_suite.py [--by-operator] [--failures]` runs every case through import
and the Relay interpreter, as it is and with constant inputs as initializers, through
import, export and ONNX Runtime, and through our MXNet export and MXNet 1.9.1.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent))

from support.onnx_suite import (
    SuiteCase,
    check_export,
    check_import,
    check_mxnet,
    frozen,
    imported,
    load_cases,
)

from serde.command.render import markdown_document
from serde.core.report import Table
from serde.errors import SerdeError

ROUTES: dict[str, Callable[[SuiteCase], object]] = {
    "import": check_import,
    "import, frozen": lambda case: check_import(frozen(case)),
    "import, export": lambda case: check_export(case, imported(case)),
    "import, frozen, MXNet": lambda case: check_mxnet(frozen(case)),
}


def outcome(route: Callable[[SuiteCase], object], case: SuiteCase) -> tuple[str, str]:
    """Return "passed", "refused" or "wrong", and why."""
    try:
        route(case)
    except SerdeError as error:
        return "refused", " ".join(str(error).split())
    except Exception as error:  # a runtime has an error class a cause, all of its own
        return "wrong", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return "passed", ""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by-operator", action="store_true", help="one line an operator, too")
    parser.add_argument("--failures", action="store_true", help="one line a failure, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cases = load_cases()
    out = {case.name: case.left_out for case in cases}
    counted = [case for case in cases if out[case.name] is None]
    rows, failures = [], []
    operators: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for name, route in ROUTES.items():
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for case in counted:
            result, reason = outcome(route, case)
            group = f"{case.kind}, expanded" if case.expanded else case.kind
            found[group][result] += 1
            found["all"][result] += 1
            for operator in case.operators:
                operators[operator][name][result] += 1
            if result != "passed":
                failures.append((name, case.name, result, reason[:160]))
        rows += [(name, group, *_figures(counts)) for group, counts in found.items()]
    head = ("route", "cases", "passed", "refused", "wrong", "share")
    found_tables = [Table(head, tuple(rows), frozenset({2, 3, 4, 5}))]
    skipped = tuple((name, reason) for name, reason in out.items() if reason)
    found_tables.append(Table((f"left out ({len(skipped)} of {len(cases)})", ""), skipped))
    if options.by_operator:
        lines = [
            (operator, name, *_figures(counts))
            for operator, routes in sorted(operators.items())
            for name, counts in routes.items()
        ]
        found_tables.append(Table(("operator", *head[:1], *head[2:]), tuple(lines)))
    if options.failures:
        found_tables.append(Table(("route", "case", "result", "reason"), tuple(failures)))
    print(markdown_document("The backend suite of onnx", found_tables))


def _figures(counts: Counter[str]) -> tuple[str, ...]:
    share = f"{100 * counts['passed'] / counts.total():.1f} %"
    return (*(str(counts[key]) for key in ("passed", "refused", "wrong")), share)


if __name__ == "__main__":
    main()
