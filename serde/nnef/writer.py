"""Folders and archives of NNEF, written whole or not at all."""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from serde.core import MAX_GRAPH_TEXT_BYTES, Weight, counting, dataclass, expect
from serde.errors import FormatError
from serde.io.atomic import atomic_write, check_files, write_all, write_weight
from serde.io.contained import location_fault, read_small
from serde.io.directories import atomic_directory, check_directory
from serde.io.packed import high_first_chunks
from serde.nnef.codec import GRAPH, QUANT
from serde.nnef.dat import write_header
from serde.nnef.model import NnefModel
from serde.nnef.text.printer import graph_text, quantization_text
from serde.nnef.text.tokens import tokens_of

__all__ = ["check_target", "save"]

ARCHIVES: Final = (".tgz", ".tar.gz")

_SUFFIX: Final = ".dat"
_LEVEL: Final = 1
"""Weights hardly become smaller at others, which take several times as long."""


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a target is that of an archive."""
    return os.fspath(path).endswith(ARCHIVES)


def check_target(
    path: str | os.PathLike[str], sources: Sequence[Path] = (), _options: object = None
) -> None:
    """Refuse a path at which neither a folder nor an archive can be written.

    Raises:
        OptionError: Something else is there, or it holds a source.
    """
    if is_archive(path):
        check_files([path], sources=sources)
    else:
        check_directory(path, sources=sources, is_package=is_replaceable)


def is_replaceable(path: Path) -> bool:
    """Whether a directory holds a graph and the data that it names, and nothing else."""
    if not (path / GRAPH).is_file():
        return False
    try:
        text = read_small(path / GRAPH, MAX_GRAPH_TEXT_BYTES).decode("utf-8", "replace")
    except FormatError:
        return False
    labels = {each.text[1:-1] for each in tokens_of(text) if each.kind == "string"}
    known = {GRAPH, QUANT, *(f"{label}{_SUFFIX}" for label in labels)}
    folders = [path]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for each in entries:
                name = Path(each.path).relative_to(path).as_posix()
                if each.is_symlink() or (not each.is_dir() and name not in known):
                    return False
                folders += [Path(each.path)] if each.is_dir() else []
    return True


def save(
    model: NnefModel,
    path: Path,
    sources: Sequence[Path] = (),
    before_commit: Callable[[Path], None] | None = None,
) -> Path:
    """Write a model; the same one always gives the same bytes.

    Raises:
        FormatError: A file that weights lie in changed.
        OptionError: The path cannot be used.
        Unsupported: A weight cannot be stored.
    """
    texts = {GRAPH: graph_text(model)}
    if model.quantization:
        texts[QUANT] = quantization_text(model)
    tensors = list(_tensors(model))
    expect("bytes", sum(each.length for each in tensors))
    if is_archive(path):
        with atomic_write(path, sources=sources, before_commit=before_commit) as file:
            _write_archive(file, texts, tensors)
        return path
    with atomic_directory(
        path, sources=sources, is_package=is_replaceable, before_commit=before_commit
    ) as root:
        for name, text in texts.items():
            (root / name).write_bytes(text.encode())
        for each in tensors:
            each.write(root)
    return path


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A file of a tensor.

    Attributes:
        name: Its path in the folder.
        header: Its first bytes.
        weight: Its elements.
    """

    name: str
    header: bytes
    weight: Weight

    @property
    def length(self) -> int:
        """Bytes of the elements as they are stored."""
        packed = self.weight.dtype == "bool"
        return (self.weight.size + 7) // 8 if packed else self.weight.nbytes

    def chunks(self) -> Iterator[memoryview | bytes]:
        """Yield the elements as they are stored, in bounded pieces."""
        packed = self.weight.dtype == "bool"
        return high_first_chunks(self.weight) if packed else self.weight.chunks()

    def write(self, root: Path) -> None:
        """Make the file in a folder."""
        target = root / self.name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb", buffering=0) as file:
            write_all(file.fileno(), self.header)
            if self.weight.dtype != "bool":
                write_weight(self.weight, file.fileno(), self.name)
                return
            count = counting("bytes")
            for piece in self.chunks():
                write_all(file.fileno(), piece)
                count(len(piece))


def _tensors(model: NnefModel) -> Iterator[_Tensor]:
    """Yield the files of tensors, in the order of their names."""
    for label, weight in sorted(model.weights.items()):
        fault = location_fault(label)
        if fault is not None:
            raise FormatError(f"label {label!r} {fault}")
        quantized = label in model.stored_quantized
        header = write_header(weight.shape, weight.dtype, quantized=quantized)
        yield _Tensor(f"{label}{_SUFFIX}", header, weight)


def _write_archive(file: BinaryIO, texts: Mapping[str, str], tensors: Sequence[_Tensor]) -> None:
    """Write an archive, whose members tell neither times nor users."""
    with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
        for name, text in texts.items():
            data = text.encode()
            _write_member(packed, name, len(data), [data])
        for each in tensors:
            pieces = [each.header], each.chunks()
            length = len(each.header) + each.length
            _write_member(packed, each.name, length, (x for group in pieces for x in group))
        packed.write(bytes(2 * tarfile.BLOCKSIZE))


def _write_member(
    packed: gzip.GzipFile,
    name: str,
    length: int,
    pieces: Sequence[bytes] | Iterator[memoryview | bytes],
) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = length
    packed.write(entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
    written, count = 0, counting("bytes")
    for piece in pieces:
        packed.write(piece)
        written += memoryview(piece).nbytes
        count(memoryview(piece).nbytes)
    if written != length:
        raise FormatError(f"{name}: expected {length} bytes, found {written}")
    packed.write(bytes(-length % tarfile.BLOCKSIZE))
