"""The weights of a ``.pt2`` archive: what its configuration says of them, and where they are."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any as AnyValue, Final

import numpy as np

from serde.core.allocation import allow_growth
from serde.core.limits import MAX_RANK, MAX_WEIGHT_GROWTH
from serde.core.weights import ArrayWeight, FileRange, Weight, numpy_dtype
from serde.errors import FormatError
from serde.io.contained import location_fault
from serde.io.zips import Archive
from serde.torch.pt2.document import Document, read_document
from serde.torch.pt2.pickled import read_tensors
from serde.torch.pt2.versions import DTYPES
from serde.torch.strided import span, view_of

__all__ = ["Payloads"]

_WEIGHTS: Final = "data/weights/"
_CONSTANTS: Final = "data/constants/"

_OLDER: Final = {"weights": "serialized_state_dict.pt", "constants": "serialized_constants.pt"}
"""Members that hold tensors in archives of PyTorch 2.7 and older."""

_LARGEST: Final = 2**62
"""No storage has more elements."""


class Payloads:
    """The tensors of a program by name; each is looked at when it is asked for.

    Args:
        archive: The archive.
        program: Name of the program in it; "" in one that PyTorch wrote before 2.8.

    Raises:
        FormatError: Their configuration is missing or malformed.
    """

    def __init__(self, archive: Archive, program: str) -> None:
        self._archive = archive
        self._program = program
        self._pickled: dict[str, Archive] = {}
        self._stored = self._config(_WEIGHTS, "weights")
        self._constant = self._config(_CONSTANTS, "constants")
        self._ranges: dict[str, FileRange] = {}

    def _config(self, folder: str, kind: str) -> Mapping[str, Document]:
        """Return the entries of one of the two configurations."""
        pickled = f"{folder}{self._program}.pt" if self._program else _OLDER[kind]
        member = self._archive.members.get(pickled)
        if member is None:
            name = f"{folder}{self._program}_{kind}_config.json"
            return dict(read_document(self._archive, name).field("config").entries())
        if not member.file_size:
            return {}
        self._pickled[folder] = self._archive.nested(pickled)
        check_byte_order(self._pickled[folder])
        return read_tensors(self._pickled[folder])

    def weight(self, name: str, *, constant: bool) -> Weight:
        """Return a parameter, buffer or constant tensor.

        Args:
            name: Its name in the state dictionary.
            constant: Whether it is among the constants, as what is not persistent.

        Raises:
            FormatError: It is missing, or its configuration does not fit its bytes.
        """
        found = (self._constant if constant else self._stored).get(name)
        if found is None:
            raise self._archive.error(f"the tensor {name[:200]!r} has no entry among the weights")
        if found.field("use_pickle").boolean():
            raise self._archive.error(f"the tensor {name[:200]!r} is a pickle, which is not read")
        return self._tensor(found, _CONSTANTS if constant else _WEIGHTS)

    def _tensor(self, entry: Document, folder: str) -> Weight:
        """Return a tensor that lies in its storage, and draw for one that repeats it."""
        meta = entry.field("tensor_meta")
        dtype = DTYPES.get(meta.field("dtype").integer(), "complex32")
        if dtype == "complex32":
            raise meta.fault(f"a weight of dtype {meta.field('dtype').value}, which is not read")
        shape = self._lengths(meta.field("sizes"))
        strides = self._lengths(meta.field("strides"))
        offset = _length(meta.field("storage_offset"))
        layout = meta.field("layout").integer()
        if layout != 7:
            raise meta.fault("a sparse weight, which is not read")
        if len(shape) != len(strides):
            raise meta.fault(f"{len(shape)} lengths and {len(strides)} strides")
        if 0 in shape:
            try:
                return ArrayWeight(np.empty(shape, numpy_dtype(dtype)))
            except ValueError:
                raise meta.fault(f"the lengths {list(shape)} are too large") from None
        storage, width = self._storage(entry, folder), numpy_dtype(dtype).itemsize
        needed = (offset + span(shape, strides)) * width
        if storage.length == 0:
            raise meta.fault("no values: the program was exported without its weights")
        if needed > storage.length:
            raise meta.fault(
                f"sizes {list(shape)}, strides {list(strides)} and offset {offset} need "
                f"{needed} bytes, found {storage.length}"
            )
        what = f"a view with the lengths {list(shape)}"
        allow_growth(storage.length, math.prod(shape) * width, MAX_WEIGHT_GROWTH, what)
        return view_of(storage, shape, strides, offset, dtype)

    def _lengths(self, document: Document) -> tuple[int, ...]:
        found = document.items()
        if len(found) > MAX_RANK:
            raise document.fault(f"{len(found)} axes, at most {MAX_RANK}")
        return tuple(_length(each) for each in found)

    def _storage(self, entry: Document, folder: str) -> FileRange:
        path = entry.field("path_name").text()
        fault = location_fault(path, on_disk=False)
        if fault is not None:
            raise entry.fault(f"the path {path[:200]!r} {fault}")
        name = folder + path
        if name not in self._ranges:
            inner = self._pickled.get(folder)
            self._ranges[name] = inner.range(path) if inner else self._archive.range(name)
        return self._ranges[name]


def _length(document: Document) -> int:
    """Return a length, stride or offset of a stored tensor, which is always known."""
    kind, value = document.choice()
    if kind != "as_int" or not 0 <= value.integer() < _LARGEST:
        raise document.fault(f"expected a length, found {reprlib.repr(document.value)[:100]}")
    return value.integer()


def check_byte_order(archive: Archive) -> None:
    """Raise if the weights of an archive were written on a machine of the other byte order."""
    if "byteorder" in archive.members and archive.read("byteorder", 16) != b"little":
        found: AnyValue = archive.read("byteorder", 16).decode("ascii", "replace")
        raise FormatError(f"byte order {found!r}, only 'little' is read", path=archive.path)
