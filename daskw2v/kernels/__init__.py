"""Code that all kernels share: Numba's decorators and the cache of kernels, SIMD, random numbers, memory."""
