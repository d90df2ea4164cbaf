"""Linear algebra: products, sparse matrices and Fourier transforms."""

from __future__ import annotations

from serde.relay.op.linalg import determinant, fourier, sparse, spectrum, stacked
from serde.relay.op.linalg.product import exact_operand, product_dtype, to_product_dtype

__all__ = [
    "determinant",
    "exact_operand",
    "fourier",
    "product_dtype",
    "sparse",
    "spectrum",
    "stacked",
    "to_product_dtype",
]
