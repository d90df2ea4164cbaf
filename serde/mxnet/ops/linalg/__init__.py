"""Matrix products, factors and systems, sparse matrices and Fourier transforms."""
