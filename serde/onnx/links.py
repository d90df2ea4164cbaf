"""Weights that stay in the file that they came from: the model refers to them there.

To ONNX that file is external data like any other. So that a later change of it does not go
unseen, the model notes a fingerprint of it in its metadata (:mod:`serde.io.fingerprint`), which
is compared whenever serde reads or checks the model.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue, Final

from serde.core import FileRange, Report, Weight, numpy_dtype, parse_json
from serde.core.texts import weights_text
from serde.errors import FormatError, OptionError
from serde.io.contained import location_fault
from serde.io.fingerprint import DIGEST_BYTES, MOST_RANGES, Fingerprint, digest_of
from serde.io.packed import stored_source
from serde.io.staging import is_staged
from serde.onnx.model import DATA_PROPERTY, EMBEDDED_BYTES, LINKED_PROPERTY, LinkedFile

if TYPE_CHECKING:
    import onnx

__all__ = ["drop_links", "link_files", "linkable_weights", "note_links", "read_links"]

_MOST_TEXT: Final = 2**21
_MOST_BYTES: Final = 2**63 - 1
_SHOWN: Final = 3


def linkable_weights(weights: Mapping[str, Weight], report: Report) -> frozenset[str]:
    """Return the names of the weights that a model can refer to where they lie.

    Args:
        weights: Those of the main graph.
        report: Gets how much is linked and written, and why.
    """
    found: dict[str, FileRange] = {}
    others: dict[str, list[str]] = {}
    for name, weight in weights.items():
        source = stored_source(weight)
        reason = _obstacle(weight, source)
        if reason is None and source is not None:
            found[name] = source
        elif reason is not None:
            others.setdefault(reason, []).append(name)
    for name in _overlapping(found):
        del found[name]
        others.setdefault("overlapping others", []).append(name)
    sizes = {name: weight.nbytes for name, weight in weights.items()}
    report.facts |= {
        "linked_weights": len(found),
        "linked_bytes": sum(source.length for source in found.values()),
        "written_weights": len(weights) - len(found),
        "written_bytes": sum(size for name, size in sizes.items() if name not in found),
    }
    report.notes += [_note(reason, names, sizes) for reason, names in others.items()]
    return frozenset(found)


def _obstacle(weight: Weight, source: FileRange | None) -> str | None:
    """Return why a model cannot refer to a weight."""
    nbytes = weight.nbytes if source is None else source.length
    if nbytes < EMBEDDED_BYTES:
        return f"smaller than {EMBEDDED_BYTES} bytes"
    if source is None:
        return "in no file" if weight.held else "made anew by the conversion"
    if source.handle is not None:
        return "in a compressed archive"
    if source.offset % numpy_dtype(weight.dtype).itemsize:
        return "not aligned to their elements"
    return None


def _overlapping(ranges: Mapping[str, FileRange]) -> list[str]:
    """Return the weights that share some of their bytes with one before them, but not all."""
    found = []
    ends: dict[str, tuple[int, int]] = {}
    order = sorted(ranges.items(), key=lambda item: (item[1].path, item[1].offset, -item[1].length))
    for name, source in order:
        known = ends.get(source.path, (0, 0))
        bounds = (source.offset, source.offset + source.length)
        if bounds != known and bounds[0] < known[1]:
            found.append(name)
        else:
            ends[source.path] = bounds
    return found


def _note(reason: str, names: Sequence[str], sizes: Mapping[str, int]) -> str:
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return f"not linked, {reason}: {weights_text([sizes[name] for name in names])} ({shown})"


def link_files(weights: Iterable[Weight], target: Path, *, full: bool) -> dict[str, LinkedFile]:
    """Return the files that weights lie in by their paths, as a model beside them notes them.

    Args:
        weights: Weights that :func:`linkable_weights` has found.
        target: The model.
        full: Whether the checksum of each file is wanted.

    Raises:
        FormatError: A file changed.
        OptionError: A file is not in the model's folder or below it, or has several names.
    """
    ranges: dict[str, list[FileRange]] = {}
    for weight in weights:
        source = stored_source(weight)
        if source is not None:
            ranges.setdefault(source.path, []).append(source)
    most = max(1, MOST_RANGES // max(1, len(ranges)))
    return {
        path: _link_file(path, each, target, most=most, full=full) for path, each in ranges.items()
    }


def _link_file(
    path: str, ranges: Sequence[FileRange], target: Path, *, most: int, full: bool
) -> LinkedFile:
    location = _location(path, target)
    with ranges[0].open() as opened:
        if any(each.stamp != opened.stamp for each in ranges):
            raise FormatError("the file changed while it was being read", path=path)
        if opened.names > 1:
            raise OptionError(
                f"{path}: has several hard links, and ONNX takes no weights from such a file; "
                "link to a copy of it"
            )
        places = [(each.offset, each.length) for each in ranges]
        found = Fingerprint.take(opened, places, most)
        return LinkedFile(location, found, digest_of(opened, "sha1") if full else None)


def _location(path: str, target: Path) -> str:
    """Return where a file is from the folder of a model."""
    real, folder = os.path.realpath(path), os.path.realpath(target.parent)
    if is_staged(real):
        raise OptionError(
            f"{target}: cannot refer to the weights in {os.path.basename(path)}, which was fetched "
            "or unpacked for this run alone; have it in a folder of yours first"
        )
    inside = os.path.join(folder, "")
    if not real.startswith(inside):
        raise OptionError(
            f"{target}: cannot refer to the weights in {path}, as ONNX takes none from outside of "
            f"the model's folder; write it to {os.path.dirname(real)} or a folder above"
        )
    location = real[len(inside) :].replace(os.sep, "/")
    fault = location_fault(location)
    try:
        location.encode()
    except UnicodeEncodeError:
        fault = "is not UTF-8"
    if os.sep == "/" and "\\" in location:
        fault = "contains a path separator"
    if fault is not None:
        raise OptionError(f"{target}: cannot refer to the weights in {path}: its name {fault}")
    return location


def note_links(
    proto: onnx.ModelProto, files: Iterable[LinkedFile], key: str = LINKED_PROPERTY
) -> None:
    """Note in a model what the files are like that its weights stay in.

    Args:
        proto: The model.
        files: The files.
        key: Of the metadata.

    Raises:
        OptionError: There are too many.
    """
    rows = [
        {
            "location": each.location,
            "bytes": each.fingerprint.size,
            "ranges": each.fingerprint.ranges,
            "fingerprint": each.fingerprint.digest,
        }
        for each in files
    ]
    value = json.dumps(rows, separators=(",", ":"))
    if len(value) > _MOST_TEXT:
        raise OptionError(f"link_weights: {len(rows):,} files are more than a model can tell of")
    proto.metadata_props.add(key=key, value=value)


def drop_links(proto: onnx.ModelProto) -> None:
    """Remove from a model what it notes of such files."""
    noted = (LINKED_PROPERTY, DATA_PROPERTY)
    kept = [entry for entry in proto.metadata_props if entry.key not in noted]
    if len(kept) != len(proto.metadata_props):
        del proto.metadata_props[:]
        proto.metadata_props.extend(kept)


def read_links(
    proto: onnx.ModelProto, path: str | None, key: str = LINKED_PROPERTY
) -> tuple[LinkedFile, ...]:
    """Return what a model notes of files that its weights stay in.

    Args:
        proto: The model.
        path: Its file, for messages.
        key: Of the metadata.

    Raises:
        FormatError: It is malformed.
    """
    found: dict[str, LinkedFile] = {}
    texts = [entry.value for entry in proto.metadata_props if entry.key == key]
    for text in texts:
        for each in _read_files(text) if len(texts) == 1 else [None]:
            if each is None or each.location in found:
                raise FormatError(
                    f"metadata {key}: expected files with location, bytes, ranges and "
                    f"fingerprint, found {text[:100]!r}",
                    path=path,
                )
            found[each.location] = each
    return tuple(found.values())


def _read_files(text: str) -> list[LinkedFile | None]:
    """Return what a model notes of its files, None for what is malformed."""
    try:
        rows = parse_json(text) if len(text) <= _MOST_TEXT else None
    except ValueError:
        rows = None
    if not isinstance(rows, list):
        return [None]
    files = [_read_file(row) for row in rows]
    ranges = sum(len(each.fingerprint.ranges) for each in files if each is not None)
    return files if ranges <= MOST_RANGES + len(files) else [None]


def _read_file(row: AnyValue) -> LinkedFile | None:
    match row:
        case {"location": str(location), "bytes": int(size), "ranges": list(rows),
              "fingerprint": str(digest)}:  # fmt: skip
            ranges = [(each[0], each[1]) for each in rows if _is_range(each, size)]
        case _:
            return None
    in_order = all(one < other for one, other in itertools.pairwise(ranges))
    if type(size) is not int or size > _MOST_BYTES or len(digest) != 2 * DIGEST_BYTES:
        return None
    if len(ranges) != len(rows) or not in_order:
        return None
    return LinkedFile(location, Fingerprint(size, tuple(ranges), digest))


def _is_range(found: AnyValue, size: int) -> bool:
    match found:
        case [int(start), int(length)] if type(start) is type(length) is int:
            return start >= 0 and length >= 0 and start + length <= size
    return False
