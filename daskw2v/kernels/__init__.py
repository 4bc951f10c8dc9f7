"""What all kernels are made with: the only door to Numba."""
