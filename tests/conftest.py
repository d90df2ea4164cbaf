"""What the summary of a run of the tests tells besides pytest's own."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell how many operators of MIL were written, and which no other implementation judged."""
    found: dict[str, set[str]] = {"mil_exported": set(), "mil_judged": set()}
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            found.get(name, set()).update(value)
    exported = found["mil_exported"]
    if exported:
        unjudged = sorted(exported - found["mil_judged"])
        judged = len(exported) - len(unjudged)
        terminalreporter.write_line(
            f"operators of MIL that were written: {len(exported)}; judged by coremltools, PyTorch "
            f"or ONNX Runtime: {judged} ({judged / len(exported):.1%}); "
            f"not judged: {' '.join(unjudged) or 'none'}"
        )
