"""Why integers are not scaled."""

from __future__ import annotations

from serde.core.lossy import QUANTISED_AS_FLOATS
from serde.coreml.mlprogram.ops.table import OPS

__all__: list[str] = []

OPS.refuses_calls(
    "fixed_point_multiply",
    "fixed_point_multiply_per_axis",
    "qnn.batch_matmul",
    "qnn.conv2d",
    "qnn.conv2d_transpose",
    "qnn.dense",
    "qnn.requantize",
    reason="sums and rescaled integers take 64 bits, which Core ML has not",
    hint=QUANTISED_AS_FLOATS.hint,
)
