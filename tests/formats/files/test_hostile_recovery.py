"""Directories of killed runs that others made: nothing is moved, followed or waited for."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.batch_nets import write_net

import serde.io.staging
from serde.command.cli import main
from serde.io.directories import check_directory
from serde.io.staging import pending, sweep

PRECIOUS = "precious"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes these")


def identity(path: Path) -> list[int]:
    status = path.lstat()
    return [status.st_ino, status.st_size, status.st_mtime_ns]


class Begun:
    """What a run leaves that was killed when it had renamed ``a`` and not yet ``b``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "folder"
        self.hidden = self.folder / ".serde-aaaaaaaa"
        self.new, self.file = self.hidden / "new", self.hidden / "plan.json"
        self.new.mkdir(parents=True)
        self.hidden.chmod(0o700)
        (self.hidden / "lock").touch()
        (self.folder / "a").write_text("new a")
        (self.new / "b").write_text("new b")
        for precious in (root / PRECIOUS, root / "b", self.folder / PRECIOUS):
            precious.write_text(PRECIOUS)
        self.plan: Any = {
            "renames": [
                ["a", identity(self.folder / "a"), None],
                ["b", identity(self.new / "b"), None],
            ],
            "removals": [],
        }
        self.note()

    def note(self) -> None:
        self.file.write_text(json.dumps(self.plan))

    def rename(self, number: int, field: int, value: Any) -> None:
        self.plan["renames"][number][field] = value
        self.note()

    def link(self, path: Path, target: str) -> None:
        """Put a link where something is; that something goes elsewhere."""
        path.rename(self.root / "elsewhere")
        path.symlink_to(target)

    def own(self, path: Path) -> None:
        os.chown(path, 12345, 12345)


def test_the_run_itself_is_finished(tmp_path: Path) -> None:
    """What the cases below change one thing of."""
    begun = Begun(tmp_path)
    assert pending(begun.folder / "b") == begun.new / "b"
    sweep(begun.folder)
    assert sorted(os.listdir(begun.folder)) == ["a", "b", PRECIOUS]
    assert (begun.folder / "b").read_text() == "new b"


Change = Callable[[Begun], object]


def null_identities(begun: Begun) -> None:
    """The attack: a repository that moves what lies two folders up."""
    shutil.rmtree(begun.new)
    begun.new.symlink_to("../..")
    (begun.folder / "a").unlink()
    begun.plan = {"renames": [["a", None, None], [PRECIOUS, None, None]], "removals": []}
    (begun.folder / PRECIOUS).unlink()
    begun.note()


def a_gigabyte(begun: Begun) -> None:
    with begun.file.open("r+") as file:
        text = file.read()
        file.truncate(2**30)
        file.seek(0)
        file.write(text)


def special(kind: int, device: int = 0) -> Change:
    def change(begun: Begun) -> None:
        begun.file.unlink()
        os.mknod(begun.file, kind | 0o600, device)

    return change


def named(name: Any) -> Change:
    return lambda begun: begun.rename(1, 0, name)


def known(value: Any) -> Change:
    return lambda begun: begun.rename(1, 1, value)


def removed(name: Any, as_is: bool = False) -> Change:
    """A removal that was not of a file beside, or of one that the run did not know."""

    def change(begun: Begun) -> None:
        found = identity(begun.root / PRECIOUS) if as_is else [1, 2, 3]
        begun.plan["removals"] = [[name, found]]
        begun.rename(1, 1, [1, 1, 1])

    return change


def hard_link(begun: Begun) -> None:
    (begun.new / "b").unlink()
    os.link(begun.root / PRECIOUS, begun.new / "b")
    begun.rename(1, 1, identity(begun.new / "b"))


def link_as_member(begun: Begun) -> None:
    (begun.new / "b").unlink()
    (begun.new / "b").symlink_to(f"../../../{PRECIOUS}")
    begun.rename(1, 1, identity(begun.new / "b"))


def folder_as_member(begun: Begun) -> None:
    (begun.new / "b").unlink()
    (begun.new / "b").mkdir()
    begun.rename(1, 1, identity(begun.new / "b"))


def fifo_as_member(begun: Begun) -> None:
    (begun.new / "b").unlink()
    os.mkfifo(begun.new / "b")
    begun.rename(1, 1, identity(begun.new / "b"))


def nested(begun: Begun) -> None:
    below = begun.new
    for _ in range(600):
        below = below / "d"
        below.mkdir()
    begun.hidden.chmod(0o755)


def locked_by_fifo(begun: Begun) -> None:
    (begun.hidden / "lock").unlink()
    os.mkfifo(begun.hidden / "lock")


CHANGES: dict[str, Any] = {
    "null identities and a link upwards": null_identities,
    "the folder is a link": lambda begun: begun.link(begun.hidden, "../elsewhere"),
    "new is a link": lambda begun: begun.link(begun.new, "../../elsewhere"),
    "new is a link upwards": lambda begun: begun.link(begun.new, "../.."),
    "the plan is a link": lambda begun: begun.link(begun.file, "../../elsewhere"),
    "the plan is a link to zeros": lambda begun: begun.link(begun.file, "/dev/zero"),
    "the plan is a link to itself": lambda begun: begun.link(begun.file, "plan.json"),
    "a member is a link": link_as_member,
    "a member has another name": hard_link,
    "a member is a folder": folder_as_member,
    "a member is a FIFO": fifo_as_member,
    "the plan is a FIFO": special(stat.S_IFIFO),
    "the plan is a socket": special(stat.S_IFSOCK),
    "the plan is a folder": lambda begun: (begun.file.unlink(), begun.file.mkdir()),
    "the plan has another name": lambda begun: os.link(begun.file, begun.root / "plan"),
    "the plan has a gigabyte": a_gigabyte,
    "the plan is deep": lambda begun: begun.file.write_text("[" * 200_000),
    "the plan is deep and whole": lambda begun: begun.file.write_text("[" * 9**5 + "]" * 9**5),
    "the plan is empty": lambda begun: begun.file.write_text(""),
    "the plan is no text": lambda begun: begun.file.write_bytes(b"\xff\xfe\x00"),
    "the plan has a number of 5000 digits": lambda begun: begun.file.write_text("9" * 5000),
    "the plan is a list": lambda begun: begun.file.write_text("[]"),
    "the plan has no removals": lambda begun: begun.file.write_text('{"renames": [[]]}'),
    "others may look in": lambda begun: begun.hidden.chmod(0o755),
    "others may write": lambda begun: begun.hidden.chmod(0o770),
    "an identity is missing": lambda begun: (begun.plan["renames"][1].pop(), begun.note()),
    "an identity is null": known(None),
    "the first is null": lambda begun: begun.rename(0, 1, None),
    "an identity is guessed": known([1, 5, 0]),
    "an identity is text": known("same"),
    "an identity is a float": known([1e308, 5, 0]),
    "nothing was renamed": lambda begun: begun.plan["renames"].pop(0) and begun.note(),
    "something has the name": lambda begun: (begun.folder / "b").write_text(PRECIOUS),
    "a name upwards": named("../b"),
    "a name of the folder": named(".."),
    "a name of itself": named("."),
    "no name": named(""),
    "an absolute name": lambda begun: named(os.fspath(begun.root / "b"))(begun),
    "a name below": named("x/b"),
    "a name with a null": named("b\0"),
    "a name with half a character": named("b\ud800"),
    "a name of a byte that is no text": named("b\udcff"),
    "a name of 5000 letters": named("b" * 5000),
    "a name that is a number": named(5),
    "a name that is a list": named(["b"]),
    "a removal upwards": removed("../precious", as_is=True),
    "a removal of what was not seen": removed(PRECIOUS),
    "folders in folders": nested,
    "the plan is a device": pytest.param(special(stat.S_IFCHR, os.makedev(1, 5)), marks=needs_root),
    "another owner": pytest.param(lambda begun: begun.own(begun.hidden), marks=needs_root),
    "another owner of new": pytest.param(lambda begun: begun.own(begun.new), marks=needs_root),
    "another owner of the plan": pytest.param(
        lambda begun: begun.own(begun.file), marks=needs_root
    ),
    "another owner of a member": pytest.param(
        lambda begun: begun.own(begun.new / "b"), marks=needs_root
    ),
}
LOCKS: dict[str, Any] = {
    "is a link": lambda begun: begun.link(begun.hidden / "lock", "../../elsewhere"),
    "is a FIFO": locked_by_fifo,
    "is another user's": pytest.param(
        lambda begun: begun.own(begun.hidden / "lock"), marks=needs_root
    ),
}


def cases(changes: dict[str, Any]) -> list[Any]:
    plain = {name: case for name, case in changes.items() if callable(case)}
    marked = {name: case for name, case in changes.items() if name not in plain}
    return [pytest.param(case, id=name) for name, case in plain.items()] + [
        pytest.param(*case.values, marks=case.marks, id=name) for name, case in marked.items()
    ]


def contents(root: Path, skip: Path) -> dict[str, bytes]:
    """What lies anywhere but in the directory of the run."""
    files = [each for each in root.rglob("*") if skip not in each.parents and not each.is_symlink()]
    return {
        each.relative_to(root).as_posix(): each.read_bytes()
        for each in files
        if stat.S_ISREG(each.lstat().st_mode) and each.stat().st_size < 2**20
    }


@pytest.mark.thin(2)
@pytest.mark.parametrize("change", cases(CHANGES))
def test_a_plan_of_others_moves_nothing(tmp_path: Path, change: Change) -> None:
    begun = Begun(tmp_path)
    change(begun)
    before = contents(tmp_path, begun.hidden)
    assert pending(begun.folder / "b") is None
    sweep(begun.folder)
    assert contents(tmp_path, begun.hidden) == before
    sweep(begun.folder)
    assert contents(tmp_path, begun.hidden) == before


@pytest.mark.parametrize("change", cases(LOCKS))
def test_what_has_no_lock_of_ours_is_left_alone(tmp_path: Path, change: Change) -> None:
    begun = Begun(tmp_path)
    change(begun)
    before = contents(tmp_path, tmp_path / "none")
    sweep(begun.folder)
    assert contents(tmp_path, tmp_path / "none") == before


@pytest.mark.parametrize("change", cases(CHANGES)[:4])
def test_a_conversion_beside_it_ends_well(
    tmp_path: Path, change: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = Begun(tmp_path)
    change(begun)
    write_net(begun.folder / "net.onnx")
    before = contents(tmp_path, begun.hidden)
    assert main(["convert", f"{begun.folder}/net.onnx", f"{begun.folder}/net.relay"]) == 0
    after = contents(tmp_path, begun.hidden)
    assert {name: after.get(name) for name in before} == before
    assert "Traceback" not in capsys.readouterr().err


def test_a_folder_that_is_swapped_when_its_plan_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was looked at is what is moved: names are not looked up again."""
    begun = Begun(tmp_path)
    read = serde.io.staging._read_plan

    def read_and_swap(*folders: int) -> Any:
        found = read(*folders)
        begun.new.rename(tmp_path / "kept")
        begun.new.symlink_to(tmp_path)
        return found

    monkeypatch.setattr(serde.io.staging, "_read_plan", read_and_swap)
    sweep(begun.folder)
    assert (begun.folder / "b").read_text() == "new b"
    assert (tmp_path / "b").read_text() == PRECIOUS


def test_what_stands_in_the_place_of_the_folder_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = Begun(tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "lock").touch()
    (mine / "notes").write_text(PRECIOUS)

    def swap(*_folders: int) -> None:
        begun.hidden.rename(tmp_path / "kept")
        mine.rename(begun.hidden)

    monkeypatch.setattr(serde.io.staging, "_finish", swap)
    sweep(begun.folder)
    assert (begun.hidden / "notes").read_text() == PRECIOUS


@needs_root
def test_a_package_set_aside_by_another_user_stays(tmp_path: Path) -> None:
    aside = tmp_path / ".serde-old-m.mlpackage"
    aside.mkdir()
    os.chown(aside, 12345, 12345)
    check_directory(tmp_path / "m.mlpackage", is_package=lambda _path: True)
    assert os.listdir(tmp_path) == [aside.name]
