"""What the lanes of a warp do together, and loads and stores of four floats: what Numba lacks.

Under Numba's simulator, which has no warps, the same names stand for plain functions (`daskw2v.cuda.simulated`).
"""

from collections.abc import Callable
from typing import Any

import numba
from numba import cuda

from daskw2v.cuda import simulated

LANES = 32
EVERYONE = 0xFFFFFFFF  # all lanes of a warp
FLOATS = 4  # that a lane loads or stores at once
SUMS = 8  # that a warp makes at once


def device(function: Callable[..., Any]) -> Any:
    """Compile as part of the kernels that call it."""
    return function if numba.config.ENABLE_CUDASIM else cuda.jit(device=True, fastmath=True)(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first call, with the GPU's approximations of exp, log and square root."""
    return cuda.jit(fastmath=True)(function)


if numba.config.ENABLE_CUDASIM:
    shuffle_xor, sync_warp = simulated.shuffle_xor, simulated.sync_warp
    load4 = load4_constant = simulated.load4
    store4, inverse_root = simulated.store4, simulated.inverse_root
else:
    from llvmlite import ir
    from numba.cuda import libdevice, types
    from numba.cuda.extending import intrinsic

    _float = ir.FloatType()
    _four = ir.VectorType(_float, FLOATS)
    _ALIGNED = 4 * FLOATS  # bytes
    _GLOBAL = 1  # NVVM's address space

    def _place(context: Any, builder: Any, array_type: Any, array: Any, start: Any) -> Any:
        """Return a pointer to four floats of an array in global memory."""
        data = context.make_array(array_type)(context, builder, array).data
        return builder.addrspacecast(builder.gep(data, [start]), _four.as_pointer(_GLOBAL))

    def _loading(constant: bool) -> Any:
        @intrinsic
        def load(typingctx: Any, array: Any, start: Any) -> Any:
            def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                value = builder.load(_place(context, builder, signature.args[0], *args), align=_ALIGNED)
                if constant:
                    value.set_metadata("invariant.load", builder.module.add_metadata([]))
                numbers = (ir.Constant(ir.IntType(32), k) for k in range(FLOATS))
                parts = [builder.extract_element(value, number) for number in numbers]
                return context.make_tuple(builder, signature.return_type, parts)

            return types.UniTuple(types.float32, FLOATS)(array, types.int64), codegen

        return load

    load4, load4_constant = _loading(False), _loading(True)

    @intrinsic
    def store4(typingctx: Any, array: Any, start: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        """Write four floats to array[start:start + 4]."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = ir.Constant(_four, ir.Undefined)
            for k, part in enumerate(args[2:]):
                value = builder.insert_element(value, part, ir.Constant(ir.IntType(32), k))
            builder.store(value, _place(context, builder, signature.args[0], *args[:2]), align=_ALIGNED)
            return context.get_dummy_value()

        return types.void(array, types.int64, *[types.float32] * FLOATS), codegen

    @device
    def inverse_root(x: Any) -> Any:
        """Return 1 / sqrt(x) in one instruction, right but for the last two bits or so."""
        return libdevice.rsqrtf(x)

    @device
    def shuffle_xor(value: Any, mask: Any) -> Any:
        """Return the value of the lane whose number differs in the bits of `mask`."""
        return cuda.shfl_xor_sync(EVERYONE, value, mask)

    @device
    def sync_warp() -> None:
        """Wait for all lanes of the warp: what they wrote to shared memory is then seen."""
        cuda.syncwarp(EVERYONE)


@device
def _fold(lane: Any, a: Any, b: Any, mask: Any) -> Any:
    """Add two lanes' values: without the bit of `mask` a lane gets the sum of both `a`, with it that of both `b`."""
    upper = (lane & mask) != 0
    kept, given = (b, a) if upper else (a, b)
    return kept + shuffle_xor(given, mask)


@device
def sum_of_lanes(value: Any) -> Any:
    """Return the sum of all lanes' values, to each of them."""
    for mask in (16, 8, 4, 2, 1):
        value += shuffle_xor(value, mask)
    return value


@device
def sums_of_lanes(lane: Any, values: Any) -> Any:
    """Return, to lane l, the sum of all lanes' values[l // 4]: SUMS sums by nine shuffles, not five each."""
    a, b = _fold(lane, values[0], values[4], 16), _fold(lane, values[1], values[5], 16)
    c, d = _fold(lane, values[2], values[6], 16), _fold(lane, values[3], values[7], 16)
    total = _fold(lane, _fold(lane, a, c, 8), _fold(lane, b, d, 8), 4)
    total += shuffle_xor(total, 2)
    total += shuffle_xor(total, 1)
    return total
