"""Tiers of tests, and what the summary of a run tells besides pytest's own."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from support.tiers import first_of_grid, tier_of, tiers_left_out


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Mark as `wide` what a grid repeats; make no test that ``-m`` would discard at once."""
    yield
    calls = metafunc._calls
    if not calls:
        return
    unmarked = [call for call in calls if not tier_of(call.marks)]
    first = first_of_grid([tuple(call.indices.values()) for call in unmarked])
    for place, call in enumerate(unmarked):
        if place not in first:
            call.marks.append(pytest.mark.wide.mark)
    left_out = tiers_left_out(metafunc.config.option.markexpr)
    kept = [call for call in calls if tier_of(call.marks) not in left_out]
    # Without parameters pytest would call the function once; of none that stays, one is discarded.
    metafunc._calls = kept or calls[:1]


def pytest_collection_finish() -> None:
    """Spare the collector of garbage the tests themselves, which stay to the end."""
    gc.collect()
    gc.freeze()


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
