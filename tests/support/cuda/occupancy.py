"""How many warps a multiprocessor has room for, by the limits of its generation, where no driver can be asked.

The limits are those of NVIDIA's CUDA C++ Programming Guide, "Compute Capabilities", table of technical specifications;
that registers are given to a warp in units of 256, and how shared memory is, those of its occupancy calculator.
"""

from typing import NamedTuple

_LANES = 32
_REGISTERS, _UNIT = 64 << 10, 256  # of a multiprocessor of all generations, and what a warp's are rounded up to
_PARTS = 4  # of a multiprocessor: each has a quarter of the registers, and its own warps


class Multiprocessor(NamedTuple):
    """What a multiprocessor has.

    Parameters
    ----------
    blocks, warps
        At most at a time.
    shared, reserved
        Bytes of shared memory, and those that CUDA keeps of each block's.
    granule
        Bytes in which shared memory is given to blocks.
    """

    blocks: int
    warps: int
    shared: int
    reserved: int
    granule: int

    def room(self, registers: int, shared: int, warps: int = 1) -> int:
        """Return how many warps fit at a time.

        Parameters
        ----------
        registers
            Of a lane.
        shared, warps
            Bytes of shared memory, and warps, of a block.
        """
        of_warp = -(-registers * _LANES // _UNIT) * _UNIT
        of_block = -(-(shared + self.reserved) // self.granule) * self.granule
        by_registers = _PARTS * (_REGISTERS // _PARTS // of_warp)
        blocks = min(self.blocks, self.warps // warps, by_registers // warps, self.shared // max(1, of_block))
        return blocks * warps


_KB = 1 << 10
MULTIPROCESSORS = {
    (7, 5): Multiprocessor(16, 32, 64 * _KB, 0, 256),
    (8, 0): Multiprocessor(32, 64, 164 * _KB, _KB, 128),
    (8, 6): Multiprocessor(16, 48, 100 * _KB, _KB, 128),
    (8, 9): Multiprocessor(24, 48, 100 * _KB, _KB, 128),
    (9, 0): Multiprocessor(32, 64, 228 * _KB, _KB, 128),
    (10, 0): Multiprocessor(32, 64, 228 * _KB, _KB, 128),
}
