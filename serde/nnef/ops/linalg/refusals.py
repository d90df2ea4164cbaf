"""Why matrices are neither decomposed nor sparse."""

from __future__ import annotations

from serde.nnef.ops.table import refuse_calls

__all__: list[str] = []

refuse_calls(
    "serde.eig",
    "serde.eigh",
    "serde.svd",
    reason="NNEF has no fragment for eigenvalues and singular values",
)
