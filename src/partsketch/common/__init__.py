"""What knows nothing of rows: errors, files written whole, units, memory; `linalg/`: dense kernels and the solver."""
