"""Lossy steps are declared once: what is no step's name is refused, and the documents list all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import serde
from serde.core.lossy import declare_lossy_step, lossy_steps
from serde.core.report import Report

ROOT = Path(__file__).parents[2]


def test_a_mistyped_name_tells_the_near_one() -> None:
    with pytest.raises(serde.OptionError, match="no lossy step 'int64-as-in32'; did you mean"):
        serde.to_relay("net.onnx", format="onnx", allow={"int64-as-in32"})


def test_another_name_tells_all() -> None:
    with pytest.raises(serde.OptionError) as caught:
        serde.to_relay("net.onnx", format="onnx", allow={"everything"})
    assert all(name in str(caught.value) for name in lossy_steps())


@pytest.mark.parametrize(
    ("name", "message"),
    [("int64-as-int32", "declared already"), ("Int64 As", "no name"), ("", "no name")],
)
def test_what_cannot_be_declared(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declare_lossy_step(name, "something")


def test_a_step_is_a_gap_until_it_is_allowed() -> None:
    step, report = lossy_steps()["int64-as-int32"], Report()
    step.record(report, (), op="cast", node="c", reason="why")
    step.record(report, {"int64-as-int32"}, op="cast", node="d", reason="why")
    assert [(i.node, i.hint) for i in report.issues] == [("c", "allow 'int64-as-int32'")]
    assert [i.node for i in report.allowed] == ["d"]


@pytest.mark.wide
def test_names_stand_in_the_code_in_one_place() -> None:
    quoted = re.compile("|".join(f"['\"]{name}['\"]" for name in lossy_steps()))
    sources = [each for each in (ROOT / "serde").rglob("*.py") if each.name != "lossy.py"]
    assert [str(each) for each in sources if quoted.search(each.read_text("utf-8"))] == []


def test_the_documentation_lists_every_step() -> None:
    text = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    rows = dict(re.findall(r"^  \| `([a-z0-9-]+)` \| ([^|]+) \|$", text, re.MULTILINE))
    told = {name: step.loses for name, step in lossy_steps().items()}
    assert {name: rows.get(name, "").strip() for name in told} == told
