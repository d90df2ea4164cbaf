"""What is known of the formats of ``torch.export.save``: versions, layouts of archives, codes.

Source: ``torch/_export/serde/schema.py`` and ``torch/csrc/export/pt2_archive_constants.h``.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ARCHIVE_VERSION", "DTYPES", "LAYOUTS", "MEMORY_FORMATS", "NEWEST", "NEWEST_MINOR",
    "SCHEMA", "release_of",
]  # fmt: skip

SCHEMA: Final = 8
"""The major version of the schema that is read; within it, versions add fields and kinds."""

NEWEST_MINOR: Final = 20
NEWEST: Final = f"{SCHEMA}.{NEWEST_MINOR} (PyTorch 2.13 and 2.14)"
"""The newest version whose additions are all known."""

ARCHIVE_VERSION: Final = "0"
"""The version of the layout of members."""

_RELEASES: Final = {1: "2.1", 2: "2.2", 3: "2.2", 4: "2.3", 5: "2.4", 6: "2.5", 7: "2.5"}
"""Releases of PyTorch by the major version of the schema that they wrote."""

DTYPES: Final = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    9: "complex32",
    10: "complex64",
    11: "complex128",
    12: "bool",
    13: "bfloat16",
    28: "uint16",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu",
    34: "uint32",
    35: "uint64",
}

LAYOUTS: Final = {
    1: "sparse_coo",
    2: "sparse_csr",
    3: "sparse_csc",
    4: "sparse_bsr",
    5: "sparse_bsc",
    6: "_mkldnn",
    7: "strided",
}

MEMORY_FORMATS: Final = {
    1: "contiguous_format",
    2: "channels_last",
    3: "channels_last_3d",
    4: "preserve_format",
}


def release_of(major: int) -> str:
    """Return which release wrote a version of the schema, as a clause of a message."""
    known = _RELEASES.get(major)
    return "" if known is None else f", which PyTorch {known} wrote"
