"""Indices: elements looked up, placed, ordered and cut."""

from serde.coreml.ops.index import (  # noqa: F401
    gather,
    scan,
    scatter,
    select,
    sequence,
    slicing,
    sorting,
)
