"""External data: tensors whose bytes lie in a file beside the model.

A location is a path relative to the model and must stay in its directory,
after all symbolic links are followed. Caches keep the files under other names
elsewhere and put symbolic links in the place of both, so the directory of the
file that the model's own link leads to counts as well. Files with several
hard links are refused, as the onnx package does: such a link can bring any
file of the same disk into the directory.

Files that a model's weights were linked to (:mod:`serde.onnx.links`) must be as they were then.
Those that were written with the model are compared too, but other tools may well have changed
them since: what differs is told.
A model that is not yet in its place refers to what is beside that place, too.

Source: ONNX's ExternalData.md, and the comments on ``TensorProto.external_data``.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from serde.core import FileRange, OpenFile, dataclass, replace
from serde.errors import FormatError
from serde.io.contained import location_fault
from serde.io.staging import final_directory

if TYPE_CHECKING:
    import onnx

    from serde.onnx.model import LinkedFile

__all__ = ["ExternalFiles"]

_KEYS = frozenset({"location", "offset", "length", "checksum", "basepath"})
_NUMBER = re.compile(r"[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class _Use:
    """A run of bytes that one tensor takes from a file."""

    start: int
    stop: int
    tensor: str


class ExternalFiles:
    """The files that external data of one model may lie in.

    Args:
        directory: Where locations start from, or what opens them in place of that.
        model: Path of the model, for the directory that its own link leads to.

    Attributes:
        changed: How files differ from those that were written with the model.
    """

    def __init__(
        self, directory: str | Callable[[str], OpenFile] | None, model: str | None = None
    ) -> None:
        self._opener = directory if callable(directory) else None
        self._directories = [directory] if isinstance(directory, str) else []
        place = None if model is None else final_directory(model)
        if place is not None:
            self._directories.append(place)
        self._model = model
        self._roots = list(map(os.path.realpath, self._directories))
        if model is not None:
            self._roots.append(os.path.dirname(os.path.realpath(model)))
        self.changed: list[str] = []
        self._links: dict[str, LinkedFile] = {}
        self._data: dict[str, LinkedFile] = {}
        self._checksums: dict[str, str] = {}
        self._files: dict[str, FileRange] = {}
        self._uses: dict[str, list[_Use]] = {}

    def expect(self, links: Iterable[LinkedFile], data: Iterable[LinkedFile] = ()) -> None:
        """Compare files with what a model notes of them when they are opened.

        Args:
            links: Files that weights were linked to.
            data: Files that were written with the model; how they differ goes into `changed`.
        """
        self._links = {each.location: each for each in links}
        self._data = {each.location: each for each in data}

    def find(self, tensor: onnx.TensorProto, where: str, nbytes: int) -> FileRange:
        """Return the bytes of `tensor`, of which its type needs `nbytes`.

        Raises:
            FormatError: They are not described as they should be, or not there.
        """
        entries = self._entries(tensor, where)
        location = entries.get("location", "")
        fault = location_fault(location)
        if fault is not None:
            raise self._error(where, f"external location {location!r} {fault}")
        offset = self._number(entries, "offset", 0, where)
        length = self._number(entries, "length", nbytes, where)
        if length != nbytes:
            raise self._error(where, f"expected {nbytes} bytes, external data has {length}")
        whole = self._files.get(location)
        if whole is None:
            whole = self._files[location] = self._open(location, where)
        if "checksum" in entries:
            self._checksums[location] = entries["checksum"]
        if offset + length > whole.length:
            raise self._error(
                where,
                f"external data claims bytes {offset} to {offset + length} of {location!r}, "
                f"which has {whole.length}",
            )
        if length:
            use = _Use(whole.offset + offset, whole.offset + offset + length, where)
            self._uses.setdefault(whole.path, []).append(use)
        return replace(whole, offset=whole.offset + offset, length=length)

    def check_overlaps(self) -> None:
        """Refuse tensors that share some bytes; sharing all of them is meant.

        Raises:
            FormatError: Two tensors overlap.
        """
        for path, uses in self._uses.items():
            uses.sort(key=lambda use: (use.start, use.stop))
            for one, other in itertools.pairwise(uses):
                same = (one.start, one.stop) == (other.start, other.stop)
                if other.start < one.stop and not same:
                    raise FormatError(
                        f"{one.tensor} and {other.tensor} overlap", path=path, offset=other.start
                    )

    def _entries(self, tensor: onnx.TensorProto, where: str) -> dict[str, str]:
        entries: dict[str, str] = {}
        for entry in tensor.external_data:
            if entry.key not in _KEYS or entry.key in entries:
                raise self._error(
                    where, f"external data has the key {entry.key[:100]!r}, unknown or repeated"
                )
            entries[entry.key] = entry.value
        return entries

    def _number(self, entries: dict[str, str], key: str, default: int, where: str) -> int:
        text = entries.get(key)
        if text is None:
            return default
        if not _NUMBER.fullmatch(text):
            raise self._error(
                where, f"external {key}: expected a number of bytes, found {text[:100]!r}"
            )
        return int(text)

    def check_checksums(self) -> None:
        """Read the files through whose SHA-1 the model tells.

        Raises:
            FormatError: One has another, or cannot be read.
        """
        from serde.io.fingerprint import digest_of

        for location, wanted in self._checksums.items():
            with self._files[location].open() as opened:
                found = digest_of(opened, "sha1")
            if found.lower() != wanted.lower():
                raise FormatError(
                    f"{location!r}, which holds its weights, has changed: expected the checksum "
                    f"{wanted[:100]}, found {found}",
                    path=self._model,
                )

    def _open(self, location: str, where: str) -> FileRange:
        """Return the whole of the file at `location`, once it is known to be contained."""
        if not self._directories and self._opener is None:
            raise self._error(
                where, f"its data lies in {location!r}, and no directory for that was given"
            )
        with self._opened(location, where) as opened:
            if opened.names > 1:
                raise self._error(
                    where, f"external location {location!r} has several hard links; use a copy"
                )
            if location in self._links:
                fault = self._links[location].fingerprint.fault(opened)
                if fault is not None:
                    raise self._link_error(location, f"has changed since: {fault}")
            if location in self._data:
                fault = self._data[location].fingerprint.fault(opened)
                if fault is not None:
                    self.changed.append(
                        f"{location!r} is not the file that was written with the model: {fault}"
                    )
            return opened.range(0, opened.size)

    def _resolve(self, location: str) -> str:
        """Return where a file is: beside the model, or beside the place that it will have."""
        paths = [os.path.join(directory, location) for directory in self._directories]
        return os.path.realpath(next(filter(os.path.lexists, paths), paths[0]))

    def _opened(self, location: str, where: str) -> OpenFile:
        if self._opener is not None:
            return self._opener(location)
        resolved = self._resolve(location)
        if not any(os.path.commonpath([root, resolved]) == root for root in self._roots):
            raise self._error(
                where, f"external location {location!r} leaves the directory of the model"
            )
        try:
            return OpenFile.open(resolved)
        except FormatError as error:
            if location not in self._links:
                raise
            reason = str(error).removeprefix(f"{resolved}: ")
            raise self._link_error(location, reason) from error

    def _link_error(self, location: str, reason: str) -> FormatError:
        return FormatError(
            f"its weights were linked to {location!r}, which {reason}; convert the model again, or "
            "bring that file back",
            path=self._model,
        )

    def _error(self, where: str, message: str) -> FormatError:
        return FormatError(f"{where}: {message}", path=self._model)
