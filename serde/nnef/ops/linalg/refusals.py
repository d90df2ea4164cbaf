"""Why matrices are neither decomposed nor sparse."""

from __future__ import annotations

from serde.nnef.ops.table import OPS

__all__: list[str] = []

OPS.refuses_calls(
    "serde.eig",
    "serde.eigh",
    "serde.svd",
    reason="NNEF has no fragment for eigenvalues and singular values",
)
OPS.refuses_calls(
    "nn.internal.sparse_dense_padded",
    "nn.sparse_add",
    "nn.sparse_conv2d",
    "nn.sparse_dense",
    "nn.sparse_transpose",
    "sparse_reshape",
    reason="NNEF has no sparse matrices",
)
