"""Tables on terminals of any width: nothing of a verdict is lost."""

from __future__ import annotations

import io
import re
import sys

import pytest

from serde.command.console import Terminal
from serde.core.report import OutputVerdict, Report, Table, operator_table, verdict_table

LONG = "detector/box_predictor/class_head/BiasAdd_1:0"
SHAPE = (1, 1024, 128, 1280)
VERDICTS = [
    OutputVerdict("scores", ((2, 1000), (2, 1000)), ("float32", "float32"), 1.25e-6, 2.5e-6, 1.0,
                  1e-4, 1e-4, True),
    OutputVerdict(LONG, (SHAPE, SHAPE), ("float32", "float16"), 0.5, 0.25, 0.875, 3e-2, 3e-2,
                  False, remark="2 of 40 rows swapped within 1.5e-06"),
]  # fmt: skip
FIGURES = ("1.25e-06", "2.50e-06", "1.000000", "5.00e-01", "2.50e-01", "0.875000", "3.0e-02")
TEXTS = ("scores", "2x1000", LONG, "1x1024x128x1280", "float32", "float32 != float16", "✓", "✗",
         "2 of 40 rows swapped within 1.5e-06")  # fmt: skip


class Screen(io.StringIO):
    """A stream that says that it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def shown(
    monkeypatch: pytest.MonkeyPatch, table: Table, width: int | None, *, color: bool = False
) -> str:
    """What a terminal of so many columns shows; None for a pipe."""
    stream = io.StringIO() if width is None else Screen()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("COLUMNS", str(width or 10))
    monkeypatch.setenv("TERM", "xterm-256color")
    if color:
        monkeypatch.delenv("NO_COLOR", raising=False)
    else:
        monkeypatch.setenv("NO_COLOR", "1")
    Terminal().table(table)
    return stream.getvalue()


def verdicts() -> Table:
    return verdict_table(VERDICTS, ("✓", "✗"))


@pytest.mark.parametrize("width", [50, 80, 120, 200, None])
def test_nothing_of_a_verdict_is_lost(monkeypatch: pytest.MonkeyPatch, width: int | None) -> None:
    text = shown(monkeypatch, verdicts(), width)
    assert all(len(line) <= (width or 10_000) for line in text.splitlines())
    for wanted in (*TEXTS, *FIGURES):
        assert wanted in text


@pytest.mark.parametrize("width", [20, 30])
def test_a_name_wider_than_the_terminal_is_folded(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    text = shown(monkeypatch, verdicts(), width)
    assert all(len(line) <= width for line in text.splitlines())
    assert LONG in re.sub(r"\s", "", text)
    assert "✗" in text


def test_a_narrow_terminal_has_a_block_for_each_output(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, verdicts(), 50).splitlines()
    assert lines[0] == "scores  ✓"
    assert lines[1].split() == ["shape", "2x1000"]
    assert f"{LONG}  ✗" in lines
    assert lines[-1] == ""


def test_a_wide_terminal_has_a_line_for_each_output(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, verdicts(), 220).splitlines()
    assert len(lines) == 4
    assert lines[0].split()[:2] == ["output", "shape"]
    assert lines[1].startswith("scores ")
    assert lines[1].endswith("✓")


def test_the_mark_has_its_colour_in_either_form(monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (50, 220):
        text = shown(monkeypatch, verdicts(), width, color=True)
        assert re.search(r"\x1b\[32m\s*✓", text)
        assert "\x1b[" not in shown(monkeypatch, verdicts(), width)


def test_operators_of_source_and_target_go_below_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = Report(facts={"source": "mxnet", "target": "onnx"})
    report.before.update({"_contrib_AdaptiveAvgPooling2D": 3, "Convolution": 12})
    report.after.update({"GlobalAveragePool": 3, "Conv": 12})
    lines = shown(monkeypatch, operator_table(report), 40).splitlines()
    assert lines[0].split() == ["mxnet", "before"]
    assert ["onnx", "after"] in [line.split() for line in lines]
    assert ["_contrib_AdaptiveAvgPooling2D", "3"] in [line.split() for line in lines]


def test_a_table_of_texts_is_folded_where_it_is_legible(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(("name", "title"), (("mxnet", "word " * 30),))
    text = shown(monkeypatch, table, 40)
    assert text.splitlines()[0].split() == ["name", "title"]
    assert text.count("word") == 30
