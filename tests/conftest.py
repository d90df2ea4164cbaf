"""What the summary of a run of the tests tells besides pytest's own."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List the operators of MIL that were written, but that no other implementation judged."""
    found: dict[str, set[str]] = {"coreml_judged": set(), "coreml_unjudged": set()}
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            found.get(name, set()).update(value)
    unjudged = found["coreml_unjudged"] - found["coreml_judged"]
    if unjudged:
        terminalreporter.write_line(f"unjudged operators of MIL: {' '.join(sorted(unjudged))}")
