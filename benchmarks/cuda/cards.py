"""What NVIDIA publishes of its GPUs, and how fast their caches answer."""

from typing import NamedTuple


class Card(NamedTuple):
    """A GPU.

    Parameters
    ----------
    capability
        Compute capability, which kernels are compiled for.
    multiprocessors, clock
        Their number, and their highest clock in Hz.
    shared
        Bytes of shared memory of a multiprocessor.
    l2, l2_a_cycle
        Bytes that the L2 cache holds, and that it passes on in a cycle.
    dram
        Bytes a second from and to memory.
    """

    capability: tuple[int, int]
    multiprocessors: int
    clock: float
    shared: int
    l2: int
    l2_a_cycle: int
    dram: float

    @property
    def issued(self) -> float:
        """Instructions of warps that start in a second: four a cycle and multiprocessor."""
        return self.multiprocessors * 4 * self.clock

    @property
    def l2_rate(self) -> float:
        """Bytes that the L2 cache passes on in a second."""
        return self.l2_a_cycle * self.clock

    @property
    def slices(self) -> int:
        """Parts of the L2 cache, each with lines of its own."""
        return self.l2_a_cycle // SLICE


SLICE = 64  # bytes that a slice of the L2 cache passes on in a cycle (NVIDIA A100 whitepaper: 80 slices, 5,120 bytes)
L2_CYCLES, DRAM_CYCLES = 270, 600  # until a row is there: Luo et al. 2024 (arXiv:2402.13499), tables 4 and 5, rounded

# Multiprocessors, L2 and DRAM: whitepapers and data sheets of the SXM forms (A100 of 80 GB). Clocks: data sheets'
# FP32 rates over 256 operations a cycle and multiprocessor. Shared memory: CUDA C++ programming guide, "compute
# capabilities". Bytes a cycle of H100 and H200 are assumed to be those of the A100, as they have as many memory
# controllers; of the B200, twice as many, as it has two such dies.
CARDS = {
    "A100": Card((8, 0), 108, 1.41e9, 164 << 10, 40 << 20, 5120, 2.039e12),
    "H100": Card((9, 0), 132, 1.98e9, 228 << 10, 50 << 20, 5120, 3.35e12),
    "H200": Card((9, 0), 132, 1.98e9, 228 << 10, 50 << 20, 5120, 4.8e12),
    "B200": Card((10, 0), 148, 1.965e9, 228 << 10, 126 << 20, 10240, 7.7e12),
}
