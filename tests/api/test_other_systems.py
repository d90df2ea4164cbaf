"""What holds on Windows, on macOS and in a browser, where much is lacking that Linux has.

Most of it is tried in one interpreter from which that has been taken (``support/lacking``); names
of files are judged by what Python knows of Windows' paths.
"""

import json
import ntpath
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
import pytest
from support import lacking
from support.batch_nets import write_net
from support.lacking.driver import CHECKS, convert_to_all

import serde
import serde.core.systems
from serde.core.systems import ignores_case, keep, name_fault, open_to_read, read_at
from serde.core.weights import OpenFile
from serde.errors import OptionError
from serde.fleet.batching.manifest import Entry, Trust
from serde.fleet.batching.planning import plan
from serde.fleet.stores.urls import Address
from serde.io.archives import tar_copy
from serde.io.contained import location_fault
from serde.io.zips import zip_copy

LACKING = Path(lacking.__path__[0])
ROOT = Path(serde.__file__).parents[1]

WAYS = {"preadv": (), "pread": ("preadv",), "a position that all share": ("preadv", "pread")}
each_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_net(tmp_path_factory.mktemp("net") / "net.onnx")


def run_lacking(net: Path, folder: Path, names: list[str], where: str = "windows") -> Any:
    """What the driver says of checks, in one interpreter for all."""
    paths = os.pathsep.join(map(str, (LACKING, ROOT)))
    done = subprocess.run(
        [sys.executable, str(LACKING / "driver.py"), str(net), str(folder), *names],
        env={**os.environ, "PYTHONPATH": paths, "SERDE_LACKING": where},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def told(net: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if sys.platform != "linux":
        pytest.skip("what is taken away, and how open files are found, is Linux's")
    names = [name for name in CHECKS if name != "converts_in_a_page"]
    return run_lacking(net, tmp_path_factory.mktemp("lacking"), names)


@pytest.fixture(scope="module")
def with_everything(net: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return convert_to_all(net, tmp_path_factory.mktemp("everything"))


@pytest.mark.wide
def test_all_formats_are_written_and_read_to_the_same_bytes(
    told: Any, with_everything: dict[str, str]
) -> None:
    assert told["converts"] == [with_everything, []]
    assert len(with_everything) > 15


@pytest.mark.wide
def test_a_page_needs_neither_locks_nor_threads_nor_processes(net: Path, tmp_path: Path) -> None:
    for folder in ("lacking", "with everything"):
        (tmp_path / folder).mkdir()
    name = "converts_in_a_page"
    found = run_lacking(net, tmp_path / "lacking", [name], "browser")
    assert found[name] == [CHECKS[name](net, tmp_path / "with everything"), []]


def test_checks_run_engines_in_processes(told: Any) -> None:
    (passed, engines), left = told["checks"]
    assert passed == [True]
    assert [each.split()[0] for each in engines] == ["onnxruntime", "onnxruntime"]
    assert left == []


def test_a_batch_survives_a_model_that_crashes(told: Any) -> None:
    (ended, refused, names), left = told["runs_batches"]
    assert ended == {
        "net.onnx": ["done", ""],
        "bad.onnx": ["crashed", "its process crashed (SIGABRT)"],
    }
    assert "memory_limit: there is none" in refused[0]
    assert "sandbox: this kernel has no Landlock" in refused[1]
    assert names == [".serde", "net.onnx"]
    assert left == []


def test_half_a_pair_is_refused_after_a_kill_and_the_next_run_tidies_up(told: Any) -> None:
    (code, hidden, between, outputs, hidden_after), _ = told["survives_kills"]
    assert (code, hidden, hidden_after) == (9, 1, 0)
    assert between.startswith("FormatError: /pair-0000.params: mismatched pair")
    assert outputs == ["z_output"]


def test_what_is_open_elsewhere_stays_with_what_belongs_to_it(told: Any) -> None:
    (said, is_as_before), left = told["keeps_what_cannot_be_replaced"]
    assert "being used by another process: '/pair-symbol.json'" in said
    assert is_as_before
    assert left == []


def test_names_that_windows_has_not_are_refused_as_targets(told: Any) -> None:
    (nul, com, stream, fine), _ = told["refuses_names"]
    assert nul.endswith("NUL.onnx: its name is a device of Windows")
    assert com.endswith("com1.onnx: its name is a device of Windows")
    assert stream.endswith("a:b.onnx: its name has a sign that no name has on Windows")
    assert fine == "no error"


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serde.core.systems, "_WINDOWS", True)


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    "name",
    [
        *(
            "CON",
            "nul",
            "Aux.onnx",
            "prn.tar.gz",
            "COM1",
            "lpt9.dat",
            "COM²",
            "CONIN$",
            "NUL .onnx",
        ),
        *("NUL .onnx", "com0", "COM10", "con x", "nulls", "comma", "x.con", "model.onnx"),
    ],
)
def test_devices_are_those_that_python_knows(name: str) -> None:
    known = getattr(ntpath, "isreserved", lambda name: PureWindowsPath(name).is_reserved())
    assert (name_fault(name) == "is a device of Windows") == known(name)


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("name", ["a.", "a ", "a:b", "a*", 'a"', "a|b", "a\tb", "what?", "<a>"])
def test_names_that_only_others_have(name: str) -> None:
    assert name_fault(name) is not None
    assert location_fault(f"weights/{name}/w.bin") is not None
    assert location_fault(f"weights/{name}/w.bin", on_disk=False) is None


@pytest.mark.parametrize("name", ["CON", "a.", "a:b", "a*"])
def test_elsewhere_they_are_names_like_any(name: str) -> None:
    assert (name_fault(name) is None) == (os.name != "nt")


@pytest.mark.usefixtures("windows")
def test_members_of_archives_that_have_no_name_here_stay_there(tmp_path: Path) -> None:
    names = ["fine.bin", "nul", "a\\..\\..\\b", "\\x", "c:x", "d.", "e:stream", "f/aux.bin"]
    (tmp_path / "empty").touch()
    with (
        tarfile.open(tmp_path / "a.tar", "w") as tar,
        zipfile.ZipFile(tmp_path / "a.zip", "w") as packed,
    ):
        for name in names:
            tar.add(tmp_path / "empty", name)
            packed.writestr(name, b"")
    for copy, path in ((tar_copy, "a.tar"), (zip_copy, "a.zip")):
        assert copy(tmp_path / path, lambda _name, _size: None) == {"fine.bin": 0}


def test_paths_of_windows_have_slashes(monkeypatch: pytest.MonkeyPatch, windows: None) -> None:
    monkeypatch.setattr(os, "sep", "\\")
    found = Address.of("C:\\nets\\a\\net.onnx")
    assert (found.protocol, found.name, found.parent) == ("", "net.onnx", "C:/nets/a")
    assert Address.of("file:///C:/nets/net.onnx").path == "C:/nets/net.onnx"
    assert Address.of("s3://bucket/a\\b.onnx").path == "bucket/a\\b.onnx"


@pytest.mark.parametrize("folds", [False, True])
def test_targets_that_differ_by_case_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folds: bool
) -> None:
    for folder, name in (("a", "net.onnx"), ("b", "Net.onnx")):
        write_net(tmp_path / folder / name)
    monkeypatch.setattr("serde.fleet.batching.planning.ignores_case", lambda _folder: folds)
    entries = [
        Entry("line", (str(path),)) for path in (tmp_path / "a/net.onnx", tmp_path / "b/Net.onnx")
    ]
    found = plan(entries, str(tmp_path), ".onnx", {})
    assert (len(found.jobs), len(found.faults)) == ((1, 1) if folds else (2, 0))
    assert all("is also that of" in fault.error for fault in found.faults)


def test_whether_names_ignore_case_is_tried(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert ignores_case(tmp_path) == (tmp_path / "A").exists()
    assert sorted(os.listdir(tmp_path)) == ["a"]


def test_the_ledger_is_no_target_under_other_capitals() -> None:
    with pytest.raises(OptionError, match="is where the ledger lies"):
        Trust().check(Entry("line", ("a.onnx",), f".SERDE{os.sep}ledger.sqlite"))


@pytest.mark.wide
def test_a_clock_ends_what_parses_where_the_system_bounds_nothing() -> None:
    script = (
        "import sys, time; sys.modules['resource'] = None; "
        "from serde.relax.text.reading import _limit_process; "
        "_limit_process(0.05, 2**30); time.sleep(60)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=30, cwd=ROOT).returncode == 1


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    np.arange(2**16, dtype="<u4").tofile(tmp_path / "numbers")
    return tmp_path / "numbers"


@pytest.fixture
def taken(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WAYS[way]:
        monkeypatch.delattr(os, name, raising=False)


@each_way
@pytest.mark.usefixtures("taken")
def test_threads_that_share_an_open_file_read_their_own_parts(numbers: Path) -> None:
    wrong: list[int] = []

    def read(opened: OpenFile, first: int) -> None:
        buffer = np.empty(256, "<u4")
        for start in range(first, 2**16 - 256, 997):
            opened.read_into(buffer, 4 * start)
            if buffer[0] != start or buffer[-1] != start + 255:
                wrong.append(start)

    with OpenFile.open(numbers) as opened, opened.duplicate() as other:
        given = [(each, first) for first in range(4) for each in (opened, other)]
        threads = [threading.Thread(target=read, args=pair) for pair in given]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


@each_way
@pytest.mark.usefixtures("taken")
def test_the_end_of_a_file_is_read_short(numbers: Path) -> None:
    fd = open_to_read(numbers)
    try:
        buffer = memoryview(bytearray(16))
        assert read_at(fd, buffer, 2**18 - 4) == 4
        assert int.from_bytes(buffer[:4], "little") == 2**16 - 1
        assert read_at(fd, buffer, 2**18) == 0
    finally:
        os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        read_at(fd, buffer, 0)


@pytest.mark.parametrize("links", [True, False])
def test_what_is_replaced_has_a_second_name_or_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        monkeypatch.delattr(os, "link")
    (tmp_path / "a").write_text("old")
    keep(tmp_path / "a", tmp_path / "kept")
    keep(tmp_path / "missing", tmp_path / "nothing")
    assert (tmp_path / "kept").samefile(tmp_path / "a") == links
    assert (tmp_path / "kept").read_text() == "old"
    assert not (tmp_path / "nothing").exists()
