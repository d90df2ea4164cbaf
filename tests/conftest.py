"""Tiers of tests, and what the summary of a run tells besides pytest's own."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from _pytest.mark.expression import Expression
from support.tiers import first_of_grid, tier_of


@cache
def _holds(expression: str, names: frozenset[str]) -> bool:
    """Whether an expression of ``-m`` is true of a test that has marks of these names."""
    return not expression or Expression.compile(expression).evaluate(lambda name: name in names)


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
    expression = metafunc.config.option.markexpr
    own = frozenset(mark.name for mark in metafunc.definition.iter_markers())
    kept = [
        call for call in calls if _holds(expression, own.union(mark.name for mark in call.marks))
    ]
    # Without parameters pytest would call the function once; of none that stays, one is discarded.
    metafunc._calls = kept or calls[:1]


def pytest_collection_finish() -> None:
    """Spare the collector of garbage the tests themselves, which stay to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _same_draws(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whatever draws without a seed draw the same in every run of a test.

    Distributions are judged with a chance of error that is small for one test and no longer
    small for the thousands of a run.
    """
    seed = crc32(request.node.name.encode())
    generator = random.Random(seed)
    monkeypatch.setattr("serde.relay.op.random.seeded.secrets.randbits", generator.getrandbits)
    random.seed(seed)
    np.random.seed(seed)
    seeders = {
        "mxnet": lambda mxnet: mxnet.random.seed(seed),
        "onnxruntime": lambda onnxruntime: onnxruntime.set_seed(seed),
        "torch": lambda torch: torch.manual_seed(seed),
    }
    for name, set_seed in seeders.items():
        if name in sys.modules:
            set_seed(sys.modules[name])


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
