"""Files of external data beside a model: what they are called, and which ones nothing needs.

A kill may come between the renames of data and model. So that the old model never reads new
data, a data file is only ever replaced by one for the same graph: it is called
``<name>.onnx.data`` where that is free or stands beside this very graph, and else has a digest of
the graph in its name. The model is renamed last; data of a model that is gone is removed then.
The model notes a fingerprint of its data, by which data of another training is told.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from serde.core.weights import OpenFile
from serde.errors import FormatError, OptionError
from serde.io.contained import is_file, location_fault
from serde.io.messages import FileSource, cut_data, piece_chunks
from serde.io.wire import Piece, total_length
from serde.onnx.elements import LAYOUT
from serde.onnx.model import DATA_PROPERTY, LINKED_PROPERTY, PRODUCER, LinkedFile, tensors
from serde.onnx.text import is_text

__all__ = [
    "data_name", "external_locations", "graph_digest", "is_written", "noted_data", "outdated_data",
]  # fmt: skip

_DIGEST_BYTES = 8


def data_name(target: Path, digest: str = "") -> str:
    """Return the bare name of the file of external data of a model.

    Raises:
        OptionError: The name cannot be written into a model.
    """
    name = f"{target.name}.{digest}.data" if digest else f"{target.name}.data"
    fault = location_fault(name)
    if "/" in name or "\\" in name:
        fault = "contains a path separator"
    try:
        name.encode()
    except UnicodeEncodeError:
        fault = "is not UTF-8"
    if fault is not None:
        raise OptionError(f"{target}: cannot have external data: its name {fault}")
    return name


def graph_digest(pieces: Sequence[Piece], buffer: bytes) -> str:
    """Return a digest of a model that is ready to be written, for a name."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for chunk in piece_chunks(pieces, buffer):
        digest.update(chunk)
    return digest.hexdigest()


def is_written(path: Path, pieces: Sequence[Piece], buffer: bytes) -> bool:
    """Whether a file holds just the bytes of a model that is ready to be written."""
    try:
        with OpenFile.open(path) as opened:
            if opened.size != total_length(pieces):
                return False
            source, at = FileSource(opened), 0
            for chunk in piece_chunks(pieces, buffer):
                if source.read(at, at + len(chunk)) != chunk:
                    return False
                at += len(chunk)
    except FormatError:
        return False
    return True


def noted_data(path: Path) -> tuple[LinkedFile, ...]:
    """Return what a model notes of the data that was written with it; nothing of what is none."""
    from serde.onnx.links import read_links

    try:
        proto = _skeleton(path)
        return () if proto is None else read_links(proto, None, DATA_PROPERTY)
    except (FormatError, OSError):
        return ()


def outdated_data(
    target: Path, kept: str | None, sources: Iterable[str | os.PathLike[str]]
) -> list[Path]:
    """Return data files of a model that is to be replaced, which serde wrote for it alone.

    Args:
        target: The model.
        kept: Name of the data file of the new model.
        sources: Files that are read from.

    Raises:
        OSError: The directory cannot be listed, or a file in it not be read.
    """
    ours = re.compile(rf"{re.escape(target.name)}(\.[0-9a-f]{{{2 * _DIGEST_BYTES}}})?\.data")
    found = {name for name in os.listdir(target.parent) if ours.fullmatch(name) and name != kept}
    old = _skeleton(target) if found else None
    if old is None or old.producer_name != PRODUCER:
        return []
    found &= _locations(old) - _linked(old)
    for name in os.listdir(target.parent) if found else ():
        other = None if name == target.name else _skeleton(target.with_name(name))
        found -= set() if other is None else _locations(other)
    known = {Path(source).resolve() for source in sources}
    paths = [target.with_name(name) for name in sorted(found)]
    return [path for path in paths if path.is_file() and path.resolve() not in known]


def external_locations(path: Path) -> list[str]:
    """Return where the external data of a model lies, relative to it; none of what is no model.

    Raises:
        FormatError: It leads out of the directory of the model.
    """
    proto = None if is_text(os.fspath(path)) else _skeleton(path)
    found = sorted(set() if proto is None else _locations(proto))
    for each in found:
        fault = location_fault(each)
        if fault is not None:
            raise FormatError(f"external location {each!r} {fault}", path=path)
    return found


def _skeleton(path: Path) -> onnx.ModelProto | None:
    """Return the model in a file without its large data; None if there is none."""
    proto = onnx.ModelProto()
    try:
        with OpenFile.open(path) as opened:
            proto.ParseFromString(cut_data(FileSource(opened), LAYOUT)[0])
    except FormatError as error:
        if isinstance(error.__cause__, OSError) and is_file(path):
            raise error.__cause__ from None
        return None
    except DecodeError:
        return None
    return proto


def _linked(proto: onnx.ModelProto) -> set[str]:
    """Return the locations of data that a model shares with the file that it was made of."""
    if all(entry.key != LINKED_PROPERTY for entry in proto.metadata_props):
        return set()
    from serde.onnx.links import read_links

    try:
        return {each.location for each in read_links(proto, None)}
    except FormatError:
        return _locations(proto)


def _locations(proto: onnx.ModelProto) -> set[str]:
    """Return what the external data of a model's tensors lies in."""
    entries = (entry for _, tensor in tensors(proto) for entry in tensor.external_data)
    return {entry.value for entry in entries if entry.key == "location"}
