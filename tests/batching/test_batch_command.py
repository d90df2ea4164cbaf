"""``serde batch``: what it prints and writes, and its exit codes."""

import json
import os
from pathlib import Path

import click
import pytest
from support.batch_nets import write_net, write_nets

from serde.command.amounts import read_count, read_duration, read_size
from serde.command.batch_view import BatchView
from serde.command.cli import main
from serde.command.console import Terminal
from serde.fleet.batching.pool import LocalPool
from serde.fleet.batching.report import batch_exit_code
from serde.fleet.batching.worker import Runner


@pytest.fixture(scope="module")
def runner():
    made = Runner()
    yield made
    made.close()


@pytest.fixture
def batch(runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    """Run the command where nets lie; return its exit code and what it printed."""
    monkeypatch.setattr("serde.fleet.batching.api.LocalPool", lambda workers: LocalPool(2, runner))
    monkeypatch.chdir(tmp_path)
    write_nets(Path("nets"), 3)

    def run(*args: str) -> tuple[int, str, str]:
        code = main(["batch", *args])
        return code, *capsys.readouterr()

    return run


ONNX = ("--to", "onnx", "--out", "out")


def test_counts_and_one_line_are_the_result(batch) -> None:
    code, out, err = batch("nets", *ONNX, "--check")
    assert code == 0
    assert all("models/s" in line for line in err.splitlines())
    assert out.startswith("ended  models\ndone        3\n\ncheck   models\nagrees       3\n\n")
    assert "\n3 of 3 models done; " in out
    code, out, _ = batch("nets", *ONNX, "--check")
    assert out.endswith("3 of 3 models done; 3 of an earlier run\n")


def test_a_folder_of_more_names_than_may_be_looked_at_is_one_line(batch) -> None:
    code, out, err = batch("nets", *ONNX, "--name-limit", "2")
    assert code == 101
    (line,) = [each for each in err.splitlines() if "models/s" not in each]
    assert line.startswith("usage: nets: more than 2 names to look at; narrow the pattern, or")
    assert "--name-limit" in line
    assert "2 of 3 models done; 1 failed; " in out
    assert batch("nets", *ONNX, "--name-limit", "1k")[0] == 0


def test_failures_are_lines_and_the_exit_code_counts_them(batch) -> None:
    Path("bad.onnx").write_bytes(b"nothing")
    write_net(Path("odd.onnx"), op="Gate")
    code, out, err = batch("nets", "bad.onnx", "odd.onnx", "gone.onnx", *ONNX)
    assert code == 103
    lines = sorted(line for line in err.splitlines() if "models/s" not in line)
    assert [line.partition(":")[0] for line in lines] == ["malformed", "refused", "unreachable"]
    assert "\noperator  way            models  by nothing else  reason" in out
    assert "3 of 6 models done; 3 failed; " in out


def test_a_manifest_runs_and_writes_elsewhere_only_if_that_is_allowed(batch) -> None:
    Path("mark.py").write_text(
        "import serde\nopen('ran', 'w').close()\n"
        "@serde.imports('Gate')\ndef gate(ctx, x):\n    return x\n"
    )
    lines = [{"converters": "mark.py"}, {"target": "../beside.onnx"}]
    text = [json.dumps({"source": f"nets/net{i}.onnx", **line}) for i, line in enumerate(lines)]
    Path("m.jsonl").write_text("\n".join(text))
    code, _, err = batch("m.jsonl", *ONNX)
    assert code == 102
    assert "allow it by --manifest-code" in err
    assert "allow it by --manifest-targets" in err
    assert not Path("ran").exists()
    assert not Path("beside.onnx").exists()
    allowed = ("--manifest-code", "--manifest-targets", "--no-sandbox")
    assert batch("m.jsonl", *ONNX, *allowed)[0] == 0
    assert Path("ran").exists()
    assert Path("beside.onnx").exists()


def test_names_that_are_no_text_are_converted_and_known_again(batch) -> None:
    net = next(Path("nets").glob("*.onnx")).read_bytes()
    Path(os.fsdecode(b"nets/n\xff.onnx")).write_bytes(net)
    for reused in ("0", "1"):
        code, out, _ = batch("nets", "--to", "nnef", "--out", "p", "--report", "r.html")
        assert (code, "4 of an earlier run" in out) == (0, reused == "1")
    assert b"n\xff.nnef" in os.listdir(b"p")


def test_quiet_prints_nothing(batch) -> None:
    assert batch("nets", *ONNX, "-q") == (0, "", "")


def test_json_is_one_object_with_an_outcome_for_each(batch) -> None:
    code, out, _ = batch("nets", "gone.onnx", *ONNX, "--json")
    found = json.loads(out)
    assert (code, found["exit_code"], found["outcome"]) == (101, 101, "failed")
    assert (found["models"], found["done"], found["failed"]) == (4, 3, 1)
    assert sorted(each["name"] for each in found["outcomes"]) == [
        "gone.onnx",
        *(f"nets/net{number}.onnx" for number in range(3)),
    ]


def test_reports_are_written_by_their_suffixes(batch) -> None:
    code, _, _ = batch(
        "nets", *ONNX, "--report", "r.json", "--report", "r.md", "--report", "r.html"
    )
    assert code == 0
    assert len(json.loads(Path("r.json").read_text())["outcomes"]) == 3
    assert "3 of 3 models done" in Path("r.md").read_text()
    assert "net2.onnx" in Path("r.html").read_text()


def test_secrets_of_stores_are_written_nowhere(batch) -> None:
    secret = "key=hidden-and-secret"
    code, out, _ = batch("nets", *ONNX, "--json", "--storage-option", secret)
    assert code == 0
    assert "hidden-and-secret" not in out
    assert b"hidden-and-secret" not in Path("out/.serde/ledger.sqlite").read_bytes()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--to", "onnx", "--out", "out"), "expected a source"),
        (("nets", "--out", "out"), "expected --to FORMAT"),
        (("nets", "--to", "onnx"), "Missing option '--out'"),
        (("nets", *ONNX, "--dask", "--scheduler", "tcp://x"), "--dask starts a cluster"),
        (("nets", *ONNX, "--time-limit", "soon"), "'soon' is no time"),
        (("nets", *ONNX, "--memory-limit", "0"), "'0' is no size"),
        (("nets", *ONNX, "--report", "r.txt"), "expected a name ending in .json or .md"),
        (("nets", *ONNX, "--storage-option", "x"), "expected KEY=VALUE"),
        (("m.jsonl", *ONNX), "m.jsonl: cannot be read: No such file or directory"),
    ],
    ids=range(9),
)
def test_what_cannot_be_understood_is_2_and_nothing_is_done(batch, args, message: str) -> None:
    code, out, err = batch(*args)
    assert (code, out) == (2, "")
    assert message in err
    assert not Path("out/net0.onnx").exists()


@pytest.mark.parametrize(
    ("failed", "code"), [(0, 0), (1, 101), (19, 119), (20, 120), (21, 120), (10**6, 120)]
)
def test_exit_codes_count_failures(failed: int, code: int) -> None:
    assert batch_exit_code(failed) == code


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1.5s", 1.5), ("5m", 300), ("2h", 7200)]
)
def test_times_have_units(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "count"), [("1024", 1024), ("500M", 5 * 10**8), ("2Gi", 2**31), ("3kB", 3000)]
)
def test_sizes_have_units(text: str, count: int) -> None:
    assert read_size(text) == count


@pytest.mark.parametrize(("text", "count"), [("7", 7), ("500k", 500_000), ("5M", 5_000_000)])
def test_counts_have_units(text: str, count: int) -> None:
    assert read_count(text) == count


@pytest.mark.parametrize("text", ["0", "-1", "five", "1e6", "5Mi", "0M"])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no number"):
        read_count(text)


@pytest.mark.wide
def test_a_bar_moves_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys, batch) -> None:
    monkeypatch.setattr(Terminal, "has_bars", True)
    moved: list[int] = []
    original = BatchView.show

    def show(self: BatchView, outcome) -> None:
        original(self, outcome)
        moved.append(self._bar.tasks[0].completed)

    monkeypatch.setattr(BatchView, "show", show)
    assert batch("nets", *ONNX)[0] == 0
    assert moved == [1, 2, 3]
