"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from serde.core.limits import CHUNK_BYTES
from serde.core.weights import OpenFile
from serde.errors import FormatError, OptionError
from serde.io.atomic import atomic_group, atomic_write, check_files, copy_range, write_all


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def test_a_new_file_appears_with_the_mode_of_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "a.bin") as file:
            file.write(b"new")
            assert "a.bin" not in names(tmp_path)
    finally:
        os.umask(old)
    assert (tmp_path / "a.bin").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "a.bin").stat().st_mode) == 0o640
    assert names(tmp_path) == ["a.bin"]


def test_an_existing_file_is_replaced_not_written_into(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old content")
    with target.open("rb") as reader:
        with atomic_write(target) as file:
            file.write(b"new")
            assert target.read_bytes() == b"old content"
        assert reader.read() == b"old content"
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_nothing_stays_after_an_exception(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")

    def interrupted() -> None:
        with atomic_write(target) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        interrupted()
    assert names(tmp_path) == ["a.bin"]
    assert target.read_bytes() == b"old"


def test_a_failed_check_leaves_nothing(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def check(path: Path) -> None:
        seen.append(path.read_bytes())
        assert path.name == "a.bin"
        raise ValueError("wrong")

    def write() -> None:
        with atomic_write(tmp_path / "a.bin", before_commit=check) as file:
            file.write(b"whole")

    with pytest.raises(ValueError, match="wrong"):
        write()
    assert seen == [b"whole"]
    assert names(tmp_path) == []


def test_a_group_is_renamed_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    replace = os.replace

    def noted(source: Path, target: Path) -> None:
        order.append(Path(target).name)
        replace(source, target)

    monkeypatch.setattr(os, "replace", noted)
    targets = [tmp_path / "m.data", tmp_path / "m"]
    with atomic_group(targets) as staged:
        assert staged[0].parent == staged[1].parent
        for path in staged:
            path.write_text(path.name)
    assert order == ["m.data", "m"]
    assert names(tmp_path) == ["m", "m.data"]


def test_a_group_with_a_missing_file_renames_none(tmp_path: Path) -> None:
    def write() -> None:
        with atomic_group([tmp_path / "a", tmp_path / "b"]) as staged:
            staged[0].write_text("a")

    with pytest.raises(FileNotFoundError):
        write()
    assert names(tmp_path) == []


def test_a_group_lies_in_one_directory(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with (
        pytest.raises(OptionError, match="one directory"),
        atomic_group([tmp_path / "a", tmp_path / "sub" / "b"]),
    ):
        pass
    with pytest.raises(OptionError, match="once"), atomic_group([tmp_path / "a", tmp_path / "a"]):
        pass


@pytest.mark.parametrize("link", ["same", "symlink", "hardlink", "through a linked directory"])
def test_a_source_is_never_a_target(tmp_path: Path, link: str) -> None:
    source = tmp_path / "in" / "a.bin"
    source.parent.mkdir()
    source.write_bytes(b"source")
    target = tmp_path / "b.bin"
    if link == "same":
        target = tmp_path / "in" / ".." / "in" / "a.bin"
    elif link == "symlink":
        target.symlink_to(source)
    elif link == "hardlink":
        target.hardlink_to(source)
    else:
        (tmp_path / "other").symlink_to(source.parent)
        target = tmp_path / "other" / "a.bin"
    with pytest.raises(OptionError, match="same file"), atomic_write(target, sources=[source]):
        pass
    assert source.read_bytes() == b"source"
    assert names(source.parent) == ["a.bin"]


def test_a_symbolic_link_is_replaced_itself(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"kept")
    (tmp_path / "link").symlink_to("kept")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "kept").read_bytes() == b"kept"
    assert not (tmp_path / "link").is_symlink()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/a", "does not exist"),
        ("directory", "found a directory"),
        ("fifo", "FIFO"),
        ("file/a", "does not exist"),
        ("", "name of a file"),
        ("directory/", "name of a file"),
        ("a\0b", "null"),
        ("x" * 300, "cannot be written"),
    ],
)
def test_unusable_targets(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").write_bytes(b"")
    os.mkfifo(tmp_path / "fifo")
    before = names(tmp_path)
    target = f"{tmp_path}/{name}" if name else ""
    with pytest.raises(OptionError, match=message), atomic_write(target):
        pass
    assert names(tmp_path) == before


@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1234, False)])
def test_files_of_others_in_a_sticky_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, allowed: bool
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "a").touch()
    folder.chmod(0o1777)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    if allowed:
        check_files([folder / "a"])
    else:
        with pytest.raises(OptionError, match="belongs to another user"):
            check_files([folder / "a"])


def _unsupported(*args: object) -> int:
    raise OSError(errno.EXDEV, "not here")


@pytest.mark.wide
@pytest.mark.parametrize("without", [(), ("copy_file_range",)])
@pytest.mark.parametrize("head", [b"head", b"page" * 1024, b"x" * 77], ids=len)
def test_ranges_are_copied_by_whatever_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: tuple[str, ...], head: bytes
) -> None:
    for name in without:
        monkeypatch.setattr(os, name, _unsupported)
    data = np.random.default_rng(3).bytes(CHUNK_BYTES + 12345)
    (tmp_path / "in").write_bytes(data)
    with OpenFile.open(tmp_path / "in") as opened:
        found = opened.range(77, CHUNK_BYTES + 1000)
    with (tmp_path / "out").open("wb", buffering=0) as file:
        write_all(file.fileno(), head)
        copy_range(found, file.fileno())
        write_all(file.fileno(), b"tail")
    expected = head + data[77 : 77 + CHUNK_BYTES + 1000] + b"tail"
    assert (tmp_path / "out").read_bytes() == expected


@pytest.mark.parametrize(
    ("without", "message"), [((), "at byte 10: expected 99990"), (("copy_file_range",), "found 10")]
)
def test_a_file_that_shrinks_is_a_format_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: tuple[str, ...], message: str
) -> None:
    source = tmp_path / "in"
    source.write_bytes(bytes(100_000))
    with OpenFile.open(source) as opened:
        found = opened.range(0, 100_000)
    opening = OpenFile.open

    def shrinking(path: str) -> OpenFile:
        result = opening(path)
        os.truncate(path, 10)
        return result

    monkeypatch.setattr(OpenFile, "open", shrinking)
    for name in without:
        monkeypatch.setattr(os, name, _unsupported)
    with (tmp_path / "out").open("wb") as file, pytest.raises(FormatError, match=message):
        copy_range(found, file.fileno())


def test_a_file_that_is_replaced_is_a_format_error(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(bytes(1000))
    with OpenFile.open(source) as opened:
        found = opened.range(0, 1000)
    (tmp_path / "new").write_bytes(bytes(1000))
    os.replace(tmp_path / "new", source)
    with (tmp_path / "out").open("wb") as file, pytest.raises(FormatError, match="changed"):
        copy_range(found, file.fileno())


def test_a_full_disk_names_the_target(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"big\.bin") as caught, atomic_write(tmp_path / "big.bin"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.errno == errno.ENOSPC
    assert names(tmp_path) == []
