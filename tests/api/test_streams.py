"""Standard streams that are closed, full, or whose reader has left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.tiers import first_of
from support.toy_format import MODEL

import serde.bridge.formats
from serde._version import __version__

ROOT = Path(serde.__file__).parents[1]
SCRIPT = (
    "import sys; sys.path.insert(0, 'tests')\n"
    "from unittest import mock\n"
    "from support.toy_format import TOY\n"
    "from serde.command.cli import main\n"
    "with mock.patch('importlib.metadata.entry_points', lambda group: [TOY]):\n"
    "    code = main()\n"
    "raise SystemExit(code)\n"
)
FULL = Path("/dev/full")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.toy"
    path.write_text(json.dumps(MODEL))
    return path


def run(command: str, *args: object) -> subprocess.CompletedProcess[str]:
    """Run serde in a shell, where `command` says what becomes of its streams."""
    words = [sys.executable, "-c", SCRIPT, *map(str, args)]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}", "bash", *words],
        cwd=ROOT, env=kept, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.wide
@pytest.mark.parametrize(
    "streams", first_of([">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"], ["<&- >&- 2>&-"])
)
def test_closed_streams_are_no_error(model: Path, streams: str) -> None:
    target = model.with_name("o.toy")
    done = run(f'"$@" {streams}', "convert", model, target, "--check")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    # Nothing that would have been printed got into the file, whatever its descriptor was.
    assert json.loads(target.read_text())["toy"] == 2


@pytest.mark.wide
@pytest.mark.parametrize("streams", first_of([">&-", "2>&-", ">&- 2>&-"], [">&-"]))
def test_the_exit_code_stays(model: Path, streams: str) -> None:
    done = run(f'"$@" {streams}', "convert", model, model.with_name("o.xyz"))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.wide
@pytest.mark.parametrize(
    "args",
    first_of([["--help"], ["--version"], ["formats"], ["ops", "--format", "relay"]], [["formats"]]),
)
def test_a_closed_stdout_gets_nothing(args: list[str]) -> None:
    done = run('"$@" >&-', *args)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.wide
@pytest.mark.parametrize("args", [["convert", "--help"], ["ops", "--format", "relay"]])
def test_a_reader_that_leaves_is_no_error(args: list[str]) -> None:
    done = run('"$@" | head -c 1', *args)
    assert (done.returncode, len(done.stdout), done.stderr) == (0, 1, "")


@pytest.mark.wide
@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "args", first_of([["--help"], ["--version"], ["formats"], ["formats", "--json"]], [["--help"]])
)
def test_a_full_stdout_is_told(args: list[str]) -> None:
    done = run(f'"$@" > {FULL}', *args)
    assert done.returncode == 2
    assert done.stderr == "serde: standard output: No space left on device\n"


@pytest.mark.wide
@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_a_full_stderr_is_no_error(model: Path) -> None:
    target = model.with_name("o.toy")
    done = run(f'"$@" 2> {FULL}', "convert", model, target)
    assert (done.returncode, done.stdout) == (0, f"{target}\n")


@pytest.mark.wide
def test_what_is_open_is_used() -> None:
    done = run('"$@"', "--version")
    assert (done.returncode, done.stdout) == (0, f"serde {__version__}\n")
