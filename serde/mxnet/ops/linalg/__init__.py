"""Matrix products, factors and systems, sparse matrices and Fourier transforms."""

from __future__ import annotations

from serde.mxnet.ops.linalg import blocks, decomposition, diagonal, fourier, product, sparse
from serde.mxnet.ops.linalg.product import require_dtype

__all__ = [
    "blocks",
    "decomposition",
    "diagonal",
    "fourier",
    "product",
    "require_dtype",
    "sparse",
]
