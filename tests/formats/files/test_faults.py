"""Every system call of a conversion fails once: old or new is left, whole, and nothing else."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.fault_cases import (
    SOURCES,
    TARGETS,
    Case,
    convert,
    convert_with_files,
    faults_found,
    kills_found,
    link_weights,
    make_folders,
    split_model,
    without_processes,
)
from support.faults import Faults, can_inject, contents, faults_of, kills_of

import serde
from serde.errors import FormatError, OptionError

pytestmark = pytest.mark.skipif(bool(can_inject()), reason=can_inject())

# In memory, where files are made at once; a disk takes some milliseconds for each.
MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path_factory.mktemp("faults")
        return
    folder = Path(tempfile.mkdtemp(dir=MEMORY))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def faults(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Faults:
    try:
        return Faults(root, tmp_path_factory.mktemp("library") / "faults.so")
    except OSError as error:
        pytest.skip(f"this kernel does not catch system calls: {error}")


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with without_processes():
        yield


@pytest.fixture
def folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    found = Path(tempfile.mkdtemp(dir=root))
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(found / "tmp"))
    yield found
    shutil.rmtree(found)


KINDS: dict[str, Callable[[Path], Case]] = {
    f"{source} to {target}": lambda folder, source=source, target=target: convert(
        folder, source, target
    )
    for source, target in dict.fromkeys(
        [("onnx", each) for each in TARGETS] + [(each, "onnx") for each in SOURCES]
    )
}
FRESH = ("onnx with data", "relay", "mxnet", "mlpackage", "nnef", "relax", "torch", "library")
KINDS |= {
    f"nothing to {target}": lambda folder, target=target: convert(
        folder, "mxnet", target, fresh=True
    )
    for target in (
        "onnx with data",
        "relay",
        "mxnet",
        "mlpackage",
        "nnef",
        "relax",
        "torch",
        "library",
    )
}
NEED_TVM = frozenset(kind for kind in KINDS if "relax" in kind or "library" in kind)
NEED_TORCH = frozenset(kind for kind in KINDS if "torch program" in kind or "torch script" in kind)
KINDS |= {
    "report and mapping": convert_with_files,
    "split": split_model,
    "linked weights": link_weights,
}


def _make(kind: str, folder: Path) -> Case:
    for kinds, module in ((NEED_TORCH, "torch"), (NEED_TVM, "tvm")):
        if kind in kinds:
            pytest.importorskip(module)
    return KINDS[kind](folder)


PLACES: dict[str, Callable[[Path], Path]] = {
    "itself": lambda source: source,
    "another name": lambda source: _linked(source, os.link),
    "a link": lambda source: _linked(source, os.symlink),
    "its data": lambda source: source.with_name("m.onnx.data"),
}


def _linked(source: Path, link: Callable[[Path, Path], None]) -> Path:
    target = source.parents[1] / "out" / "m.onnx"
    link(source, target)
    return target


# One in so many faults, from one on that differs by kind.
FEW, SOME, ALL = 97, 61, 1
FIRST = ("onnx to mlpackage", "mxnet to onnx", "nnef archive to onnx")
STRIDES = [
    *((kind, FEW) for kind in FIRST),
    *(pytest.param(kind, SOME, marks=pytest.mark.wide) for kind in KINDS),
    *(pytest.param(kind, ALL, marks=pytest.mark.slow) for kind in KINDS),
]


@pytest.mark.parametrize(("kind", "stride"), STRIDES)
def test_a_fault_leaves_old_or_new(kind: str, stride: int, folder: Path, faults: Faults) -> None:
    made = _make(kind, folder)
    chosen = [*faults_of(made.record(faults), [*made.files])]
    assert len(chosen) > FEW
    start = sorted(KINDS).index(kind) % stride
    assert faults_found(faults, made, chosen[start::stride]) == []


@pytest.mark.parametrize("stride", [FEW, pytest.param(ALL, marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", PLACES)
def test_a_source_is_never_written_over(
    place: str, stride: int, folder: Path, faults: Faults
) -> None:
    """Whatever the system answers when it is asked whether the target is the source."""
    make_folders(folder)
    source = SOURCES["onnx with data"](folder / "in")
    target = PLACES[place](source)
    before = contents(folder)

    def run() -> None:
        with pytest.raises((OptionError, FormatError, OSError)):
            serde.convert(source, target, target_format="onnx", save_as_external_data=True)

    calls = faults.record(run)
    for fault in [*faults_of(calls, [])][::stride]:
        faults.run(fault, run)
        assert contents(folder) == before, fault


@pytest.mark.parametrize("stride", [SOME, pytest.param(ALL, marks=pytest.mark.slow)])
def test_data_of_others_is_never_written_over(stride: int, folder: Path, faults: Faults) -> None:
    """Whatever the system answers when it is asked whether there is a file of that name."""
    make_folders(folder)
    source = SOURCES["onnx"](folder / "in")
    data, target = folder / "out" / "m.onnx.data", folder / "out" / "m.onnx"
    data.write_text("mine")

    def run() -> None:
        with suppress(OptionError, FormatError, OSError):
            serde.convert(source, target, save_as_external_data=True)

    calls = faults.record(run)
    for fault in [*faults_of(calls, [])][::stride]:
        target.unlink(missing_ok=True)
        faults.run(fault, run)
        assert data.read_text() == "mine", fault


@pytest.mark.sparse(3)
@pytest.mark.wide
@pytest.mark.parametrize(("kind", "stride"), STRIDES)
def test_a_kill_leaves_old_or_new(kind: str, stride: int, folder: Path, faults: Faults) -> None:
    if kind in ("onnx to library", "nothing to library"):
        pytest.xfail("a kill between the renames leaves a pair that is refused, not the new model")
    made = _make(kind, folder)
    chosen = [*kills_of(made.record(faults))]
    start = sorted(KINDS).index(kind) % stride
    assert kills_found(faults, made, chosen[start::stride]) == []
