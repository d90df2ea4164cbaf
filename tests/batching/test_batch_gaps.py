"""What holds models up, against counting it out."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from support.batch_outcomes import died, many_outcomes, real_outcomes

from serde.fleet.batching.findings import Findings
from serde.fleet.batching.gaps import Gaps


def drawn(seed: int) -> list[set[str]]:
    """Operators that each of some models lacks, a few of them often."""
    draw = random.Random(seed)
    names = [f"op{place}" for place in range(9)]
    weights = [1 / (place + 1) for place in range(9)]
    return [set(draw.choices(names, weights, k=draw.randint(0, 4))) for _ in range(60)]


def gaps_of(models: list[set[str]]) -> Gaps:
    gaps = Gaps()
    for place, ops in enumerate(models):
        issues = [
            {"op": op, "node": f"{op}_{turn}", "reason": "no importer", "hint": None}
            for op in sorted(ops)
            for turn in range(2)
        ]
        gaps.add(f"net-{place}", {"title": "onnx -> relay", "issues": issues})
    return gaps


@pytest.mark.parametrize("seed", range(6))
def test_models_are_counted_by_operator(seed: int) -> None:
    models = drawn(seed)
    for gap in gaps_of(models).operators():
        op = gap.operator.op
        assert gap.models == sum(op in ops for ops in models)
        assert gap.alone == sum(ops == {op} for ops in models)
        assert gap.nodes == 2 * gap.models
        assert gap.reasons == (("no importer", gap.models),)
        assert op in models[int(gap.example.partition("-")[2])]
    assert len(gaps_of(models).operators()) == len(set(chain(*models)))


@pytest.mark.parametrize("seed", range(6))
def test_each_step_frees_as_many_models_as_any_could(seed: int) -> None:
    models = [ops for ops in drawn(seed) if ops]
    there: set[str] = set()
    steps = list(gaps_of(models).next_best(99))
    for step in steps:
        lacking = set(chain(*models)) - there
        freed = {
            op: sum(bool(ops - there) and ops <= there | {op} for ops in models) for op in lacking
        }
        assert step.freed == max(freed.values()) == freed[step.operator.op]
        there.add(step.operator.op)
        assert step.total == sum(ops <= there for ops in models)
    assert steps[-1].total == len(models)
    assert [s for s in gaps_of(models).next_best(3)] == steps[:3]


def test_the_order_of_models_does_not_matter() -> None:
    models = drawn(3)
    forward, backward = gaps_of(models), gaps_of(models[::-1])
    assert list(forward.next_best()) == list(backward.next_best())
    assert [g.operator for g in forward.operators()] == [g.operator for g in backward.operators()]


def test_reading_and_writing_are_told_apart() -> None:
    gaps = Gaps()
    issue = {"op": "Gate", "node": "n", "reason": "r", "hint": None}
    gaps.add("a", {"title": "onnx -> relay", "issues": [issue]})
    gaps.add("b", {"title": "relay -> nnef", "issues": [issue]})
    assert [gap.operator.way for gap in gaps.operators()] == ["onnx -> relay", "relay -> nnef"]


def test_reasons_are_grouped_over_names_and_numbers() -> None:
    outcomes = [
        died(f"net-{place}.onnx", "malformed", f"dir/net-{place}.onnx: at byte {place}: cut off")
        for place in range(50)
    ]
    outcomes += [died("other.onnx", "crashed", "killed by signal 11 (SIGSEGV)")]
    first, second = Findings(outcomes).reasons()
    assert (first.models, first.text) == (50, "dir/…: at byte …: cut off")
    assert (second.models, second.text) == (1, "killed by signal 11 (SIGSEGV)")


def test_figures_of_a_batch(tmp_path: Path) -> None:
    outcomes = list(many_outcomes(tmp_path, 400))
    found = Findings(outcomes)
    assert found.models == 400
    assert found.done == sum(outcome.status == "done" for outcome in outcomes)
    assert found.failed == 400 - found.done
    assert found.bytes_read == sum(outcome.bytes_read for outcome in outcomes)
    ends = [outcome.started + outcome.seconds for outcome in outcomes]
    assert found.elapsed == max(ends) - min(outcome.started for outcome in outcomes)
    slowest = sorted(outcomes, key=lambda o: (-o.seconds, o.name))
    assert [name for name, _ in found.slowest()][:5] == [o.name for o in slowest[:5]]
    largest = sorted(outcomes, key=lambda o: (-o.bytes_read, o.name))
    assert [name for name, _ in found.largest()][:5] == [o.name for o in largest[:5]]


def test_what_was_checked_is_counted(tmp_path: Path) -> None:
    report = real_outcomes(tmp_path)["small"].report
    verdict = {"informative": True, "passed": True}
    wrong, silent = {**verdict, "passed": False}, {"informative": False, "passed": False}
    cases = ([verdict, silent], [verdict, wrong], [silent], [])
    found = Findings()
    for verdicts in cases:
        found.add(replace(died("a", "done", ""), report={**report, "verdicts": verdicts}))
    wanted = {"agrees": 1, "differs": 1, "says nothing": 1, "not checked": 1}
    assert found.verdicts == wanted
