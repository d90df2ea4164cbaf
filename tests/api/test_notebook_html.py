"""What objects show of themselves in notebooks: escaped, and short whatever they hold."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support import view_models

import serde
from serde.command.cli import main
from serde.core.report import Issue, OutputVerdict, Report

VOID = {"br", "hr", "img"}


class Balanced(HTMLParser):
    """Reads HTML whose elements all end where they should; keeps its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_model_shows_ports_operators_and_weights(tmp_path: Path) -> None:
    model = serde.to_relay(view_models.chain(tmp_path / "net.onnx", 3))
    text = Balanced(model._repr_html_()).text
    for part in ("onnx", "input", "x", "Nx8", "nn.matmul", "3 weights", "w2", "8x8", "192 param"):
        assert part in text


def test_a_module_shows_its_text(tmp_path: Path) -> None:
    module = serde.to_relay(view_models.branches(tmp_path / "net.onnx")).mod
    shown = module._repr_html_()
    assert module.astext(show_meta_data=False).strip() in Balanced(shown).text
    assert "<details" not in shown


@pytest.mark.parametrize("layers", [40, pytest.param(5_000, marks=pytest.mark.wide)])
def test_long_ones_are_cut(tmp_path: Path, layers: int) -> None:
    model = serde.to_relay(view_models.chain(tmp_path / "net.onnx", layers))
    for shown in (model.mod._repr_html_(), model._repr_html_()):
        assert len(shown) < 200_000
        assert "<details" in shown
        Balanced(shown)


def test_hostile_names_are_escaped(tmp_path: Path) -> None:
    model = serde.to_relay(view_models.hostile(tmp_path / "net.onnx"))
    report = Report("a <b> c", notes=[view_models.HOSTILE], facts={view_models.HOSTILE: "<i>"})
    report.add(view_models.HOSTILE, "n" * 2**20, "because <u>")
    for shown in (model._repr_html_(), model.mod._repr_html_(), report._repr_html_()):
        assert Balanced(shown).names.isdisjoint({"script", "img", "b", "i", "u"})
        assert len(shown) < 20_000


def test_a_report_shows_gaps_verdicts_and_stages() -> None:
    report = Report("onnx -> relay", nodes=3)
    report.add("Gate", "gate_1", "no importer", "use another")
    report.add("Gate", "gate_2", "no importer", "use another")
    report.allowed.append(Issue("cast", "c", "int64 to int32"))
    report.verdicts.append(
        OutputVerdict("y", ((2, 3), (2, 3)), ("float32",) * 2, 1e-6, 2e-6, 1.0, 1e-5, 1e-5, True)
    )
    with report.stage("load"):
        pass
    text = Balanced(report._repr_html_()).text
    for part in ("1 of 3 nodes", "gate_1, gate_2", "use another", "1.00e-06", "✓", "load"):
        assert part in text
    assert "2x3" in Balanced(report.verdicts[0]._repr_html_()).text


@pytest.mark.wide
def test_a_report_reads_as_in_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every word that the command line prints of a checked conversion, in the same order."""
    monkeypatch.chdir(tmp_path)
    view_models.chain(tmp_path / "net.onnx", 3)
    assert main(["convert", "net.onnx", "again.onnx", "--check", "2"]) == 0
    out, err = capsys.readouterr()
    stages, _, tables = err.partition("\n\n")
    assert "save" in stages
    report = serde.convert(tmp_path / "net.onnx", "again.onnx", check=2)
    shown = re.sub(r"<[^>]*>", " ", report._repr_html_()).split()
    wanted = [*tables.split(), *out.split()]
    assert len(wanted) > 50
    words = iter(shown)
    assert [word for word in wanted if word not in words] == []


def test_an_empty_report_shows_its_title() -> None:
    assert Balanced(Report()._repr_html_()).text == "Report"


def test_comparisons_show_what_differs(tmp_path: Path) -> None:
    left = view_models.chain(tmp_path / "a.onnx", 3)
    right = view_models.chain(tmp_path / "b.onnx", 3, changed=1)
    text = Balanced(serde.diff(left, right)._repr_html_()).text
    assert "the models differ" in text
    assert "w1" in text
    found = Balanced(serde.bisect(left, right, dims={"N": 4})._repr_html_()).text
    assert "at fault" in found
    assert re.search(r"12 values compared, \d differ", found)
