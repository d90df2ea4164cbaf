"""Linear algebra: products, factors, systems, sparse matrices and Fourier transforms."""

from __future__ import annotations

from serde.relay.op.linalg import (
    elimination,
    fourier,
    sparse,
    spectral,
    spectrum,
    stacked,
    triangular,
)
from serde.relay.op.linalg.product import exact_operand, product_dtype, to_product_dtype

__all__ = [
    "elimination",
    "exact_operand",
    "fourier",
    "product_dtype",
    "sparse",
    "spectral",
    "spectrum",
    "stacked",
    "to_product_dtype",
    "triangular",
]
