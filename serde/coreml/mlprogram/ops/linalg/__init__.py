"""Linear algebra: products, transforms, sparse matrices."""
