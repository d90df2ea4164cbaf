"""Files of safetensors: weights as ranges of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from serde.core import MAX_NESTING, MAX_RANK, FileWeight, OpenFile
from serde.core.parsing import nesting_depth, parse_json
from serde.errors import FormatError
from serde.torch.pt2.document import Document

__all__ = ["DTYPES", "read_document", "read_safetensors"]

DTYPES: Final = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16", "int32": "I32",
    "uint32": "U32", "int64": "I64", "uint64": "U64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "complex64": "C64",
}  # fmt: skip
"""Dtypes as safetensors calls them: https://huggingface.co/docs/safetensors."""

_MAX_HEADER_BYTES: Final = 100_000_000
"""Longest header, as the library itself has it."""


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, FileWeight]:
    """Return the weights of a file, as ranges of it.

    Raises:
        FormatError: It is malformed, or two of them share bytes.
    """
    with OpenFile.open(path) as file:
        length = int.from_bytes(_bytes(file, 0, 8), "little")
        data = _bytes(file, 8, min(length, _MAX_HEADER_BYTES))
        header = read_document(data, "header", Path(path))
        entries = [each for each in header.entries() if each[0] != "__metadata__"]
        found = {name: _weight(file, each, 8 + length) for name, each in entries}
    end, before = 0, ""
    for name, weight in sorted(found.items(), key=lambda pair: pair[1].source.offset):
        if weight.source.offset < end and weight.nbytes:
            raise FormatError(f"{name[:200]} overlaps {before[:200]}", path=path)
        end, before = max(end, weight.source.offset + weight.nbytes), name
    return found


def read_document(data: bytes, name: str, path: Path) -> Document:
    """Return JSON of a file.

    Args:
        data: The text.
        name: What messages call it.
        path: The file, or the folder that it is in.

    Raises:
        FormatError: It is none, or nested too deeply.
    """
    try:
        if nesting_depth(data or b" ") <= MAX_NESTING:
            return Document(parse_json(data), name, os.fspath(path))
    except ValueError as error:
        raise FormatError(f"{name}: expected JSON: {error}", path=path) from None
    raise FormatError(f"{name}: expected at most {MAX_NESTING} levels, found more", path=path)


def _weight(file: OpenFile, entry: Document, start: int) -> FileWeight:
    code = entry.field("dtype").text()
    dtype = next((x for x, y in DTYPES.items() if y == code and y != "C64"), None)
    shape = tuple(each.integer() for each in entry.field("shape").items())
    ends = [each.integer() for each in entry.field("data_offsets").items()]
    if dtype is None or len(ends) != 2 or len(shape) > MAX_RANK:
        raise entry.fault("expected a known dtype, a shape and two offsets, found others")
    if any(not 0 <= x < 2**48 for x in (*shape, *ends)):
        raise entry.fault("expected lengths and offsets of a file, found others")
    return FileWeight(file.range(start + ends[0], ends[1] - ends[0]), shape, dtype)


def _bytes(file: OpenFile, offset: int, length: int) -> bytes:
    found = bytearray(file.range(offset, length).length)
    file.read_into(found, offset)
    return bytes(found)
