"""What Relax cannot say of Relay's operators: their samples, by a part of the reason that is told.

``python tests/support/relax_samples.py`` prints what belongs here: each sample is refused for its
reason and no other, so that closing a gap forces its name out.
"""

from __future__ import annotations

REFUSED: dict[str, tuple[str, ...]] = {
    "Relax has no sequences of tensors": (
        "serde.loop-5",
        "serde.sequence_at-0",
        "serde.sequence_at-1",
        "serde.sequence_at-2",
        "serde.sequence_concat-0",
        "serde.sequence_concat-1",
        "serde.sequence_concat-2",
        "serde.sequence_concat-3",
        "serde.sequence_construct-0",
        "serde.sequence_construct-1",
        "serde.sequence_empty-0",
        "serde.sequence_empty-1",
        "serde.sequence_erase-0",
        "serde.sequence_erase-1",
        "serde.sequence_erase-2",
        "serde.sequence_insert-0",
        "serde.sequence_insert-1",
        "serde.sequence_insert-2",
        "serde.sequence_length-0",
        "serde.sequence_length-1",
        "serde.sequence_split-0",
        "serde.sequence_split-1",
        "serde.sequence_split-2",
        "serde.sequence_split-3",
        "serde.sequence_split-4",
        "serde.sequence_split-5",
    ),
    "kept whole for a function of the user's, and there is none": (
        "serde.foreign-0",
        "serde.foreign-1",
    ),
    "TVM computes no tensors of": ("serde.dequantize_linear-6", "serde.quantize_linear-7"),
    "TVM does not round to float8": ("serde.quantize_linear-5", "serde.quantize_linear-6"),
    "no exporter": ("serde.svd-0", "serde.svd-1", "serde.svd-2"),
}
