"""Runs that are killed, interrupted, or meet another: what is done stays done, and none stays."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.batch_nets import hostile_converters, write_net, write_nets
from support.tiers import first_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")

SERDE = [sys.executable, "-m", "serde", "batch"]


def arguments(tmp_path: Path, *more: str) -> list[str]:
    return [
        *SERDE,
        str(tmp_path / "m.jsonl"),
        "--manifest-code",
        "--to",
        "onnx",
        "--out",
        str(tmp_path / "out"),
        *more,
    ]


def write_manifest(path: Path, nets: Sequence[Path], hanging: Path | None = None) -> None:
    """Write a manifest whose last model hangs, if a file of converters is given."""
    lines = [{"source": str(net)} for net in nets]
    if hanging is not None:
        lines.append(
            {"source": str(write_net(path.parent / "bad.onnx")), "converters": [str(hanging)]}
        )
    path.write_text("\n".join(map(json.dumps, lines)))


@contextmanager
def started(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def wait_for(condition, seconds: float = 60.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)
    return found


def with_mark(mark: str) -> list[str]:
    """Command lines of processes that hold a text."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(place.read_text().replace("\0", " "))
        except OSError:
            continue
    return [each for each in found if mark in each and "pytest" not in each]


@pytest.mark.wide
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    "number", first_of([signal.SIGKILL, signal.SIGTERM, signal.SIGINT], [signal.SIGKILL])
)
def test_a_run_that_is_ended_leaves_no_process_and_goes_on_where_it_was(
    tmp_path: Path, number: signal.Signals
) -> None:
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("what runs the tests ignores the signal, and so would what they start")
    nets = write_nets(tmp_path / "nets", 4)
    mark = f"mark-{os.getpid()}-{number}"
    write_manifest(tmp_path / "m.jsonl", nets, hostile_converters(tmp_path, "spawns", mark))
    with started(arguments(tmp_path, "-j", "2")) as process:
        wait_for(lambda: len(list((tmp_path / "out").glob("*.onnx"))) == 4 and with_mark(mark))
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    wait_for(lambda: not with_mark(mark))
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    if number != signal.SIGKILL:
        assert told.endswith("serde: interrupted\n")
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.onnx")}
    write_manifest(tmp_path / "m.jsonl", nets)
    again = subprocess.run(
        arguments(tmp_path, "--json"), capture_output=True, text=True, check=True
    )
    found = json.loads(again.stdout)
    assert (found["models"], found["done"], found["failed"]) == (4, 4, 0)
    # Of what was written but not yet in the ledger, no more than one a worker is done again.
    assert found["reused"] >= 2
    kept = [path for path, when in written.items() if path.stat().st_mtime_ns == when]
    assert len(kept) >= found["reused"]
    assert not list((tmp_path / "out").glob(".serde-*"))


@pytest.mark.wide
def test_two_runs_do_not_share_a_ledger(tmp_path: Path) -> None:
    write_manifest(tmp_path / "m.jsonl", [], hostile_converters(tmp_path, "hangs"))
    ledger = tmp_path / "out" / ".serde" / "ledger.sqlite"
    with started(arguments(tmp_path)):
        wait_for(lambda: ledger.exists() and ledger.stat().st_size)
        second = subprocess.run(arguments(tmp_path), capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert second.stderr == f"serde: {ledger}: another run has this ledger open\n"
    write_manifest(tmp_path / "m.jsonl", [write_net(tmp_path / "good.onnx")])
    subprocess.run(arguments(tmp_path), capture_output=True, check=True)
