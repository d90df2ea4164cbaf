"""Matrix products, sparse matrices, determinants, and Fourier transforms."""
