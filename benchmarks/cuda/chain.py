"""Cycles that one warp alone takes for machine code, from what the assembler wrote into each instruction.

An instruction tells the hardware when the next one may go (Jia et al. 2018, "Dissecting the NVIDIA Volta GPU
Architecture via Microbenchmarking", section 2.1): cycles to wait after it, which cover what takes a known time; a
barrier that is raised until its result is there, or until its operands were read; and the barriers that it waits for
itself. So only the time of what takes an unknown one is added here.

The code is gone through once in its order. What an instruction takes, its own cycles and those that it waits for
others, is multiplied by how often it was carried out. Left out: a turn of a loop that waits for the turn before, taken
branches, instructions that are not in their cache, and warps in each other's way.
"""

from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.cuda.sass import Instruction

# Cycles until a result is there, by how an instruction begins. Luo et al. 2024 (arXiv:2402.13499) and Abdelkhalik et
# al. 2022 (arXiv:2208.11174) of Hopper and Ampere, Jia et al. 2018 of the others; they differ by a few cycles.
_ROW = "LDG.E.128", "LDG.E.64", "ATOM"  # from L2 or memory: rows, which bypass L1, and draws, whose table is larger
_CYCLES = {
    "LDG": 34, "LDS.128": 33, "LDS": 29, "SHFL": 23, "MUFU": 24, "LDC": 32, "S2": 30, "R2UR": 12, "D": 18, "F2": 22,
    "I2F": 22, "": 14,
}  # fmt: skip
_OPERANDS = 14  # cycles until operands are read that lie in registers
_BARRIERS = 6


class Control(NamedTuple):
    """What an instruction tells the hardware.

    Parameters
    ----------
    stall
        Cycles until the next one.
    written, read
        Barriers that are raised until its result is there, and its operands are read; none from 6 on.
    waits
        Bits of the barriers that it waits for.
    """

    stall: int
    written: int
    read: int
    waits: int

    @classmethod
    def of(cls, bits: int) -> "Control":
        """Return the meaning of the bits 105 to 121 of an instruction."""
        return cls(bits & 15, bits >> 5 & 7, bits >> 8 & 7, bits >> 11 & 63)


class _Raised(NamedTuple):
    """When a barrier is down again, and how often what raised it was carried out."""

    until: float
    times: float


def cycles_of(code: Sequence[Instruction], done: Sequence[float], row: float) -> float:
    """Return the cycles of a warp that carried out line n + 1 of the code done[n] times; rows come after `row` cycles.

    A wait for what was carried out less often counts as often as that.
    """
    now, total, raised = 0.0, 0.0, [_Raised(0, 0)] * _BARRIERS
    for instruction in code:
        control, times = Control.of(instruction.control), float(done[instruction.line - 1]) if instruction.line else 0.0
        for barrier in (raised[n] for n in range(_BARRIERS) if control.waits >> n & 1):
            total += min(times, barrier.times) * max(0.0, barrier.until - now)
            now = max(now, barrier.until)
        for number, after in ((control.written, latency(instruction.opcode, row)), (control.read, _OPERANDS)):
            if number < _BARRIERS:
                raised[number] = max(raised[number], _Raised(now + after, times))
        stall = max(1, control.stall)
        now, total = now + stall, total + times * stall
    return total


def latency(opcode: str, row: float) -> float:
    """Return the cycles until the result of an instruction of unknown length is there."""
    if opcode.startswith(_ROW):
        return row
    return _CYCLES[max((head for head in _CYCLES if opcode.startswith(head)), key=len)]
