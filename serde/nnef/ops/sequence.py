"""Why there are no sequences."""

from __future__ import annotations

from serde.nnef.ops.table import OPS

OPS.refuses_calls(
    "serde.sequence_at", "serde.sequence_concat", "serde.sequence_construct",
    "serde.sequence_empty", "serde.sequence_erase", "serde.sequence_insert",
    "serde.sequence_length", "serde.sequence_split", reason="NNEF has no sequences of tensors",
)  # fmt: skip
