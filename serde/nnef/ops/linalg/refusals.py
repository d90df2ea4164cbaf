"""Why matrices are not decomposed."""

from __future__ import annotations

from serde.nnef.ops.table import OPS

__all__: list[str] = []


OPS.refuses_calls(
    "serde.eig",
    "serde.eigh",
    "serde.svd",
    reason="NNEF has no fragment for eigenvalues and singular values",
)
