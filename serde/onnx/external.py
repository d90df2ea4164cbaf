"""External data: tensors whose bytes lie in a file beside the model.

A location is a path relative to the model and must stay in its directory,
after all symbolic links are followed. Caches keep the files under other names
elsewhere and put symbolic links in the place of both, so the directory of the
file that the model's own link leads to counts as well. Files with several
hard links are refused, as the onnx package does: such a link can bring any
file of the same disk into the directory.

Source: ONNX's ExternalData.md, and the comments on ``TensorProto.external_data``.
"""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from serde.errors import FormatError
from serde.io.contained import location_fault
from serde.weights import FileRange, OpenFile

if TYPE_CHECKING:
    import onnx

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
        directory: Where locations start from.
        model: Path of the model, for the directory that its own link leads to.
    """

    def __init__(self, directory: str | None, model: str | None = None) -> None:
        self._directory = directory
        self._model = model
        self._roots = [os.path.realpath(directory)] if directory is not None else []
        if model is not None:
            self._roots.append(os.path.dirname(os.path.realpath(model)))
        self._files: dict[str, FileRange] = {}
        self._uses: dict[str, list[_Use]] = {}

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
        if offset + length > whole.length:
            raise self._error(
                where,
                f"external data claims bytes {offset} to {offset + length} of {location!r}, "
                f"which has {whole.length}",
            )
        if length:
            use = _Use(offset, offset + length, where)
            self._uses.setdefault(whole.path, []).append(use)
        return replace(whole, offset=offset, length=length)

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

    def _open(self, location: str, where: str) -> FileRange:
        """Return the whole of the file at `location`, once it is known to be contained."""
        if self._directory is None:
            raise self._error(
                where, f"its data lies in {location!r}, and no directory for that was given"
            )
        resolved = os.path.realpath(os.path.join(self._directory, location))
        if not any(os.path.commonpath([root, resolved]) == root for root in self._roots):
            raise self._error(
                where, f"external location {location!r} leaves the directory of the model"
            )
        with OpenFile.open(resolved) as opened:
            if os.fstat(opened.fd).st_nlink > 1:
                raise self._error(
                    where, f"external location {location!r} has several hard links; use a copy"
                )
            return opened.range(0, opened.size)

    def _error(self, where: str, message: str) -> FormatError:
        return FormatError(f"{where}: {message}", path=self._model)
