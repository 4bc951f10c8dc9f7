"""The most float32 multiply-adds that threads of this machine do: what kernels are measured against.

Chains of fused multiply-adds in registers, as many of them as hide the instruction's latency, nothing loaded or stored.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from daskw2v.kernels import simd
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.simd import LANES

_CHAINS = 12  # with the two operands, they fit the 16 registers of AVX2
_STEPS = 4  # of each chain in one turn of the loop, which then costs nothing
_TURNS = 1 << 22
_REPEATS = 5


@intrinsic
def _chains(typingctx: Any, factor: Any, addend: Any, turns: Any) -> Any:
    """Do x = x * factor + addend in all lanes of all chains, and return the sum of all x."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, b = (simd.splat(builder, scalar, LANES) for scalar in args[:2])
        chains = [cgutils.alloca_once_value(builder, simd.constant(float(i), LANES)) for i in range(_CHAINS)]
        with cgutils.for_range(builder, args[2]):
            for chain in chains * _STEPS:
                builder.store(simd.fma(builder, builder.load(chain), a, b), chain)
        total = simd.constant(0.0, LANES)
        for chain in chains:
            total = builder.fadd(total, builder.load(chain))
        return builder.extract_element(simd.sums(builder, [total]), ir.IntType(32)(0))

    return types.float32(types.float32, types.float32, types.intp), codegen


@kernel
def _run(factor: Any, addend: Any, turns: Any) -> Any:
    return _chains(factor, addend, turns)


def measure_peak(threads: int) -> float:
    """Return the peak of so many threads together in GFLOP/s: the best of a few runs of some 50 ms."""
    _run(0.5, 1.0, 1)  # compiles
    operations = 2 * _CHAINS * _STEPS * LANES * _TURNS * threads
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_REPEATS):
            began = time.perf_counter()
            sums = list(pool.map(lambda _: _run(0.5, 1.0, _TURNS), range(threads)))
            best = max(best, operations / (time.perf_counter() - began) / 1e9)
            expected = 2.0 * _CHAINS * LANES  # each x goes to 1 / (1 - 0.5)
            if sums != [expected] * threads:
                raise RuntimeError(f"The chains sum up to {sums}, not to {expected}: they were not all computed.")
    return best
