"""What kernels on the CPU are composed of."""
