"""Dense layers, matrix products, sparse matrices and Fourier transforms."""

from __future__ import annotations

from serde.mxnet.ops.linalg import fourier, product, sparse
from serde.mxnet.ops.linalg.product import require_dtype

__all__ = ["fourier", "product", "require_dtype", "sparse"]
