"""Dense linear algebra: kernels, LAPACK, lanes of compiled code, and the rank-revealing solver."""
