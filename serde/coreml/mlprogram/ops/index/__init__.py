"""Indices: elements looked up, placed, ordered and cut."""

from serde.coreml.mlprogram.ops.index import (  # noqa: F401
    gather,
    scan,
    scatter,
    select,
    sequence,
    slicing,
    sorting,
)
