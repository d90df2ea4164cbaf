"""Why integers are neither summed nor scaled."""

from __future__ import annotations

from serde.core.lossy import QUANTISED_AS_FLOATS
from serde.nnef.ops.table import OPS

__all__: list[str] = []

OPS.refuses_calls(
    "qnn.batch_matmul",
    "qnn.conv2d",
    "qnn.conv2d_transpose",
    "qnn.dense",
    "qnn.requantize",
    reason="NNEF has no arithmetic of integers, which a quantised layer is",
    hint=QUANTISED_AS_FLOATS.hint,
)
