"""Why bits are not touched."""

from __future__ import annotations

from serde.nnef.ops.table import OPS

__all__: list[str] = []

OPS.refuses_calls(
    "fixed_point_multiply",
    "fixed_point_multiply_per_axis",
    "left_shift",
    "reinterpret",
    "right_shift",
    "unravel_index",
    reason="NNEF has no arithmetic of integers and their bits",
)
