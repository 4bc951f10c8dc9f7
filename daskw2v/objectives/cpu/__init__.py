"""The parts that kernels on the CPU are composed of."""
