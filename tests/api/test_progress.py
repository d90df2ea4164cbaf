"""How far a stage has come, and what is logged: for callbacks, bars on terminals, and logs."""

from __future__ import annotations

import io
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import serde
import serde.command.bars
import serde.core.progress
import serde.relay as relay
from serde.checking.yardstick import Yardstick
from serde.command.bars import count_text
from serde.command.cli import main
from serde.core.progress import Progress, counting, expect, listening
from serde.core.report import Report

WEIGHTS = 300_000


class Screen(io.StringIO):
    """A stream that says that it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of products with large weights, in a file."""
    side = 100
    count = WEIGHTS // side**2
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.normal(size=(side, side)).astype(np.float32), f"w{i}")
        for i in range(count)
    ]
    names = ["x", *(f"y{i}" for i in range(count))]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(count)]
    ends = [helper.make_tensor_value_info(n, 1, [1, side]) for n in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    path = tmp_path_factory.mktemp("net") / "net.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell of everything, at once."""
    monkeypatch.setattr(serde.core.progress, "INTERVAL", 0.0)
    monkeypatch.setattr(serde.command.bars, "PATIENCE", 0.0)


def test_nobody_listens_and_nothing_is_told() -> None:
    expect("nodes", 3)
    counting("nodes")(1)


def test_what_is_told_is_told_seldom() -> None:
    told: list[Progress] = []
    with listening("save", told.append):
        count = counting("bytes")
        for _ in range(1000):
            count(1)
    assert told == []


@pytest.mark.usefixtures("impatient")
def test_more_than_was_expected_is_a_larger_total() -> None:
    told: list[Progress] = []
    with listening("save", told.append):
        count = counting("bytes")
        count(1)
        expect("bytes", 2)
        count(2)
    assert [(each.done, each.total) for each in told] == [(1, 0), (3, 3)]


@pytest.mark.wide
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("suffix", ["onnx", "mlpackage", "relay", "nnef.tgz"])
def test_a_callback_hears_of_nodes_and_of_the_bytes_of_weights(
    net: Path, tmp_path: Path, suffix: str
) -> None:
    told: list[Progress] = []
    report = Report(on_progress=told.append)
    serde.convert(net, tmp_path / f"other.{suffix}", report=report)
    last = {(each.stage, each.unit): each for each in told}
    read = last["onnx -> relay", "nodes"]
    assert (read.done, read.total) == (30, 30)
    saved = last["save", "bytes"]
    assert saved.done == saved.total
    stored = 2 if suffix == "mlpackage" else 4  # Core ML stores float16
    assert saved.total // WEIGHTS == stored


@pytest.mark.usefixtures("impatient")
def test_a_report_with_a_callback_is_json_and_equals_one_without(net: Path, tmp_path: Path) -> None:
    report = Report(on_progress=lambda progress: None)
    serde.convert(net, tmp_path / "other.onnx", report=report)
    assert "on_progress" not in report.as_dict()
    assert not any(name.startswith("_") for name in report.as_dict())


def test_what_a_callback_raises_ends_the_conversion(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serde.core.progress, "INTERVAL", 0.0)

    def stop(_progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        serde.convert(net, tmp_path / "other.onnx", report=Report(on_progress=stop))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("impatient")
def test_the_exact_run_of_a_check_is_counted() -> None:
    x = relay.var("x", shape=(2, 3))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.tanh(relay.exp(x))))
    told: list[Progress] = []
    with listening("yardstick", told.append):
        model = serde.relay.RelayModel(relay.transform.InferType()(mod), {})
        values = Yardstick(model).at({"x": np.ones((2, 3), np.float32)}).exact
    np.testing.assert_allclose(values[0], np.tanh(np.exp(np.ones((2, 3)))), rtol=1e-15)
    assert [(each.unit, each.done, each.total) for each in told] == [
        ("nodes", 1, 2),
        ("nodes", 2, 2),
    ]


def run(
    monkeypatch: pytest.MonkeyPatch, args: list[str], *, terminal: bool = True
) -> tuple[int, str]:
    """The exit code of a command and what stderr got."""
    stream: Any = Screen() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    return main(args), stream.getvalue()


@pytest.mark.usefixtures("impatient")
def test_a_terminal_shows_a_bar(net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    args = ["convert", str(net), str(tmp_path / "other.onnx"), "--no-color"]
    code, text = run(monkeypatch, args)
    assert code == 0
    assert "1.2 MB of 1.2 MB" in text
    assert "of 30 nodes" in text
    assert "save" in text


@pytest.mark.wide
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("flags", "terminal"), [(["--json"], True), (["--quiet"], True), ([], False)]
)
def test_nothing_else_shows_one(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], terminal: bool
) -> None:
    args = ["convert", str(net), str(tmp_path / "other.onnx"), *flags]
    code, text = run(monkeypatch, args, terminal=terminal)
    assert code == 0
    assert "of 1.2 MB" not in text
    assert "nodes" not in text


def test_a_quick_stage_has_no_bar(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serde.core.progress, "INTERVAL", 0.0)
    args = ["convert", str(net), str(tmp_path / "other.onnx")]
    assert "of 1.2 MB" not in run(monkeypatch, args)[1]


@pytest.mark.parametrize(
    ("unit", "done", "total", "text"),
    [
        ("bytes", 1_200_000_000, 4_000_000_000, "1.2 GB of 4.0 GB"),
        ("bytes", 12, 0, "12 B"),
        ("nodes", 300, 1000, "300 of 1,000 nodes"),
        ("nodes", 300, 0, "300 nodes"),
    ],
)
def test_what_a_bar_counts(unit: str, done: int, total: int, text: str) -> None:
    assert count_text(Progress("save", unit, done, total, 3.0)) == text


@pytest.mark.wide
def test_stages_and_choices_are_logged(
    net: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "serde")
    report = Report()
    with report.stage("look"):
        report.notes.append("a fact")
        serde.core.lossy.INT64_AS_INT32.record(
            report, {"int64-as-int32"}, op="cast", node="c", reason="why"
        )
    serde.convert(net, tmp_path / "other.onnx", check=True)
    found = [(each.levelname, each.getMessage()) for each in caplog.records]
    assert ("INFO", "note: a fact") in found
    assert ("WARNING", "allowed: cast c: why") in found
    assert ("INFO", "save") in found
    assert any(level == "DEBUG" and text.startswith("save: 0.") for level, text in found)
    assert ("DEBUG", "formats: from onnx to onnx") in found
    assert any(text.startswith("engines: onnxruntime") for _, text in found)
    assert sum(text == "note: a fact" for _, text in found) == 1


def test_the_library_prints_nothing_by_itself(
    net: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    serde.convert(net, tmp_path / "other.onnx")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("flags", "shown", "hidden"),
    [
        (["-v"], "DEBUG serde.conversion.steps: formats", "INFO serde: save"),
        (["-q", "--log-level", "info"], "INFO serde: save", "DEBUG"),
        (["--log-level", "error"], "save", "serde.conversion"),
        ([], "save", "serde.conversion"),
    ],
)
def test_the_log_is_shown_where_it_is_asked_for(
    net: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    shown: str,
    hidden: str,
) -> None:
    args = ["convert", str(net), str(tmp_path / "other.onnx"), *flags]
    _, text = run(monkeypatch, args, terminal=False)
    assert shown in text
    assert hidden not in text
    handlers = logging.getLogger("serde").handlers
    assert [type(each) for each in handlers] == [logging.NullHandler]
