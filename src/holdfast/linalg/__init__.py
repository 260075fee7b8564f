"""Linear algebra in kernels: factors, updates of them, and sums that can be trusted."""
