"""The command line, driven with a format of another package: texts, flags, exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.toy_format import MODEL, TOY, ToyEntryPoint

import serde.bridge.formats
from serde._version import __version__
from serde.command.cli import main
from serde.io.atomic import atomic_write

ROOT = Path(serde.__file__).parents[1]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory and no format but the toy."""
    monkeypatch.setattr(serde.bridge.formats, "FORMATS", {})
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [TOY])
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    write("m.toy", MODEL)
    return tmp_path


def write(name: str, model: Any) -> None:
    Path(name).write_text(json.dumps(model))


def changed(**changes: Any) -> dict[str, Any]:
    """The toy's model with other parts; other nodes give the last one's result."""
    if "nodes" in changes:
        changes = {"outputs": [changes["nodes"][-1]["name"]], **changes}
    return {**MODEL, **changes}


def untimed(text: str) -> str:
    return re.sub(r" +\d+\.\d\d s$", " T s", text, flags=re.MULTILINE)


# What is printed.


def test_convert_prints_stages_tables_and_the_path(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", "m.toy", "o.toy", "--check"]) == 0
    out, err = capsys.readouterr()
    assert out == "o.toy\n"
    assert untimed(err) == (
        "load T s\ntoy -> relay T s\noptimize T s\nrelay -> toy T s\nsave T s\ncheck T s\n"
        "\n"
        "toy    before  toy    after\n"
        "Limit       1  Limit      1\n"
        "Plus        1  Plus       1\n"
        "Tanh        1  Tanh       1\n"
        "Times       1  Times      1\n"
        "total       4  total      4\n"
        "\n"
        "parameters  6\n"
        f"size        {Path('o.toy').stat().st_size} B\n"
        "version     2\n"
        "note        inputs were also drawn 4 times as large, which shows 1 clip\n"
        "\n"
        "output   shape  dtype     max abs   max rel    cosine     atol     rtol\n"
        "out      2x3    float32  0.00e+00  0.00e+00  1.000000  2.6e-07  0.0e+00  ✓\n"
        "limited  2x3    float32  0.00e+00  0.00e+00  1.000000  3.7e-07  0.0e+00  ✓\n"
        "\n"
        "checked relay interpreter against relay interpreter: all 2 outputs agree\n"
    )


@pytest.mark.wide
def test_the_path_has_a_remark_on_a_terminal(work: Path) -> None:
    target = work / "o.toy"
    text = on_a_terminal(work, "convert", str(work / "m.toy"), str(target), NO_COLOR="1")
    size = target.stat().st_size
    assert text.endswith(f"{target}  {size} B  (look at it: serde view {target})\r\n")


def test_formats_are_listed(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formats"]) == 0
    assert capsys.readouterr().out == (
        "format  title  reads  writes  suffixes\ntoy     Toy    yes    yes     .toy\n\n"
    )


def test_a_broken_format_is_listed_with_its_fault(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = ToyEntryPoint("broken", "elsewhere:X", ImportError("no gizmo"))
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [TOY, broken])
    assert main(["formats", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["formats"]
    assert listed[0] == {
        "name": "broken",
        "error": "format broken: elsewhere:X does not load: no gizmo",
    }
    assert main(["convert", "m.toy", "o.toy"]) == 0


def test_inspect_shows_what_a_model_holds(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "m.toy", "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["inspect", "m.toy"]) == 0
    assert capsys.readouterr().out == (
        "format      Toy\n"
        "version     2\n"
        "parameters  6\n"
        "weights     24 B\n"
        "\n"
        "        name     shape  dtype\n"
        "input   data     2x3    float32\n"
        "output  out      2x3    float32\n"
        "output  limited  2x3    float32\n"
        "\n"
        "operator  count\n"
        "Limit         1\n"
        "Plus          1\n"
        "Tanh          1\n"
        "Times         1\n"
        "total         4\n"
        "\n"
    )


def test_inspect_needs_no_shapes(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("m.toy", changed(inputs=[["data", None, "float32"]]))
    assert main(["inspect", "m.toy", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["operators"] == {"Limit": 1, "Plus": 1, "Tanh": 1, "Times": 1}
    assert found["inputs"] == [{"name": "data", "shape": None, "dtype": "float32"}]
    assert (found["parameters"], found["parameter_bytes"]) == (6, 24)
    assert found["notes"] == ["input data has no shape; give --input-shape data:1,3"]


def test_inspect_completes_types_where_shapes_are_given(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("m.toy", changed(inputs=[["data", None, "float32"]]))
    assert main(["inspect", "m.toy", "--json", "--input-shape", "N,3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["outputs"][0] == {"name": "out", "shape": ["N", 3], "dtype": "float32"}


def test_inspect_shows_models_that_cannot_be_converted(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [{"op": "Fold", "name": "f", "inputs": ["data"]}]
    write("m.toy", changed(nodes=nodes, outputs=["f"]))
    assert main(["inspect", "m.toy"]) == 0
    out = capsys.readouterr().out
    assert "1 of 1 nodes cannot be converted" in out
    assert "Fold          1" in out


def test_json_is_one_object_and_nothing_else(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", "m.toy", "o.toy", "--json", "--check"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["outcome"], found["exit_code"], found["error"]) == ("done", 0, None)
    assert [verdict["output"] for verdict in found["verdicts"]] == ["out", "limited"]
    assert found["facts"]["path"] == "o.toy"
    assert found["before"] == {"Limit": 1, "Plus": 1, "Tanh": 1, "Times": 1}


def test_json_of_a_refusal(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("m.toy", changed(nodes=[{"op": "Fold", "name": "f", "inputs": ["data"]}]))
    assert main(["convert", "m.toy", "o.toy", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["outcome"], found["exit_code"]) == ("refused", 1)
    assert [(issue["op"], issue["node"]) for issue in found["issues"]] == [("Fold", "f")]


def test_json_spells_out_numbers_that_are_not_finite(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("o.toy", changed(outputs=["limited"]))
    assert main(["check", "m.toy", "o.toy", "--json"]) == 4
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert [(v["output"], v["max_abs"], v["passed"]) for v in verdicts] == [
        ("out", "inf", False),
        ("limited", 0.0, True),
    ]
    assert verdicts[0]["cosine"] == "nan"


def test_report_as_json(work: Path) -> None:
    assert main(["convert", "m.toy", "o.toy", "-q", "--report", "r.json"]) == 0
    found = json.loads(Path("r.json").read_text())
    assert [stage["name"] for stage in found["stages"]] == [
        "load", "toy -> relay", "optimize", "relay -> toy", "save",
    ]  # fmt: skip


def test_report_as_markdown(work: Path) -> None:
    assert main(["convert", "m.toy", "o.toy", "-q", "--report", "r.md", "--check"]) == 0
    text = Path("r.md").read_text(encoding="utf-8")
    assert text.startswith("# serde: done\n\n| stage | seconds |\n| --- | --: |\n| load | ")
    assert "\n| Limit | 1 | Limit | 1 |\n" in text
    assert "\n| out | 2x3 | float32 | 0.00e+00 | 0.00e+00 | 1.000000 | 2.6e-07 " in text


def test_report_of_a_failure(work: Path) -> None:
    write("m.toy", changed(nodes=[{"op": "Fold", "name": "f", "inputs": ["data"]}]))
    assert main(["convert", "m.toy", "o.toy", "--report", "r.md"]) == 1
    text = Path("r.md").read_text(encoding="utf-8")
    assert text.startswith("# serde: refused\n\n```\ntoy -> relay: 1 of 1 nodes cannot")


@pytest.mark.parametrize("name", ["r.txt", "m.toy", "o.toy"])
def test_a_report_must_be_a_file_of_its_own(work: Path, name: str) -> None:
    before = Path("m.toy").read_bytes()
    assert main(["convert", "m.toy", "o.toy", "--report", name]) == 2
    assert Path("m.toy").read_bytes() == before


def test_a_report_replaces_no_model(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "sub").mkdir()
    Path("model.json").write_bytes(Path("m.toy").read_bytes())
    Path("link.json").symlink_to("m.toy")
    before = Path("m.toy").read_bytes()
    for source, name, message in [
        ("model.json", "sub/../model.json", "is also the source or the target"),
        ("m.toy", "link.json", "is also the source or the target"),
        ("m.toy", "model.json", "is a model"),
        ("m.toy", "none/r.json", "there is no directory none"),
    ]:
        assert main(["convert", source, "o.toy", "--report", name]) == 2
        assert message in capsys.readouterr().err
    assert Path("model.json").read_bytes() == Path("m.toy").read_bytes() == before
    assert not Path("o.toy").exists()


def test_a_report_and_a_mapping_are_two_files(work: Path) -> None:
    both = ["--report", "r.json", "--tensor-mapping", "./r.json"]
    assert main(["convert", "m.toy", "o.toy", *both]) == 2
    assert not Path("o.toy").exists()


def test_an_old_report_is_replaced(work: Path) -> None:
    Path("r.json").write_text("{}")
    assert main(["convert", "m.toy", "o.toy", "--report", "r.json"]) == 0
    assert json.loads(Path("r.json").read_text())["outcome"] == "done"


def test_a_refusal_counts_the_source_alone(work: Path) -> None:
    nodes = [{"op": "Fold", "name": "f", "inputs": ["data"]}]
    write("m.toy", changed(nodes=nodes, outputs=["f"]))
    assert main(["convert", "m.toy", "o.toy", "--report", "r.md"]) == 1
    text = Path("r.md").read_text()
    assert "| toy | count |\n| --- | --: |\n| Fold | 1 |\n| total | 1 |\n" in text


def test_quiet_prints_nothing(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "m.toy", "o.toy", "-q", "--check"]) == 0
    assert capsys.readouterr() == ("", "")


def test_control_characters_of_a_file_are_spelled_out(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [{"op": "Fold\x1b[2J", "name": "f\x07", "inputs": ["data"]}]
    write("m.toy", changed(nodes=nodes, outputs=["f\x07"]))
    assert main(["inspect", "m.toy"]) == 0
    assert main(["convert", "m.toy", "o.toy"]) == 1
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "Fold\\x1b[2J" in out
    assert "[f\\x07]" in err


# Exit codes.


def test_refused(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [
        {"op": "Fold", "name": "f", "inputs": ["data"]},
        {"op": "Limit", "name": "l", "inputs": ["data"], "low": 2.0},
    ]
    write("m.toy", changed(nodes=nodes))
    assert main(["convert", "m.toy", "o.toy"]) == 1
    assert capsys.readouterr().err.partition("\n")[2] == (
        "toy -> relay: 2 of 2 nodes cannot be converted\n"
        "  Fold   x1  no importer [f]\n"
        "  Limit  x1  low=2.0 is above high=1.0 (swap them) [l]\n"
        "0 of 2 nodes can be converted\n"
    )
    assert not Path("o.toy").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["convert", "m.toy"], "expected a source and a target"),
        (["convert", "m.toy", "o.xyz"], "no format is known by this suffix"),
        (["convert", "absent.toy", "o.toy"], "there is no such file or model"),
        (["convert", "m.toy", "o.toy", "--from", "tyo"], "unknown format 'tyo'; known: toy"),
        (["convert", "m.toy", "o.toy", "--opset", "17"], "No such option"),
        (["convert", "m.toy", "o.toy", "--indent", "x"], "'x' is not a valid integer"),
        (["convert", "m.toy", "o.toy", "--digits", "two"], "'two' is not one of 'all', 'few'"),
        (["convert", "m.toy", "o.toy", "--input-shape", "data:1,b!"], "data:1x3x224x224"),
        (["convert", "m.toy", "o.toy", "--input-dtype", "data:float31"], "tokens:int32"),
        (["convert", "m.toy", "o.toy", "--check", "--check-dim", "N"], "for example: N=4"),
        (["convert", "m.toy", "o.toy", "--check", "--check-dim", "N=4"], "no dynamic dimension"),
        (["convert", "m.toy", "m.toy"], "the target is also the source"),
        (["convert", "m.toy", "nowhere/o.toy"], "No such file or directory"),
        (["convrt", "m.toy"], "No such command"),
    ],
)
def test_usage(
    work: Path, capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    before = Path("m.toy").read_bytes()
    assert main(args) == 2
    assert message in capsys.readouterr().err
    assert sorted(os.listdir()) == ["m.toy"]
    assert Path("m.toy").read_bytes() == before


def test_malformed(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.toy").write_text('{"toy": 2, ')
    assert main(["convert", "m.toy", "o.toy"]) == 3
    assert "serde: m.toy: expected JSON" in capsys.readouterr().err


def test_check_failed_and_nothing_is_written(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("o.toy").write_text("old")
    assert main(["convert", "m.toy", "o.toy", "--check", "3", "--sloppy"]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("✗") == 2
    assert "2 of 2 outputs differ" in err
    assert err.endswith("serde: o.toy: the numbers differ from those of the source\n")
    assert Path("o.toy").read_text() == "old"
    assert sorted(os.listdir()) == ["m.toy", "o.toy"]


def test_tolerance_is_taken_from_the_flags(work: Path) -> None:
    sloppy = ["convert", "m.toy", "o.toy", "--check", "3", "--sloppy"]
    assert main([*sloppy, "--atol", "0.02"]) == 0
    assert main([*sloppy, "--check-atol", "0.002"]) == 4
    assert main([*sloppy, "--check-atol", "0", "--check-rtol", "0.02"]) == 0


def test_without_check_nothing_is_compared(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "m.toy", "o.toy", "--sloppy"]) == 0
    assert "checked" not in capsys.readouterr().err


def test_could_not_be_checked(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError("no kernel")

    monkeypatch.setattr("serde.engine.interpreter.RelayEngine.run", fail)
    assert main(["convert", "m.toy", "o.toy", "--check"]) == 5
    assert "relay interpreter failed: RuntimeError: no kernel" in capsys.readouterr().err
    assert not Path("o.toy").exists()


def test_a_package_is_missing(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from serde.errors import MissingDependency

    def fail(*_args: Any) -> Any:
        raise MissingDependency("gizmo", extra="gizmo")

    monkeypatch.setattr(type(TOY.load()), "load", fail)
    assert main(["convert", "m.toy", "o.toy"]) == 6


def test_a_mistake_of_ours(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("m.toy", changed(nodes=[{"op": "Crash", "name": "c", "inputs": ["data"]}]))
    assert main(["convert", "m.toy", "o.toy"]) == 70
    err = capsys.readouterr().err
    assert "c (Crash-2): KeyError: 'a mistake in a converter'" in err
    assert "-v shows the traceback" in err
    assert "Traceback" not in err
    assert main(["convert", "m.toy", "o.toy", "-v"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_any_unexpected_error_is_a_mistake_of_ours(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_args: Any, **_kwargs: Any) -> Any:
        raise ZeroDivisionError("unforeseen")

    monkeypatch.setattr("serde.api.convert", fail)
    assert main(["convert", "m.toy", "o.toy"]) == 70
    assert "serde: internal error: ZeroDivisionError: unforeseen" in capsys.readouterr().err


def test_interrupted(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_args: Any, **_kwargs: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("serde.api.convert", interrupt)
    assert main(["convert", "m.toy", "o.toy"]) == 130


def test_terminated(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def save(*_args: Any, **_options: Any) -> None:
        with atomic_write("o.toy"):
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("serde.api.convert", save)
    assert main(["convert", "m.toy", "o.toy"]) == 130
    assert os.listdir(work) == ["m.toy"]
    assert signal.getsignal(signal.SIGTERM) is before


# Options.


def test_options_reach_the_format(work: Path) -> None:
    assert main(["convert", "m.toy", "o.toy", "--indent", "2", "--comments", "a,b"]) == 0
    assert Path("o.toy").read_text().startswith('{\n  "toy": 2')


def test_passes_have_flags_too(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--help-all"]) == 0
    out = capsys.readouterr().out
    for flag in (
        "--float16",
        "--keep-io-types",
        "--op-block-list",
        "--keep-batch-norm",
        "--indent",
    ):
        assert flag in out


@pytest.mark.parametrize(
    ("args", "runs"),
    [
        (["--check", "m.toy", "o.toy"], 1),
        (["m.toy", "--check", "3", "o.toy"], 3),
        (["m.toy", "o.toy", "--check=2"], 2),
        (["--check", "--", "m.toy", "o.toy"], 1),
        (["m.toy", "o.toy"], False),
    ],
)
def test_check_takes_a_number_or_none(
    work: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], runs: int
) -> None:
    seen: dict[str, Any] = {}

    def record(source: str, target: str, **options: Any) -> None:
        seen.update(options, source=source, target=target)
        raise KeyboardInterrupt

    monkeypatch.setattr("serde.api.convert", record)
    assert main(["convert", *args]) == 130
    assert (seen["source"], seen["target"], seen["check"]) == ("m.toy", "o.toy", runs)


def test_several_sources(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(
        "serde.checking.checks.check", lambda source, target, **_: seen.append(source)
    )
    main(["check", "a.json", "a.params", "m.toy"])
    assert seen == [["a.json", "a.params"]]


def test_dynamic_dimensions_of_a_check(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--check", "--check-dim", "N=5", "--input-shape", "data:N,3"]
    assert main(["convert", "m.toy", "o.toy", *args]) == 0
    err = capsys.readouterr().err
    assert "dynamic dimensions were checked at N=5" in err
    assert "limited  5x3" in err


def test_what_is_no_target_of_a_check(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "m.toy", "absent.toy"]) == 2
    assert "serde: absent.toy: there is no such file" in capsys.readouterr().err
    Path("o.toy").write_text("junk")
    assert main(["check", "m.toy", "o.toy"]) == 3
    assert "serde: o.toy: expected a model of format toy" in capsys.readouterr().err


# The process.

SCRIPT = """
import importlib.metadata, sys
sys.path.insert(0, "tests")
from support.toy_format import TOY
importlib.metadata.entry_points = lambda group: [TOY]
import serde.bridge.formats
serde.bridge.formats.FORMATS = {}
from serde.command.cli import main
raise SystemExit(main(sys.argv[1:]))
"""


def test_version_needs_no_numpy() -> None:
    code = (
        "import sys\nfrom serde.command.cli import main\ncode = main(['--version'])\n"
        "heavy = {'numpy', 'rich.console', 'onnx', 'mxnet'} & set(sys.modules)\n"
        "raise SystemExit(code or (f'loaded {heavy}' if heavy else 0))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"serde {__version__}\n"), done.stderr


def test_python_m_serde() -> None:
    command = [sys.executable, "-m", "serde", "--version"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"serde {__version__}\n")


@pytest.mark.wide
def test_a_reader_that_leaves_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, "formats"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), error) == (0, b"")


def on_a_terminal(work: Path, *args: str, **env: str) -> str:
    """What a command prints where both streams are a terminal."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *args],
        cwd=ROOT,
        stdout=theirs,
        stderr=theirs,
        env={**kept, "TERM": "xterm-256color", "COLUMNS": "100", **env},
    )
    os.close(theirs)
    pieces = []
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(ours)
    assert process.wait() == 0
    return b"".join(pieces).decode()


@pytest.mark.wide
def test_colours_on_a_terminal_only(work: Path) -> None:
    args = ("convert", str(work / "m.toy"), str(work / "o.toy"), "--check")
    colour = re.compile(r"\x1b\[[\d;]*3\dm")
    assert colour.search(on_a_terminal(work, *args))
    assert not colour.search(on_a_terminal(work, *args, NO_COLOR="1"))
    assert not colour.search(on_a_terminal(work, *args, "--no-color"))
    piped = subprocess.run([sys.executable, "-c", SCRIPT, *args], cwd=ROOT, capture_output=True)
    assert piped.returncode == 0
    assert b"\x1b" not in piped.stdout + piped.stderr


@pytest.mark.wide
def test_a_narrow_terminal_cuts_no_name(work: Path) -> None:
    name = "q" * 50
    nodes = [{"op": "Tanh", "name": name, "inputs": ["data"]}]
    write("m.toy", changed(nodes=nodes, outputs=[name]))
    text = on_a_terminal(work, "inspect", str(work / "m.toy"), COLUMNS="40", NO_COLOR="1")
    assert text.count("q") == 50
