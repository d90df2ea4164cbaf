"""Linear algebra: products, factors, systems, sparse matrices and Fourier transforms."""
