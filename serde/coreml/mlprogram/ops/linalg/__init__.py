"""Linear algebra: products, transforms, sparse matrices."""

from serde.coreml.mlprogram.ops.linalg import fourier, product, sparse  # noqa: F401
