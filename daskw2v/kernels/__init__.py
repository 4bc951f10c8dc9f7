"""The parts that all kernels are made of: Numba's decorators and their cache, SIMD, random numbers, memory."""
