"""Operations of the lanes of a warp, loads and stores of four floats, which Numba lacks, and rows in registers.

A row is cut into chunks of 128 floats; each lane has four floats of a chunk. A lane's part of several rows is a local
array of shape (rows, floats). Loops have constant lengths, so that the compiler keeps this array in registers. Tables
are flat. `lane` is the number of the calling lane, 0..31.

Under Numba's simulator, which has no warps, the same names are plain functions (`kernels.cuda.simulated`).
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda

LANES = 32
EVERYONE = 0xFFFFFFFF  # mask of all lanes of a warp
FLOATS = 4  # floats that a lane loads or stores at once
SUMS = 8  # sums that `sums_of_lanes` returns
SHARE = LANES // SUMS  # lanes that get the same sum
_CHUNK = LANES * FLOATS  # floats of a row that a warp loads at once
_ZERO = np.float32(0.0)
# Little text needs few warps, for which Numba would warn at each launch
numba.config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
ALIGNED = None if numba.config.ENABLE_CUDASIM else 4 * FLOATS  # bytes, of shared memory for loads of four floats


def device(function: Callable[..., Any]) -> Any:
    """Compile a function as part of the kernels that call it."""
    return function if numba.config.ENABLE_CUDASIM else cuda.jit(device=True, fastmath=True)(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel on its first launch, with the GPU's approximate exp, log and square root; cached on disk."""
    compiled = cuda.jit(fastmath=True)(function)
    if numba.config.ENABLE_CUDASIM:
        return simulated.OneAtATime(compiled)
    compiled._cache = CudaKernelCache(function)
    return compiled


if numba.config.ENABLE_CUDASIM:
    from daskw2v.kernels.cuda import simulated

    ballot, shuffle_xor, sync_warp = simulated.ballot, simulated.shuffle_xor, simulated.sync_warp
    load4 = load4_constant = load4_fresh = load4_shared = simulated.load4
    store4 = store4_shared = simulated.store4
    add4 = add4_at_once = simulated.add4
    inverse_root = simulated.inverse_root
    bits_of, float_of = simulated.bits_of, simulated.float_of
else:
    from llvmlite import ir
    from numba.cuda import libdevice, types
    from numba.cuda.extending import intrinsic

    from daskw2v.kernels.cuda.cache import CudaKernelCache
    from daskw2v.kernels.jit import emitting

    _float, _i32, _number, _single = ir.FloatType(), ir.IntType(32), types.int64, types.float32
    _four = ir.VectorType(_float, FLOATS)
    _ALIGNED = 4 * FLOATS  # bytes
    _GLOBAL, _SHARED = 1, 3  # NVVM's address spaces
    _parts = types.UniTuple(_single, FLOATS)

    def _get_pointer(builder: Any, array: Any, start: Any, space: int = _GLOBAL) -> Any:
        """Return a pointer to four floats of an array in global or in shared memory."""
        return builder.addrspacecast(builder.gep(array, [start]), _four.as_pointer(space))

    def _make_load(space: int = _GLOBAL, *, constant: bool = False) -> Any:
        """Return an intrinsic that returns array[start : start + 4]; `constant` if no kernel writes the array."""

        @emitting(_parts, None, _number, intrinsic=intrinsic)
        def load(builder: Any, array: Any, start: Any) -> Any:
            value = builder.load(_get_pointer(builder, array, start, space), align=_ALIGNED)
            if constant:
                value.set_metadata("invariant.load", builder.module.add_metadata([]))
            return [builder.extract_element(value, _i32(k)) for k in range(FLOATS)]

        return load

    def _make_store(space: int) -> Any:
        """Return an intrinsic that writes four floats to array[start : start + 4]."""

        @emitting(types.void, None, _number, *[_single] * FLOATS, intrinsic=intrinsic)
        def store(builder: Any, array: Any, start: Any, a: Any, b: Any, c: Any, d: Any) -> None:
            value = ir.Constant(_four, ir.Undefined)
            for k, part in enumerate((a, b, c, d)):
                value = builder.insert_element(value, part, _i32(k))
            builder.store(value, _get_pointer(builder, array, start, space), align=_ALIGNED)

        return store

    def _call_assembly(
        builder: Any, result: Any, code: str, constraint: str, array: Any, start: Any, *values: Any
    ) -> Any:
        """Return the result of assembly code, whose operands are the address of array[start], and values."""
        args = builder.ptrtoint(_get_pointer(builder, array, start), ir.IntType(64)), *values
        function = ir.FunctionType(result, [arg.type for arg in args])
        return builder.call(ir.InlineAsm(function, code, constraint, side_effect=True), args)

    @emitting(_parts, None, _number, intrinsic=intrinsic)
    def load4_fresh(builder: Any, array: Any, start: Any) -> Any:
        """Return array[start : start + 4] from the L2 cache: the L1 lacks additions of other multiprocessors."""
        result, code = ir.LiteralStructType([_float] * FLOATS), "ld.global.cg.v4.f32 {$0, $1, $2, $3}, [$4];"
        value = _call_assembly(builder, result, code, "=f,=f,=f,=f,l", array, start)
        return [builder.extract_value(value, k) for k in range(FLOATS)]

    def _make_add(code: str) -> Any:
        """Return an intrinsic that adds four floats to array[start : start + 4] by assembly code."""

        @emitting(types.void, None, _number, *[_single] * FLOATS, intrinsic=intrinsic)
        def add(builder: Any, array: Any, start: Any, a: Any, b: Any, c: Any, d: Any) -> None:
            _call_assembly(builder, ir.VoidType(), code, "l,f,f,f,f,~{memory}", array, start, a, b, c, d)

        return add

    load4, load4_constant, load4_shared = _make_load(), _make_load(constant=True), _make_load(_SHARED)
    store4, store4_shared = _make_store(_GLOBAL), _make_store(_SHARED)
    # Atomic, and no lane waits for the result: one instruction from compute capability 9.0 on, else four
    add4_at_once = _make_add("red.global.add.v4.f32 [$0], {$1, $2, $3, $4};")
    add4 = _make_add(" ".join(f"red.global.add.f32 [$0+{4 * k}], ${k + 1};" for k in range(FLOATS)))

    @device
    def inverse_root(x: Any) -> Any:
        """Return 1 / sqrt(x) by one instruction, exact up to about the last two bits."""
        return libdevice.rsqrtf(x)

    @device
    def bits_of(value: Any) -> Any:
        """Return the bits of a float32 as an integer >= 0."""
        return np.int64(np.uint32(libdevice.float_as_int(value)))

    @device
    def float_of(bits: Any) -> Any:
        """Return the float32 with these bits, an integer >= 0."""
        return libdevice.int_as_float(np.int32(bits))

    @device
    def shuffle_xor(value: Any, mask: Any) -> Any:
        """Return the value of the lane whose number differs in the bits of `mask`."""
        return cuda.shfl_xor_sync(EVERYONE, value, mask)

    @device
    def ballot(met: Any) -> Any:
        """Return, in bit l, whether lane l meets a condition, uint32."""
        return np.uint32(cuda.ballot_sync(EVERYONE, met))

    @device
    def sync_warp() -> None:
        """Wait for all lanes of the warp, after which their writes to shared memory are visible."""
        cuda.syncwarp(EVERYONE)


@device
def at(array: Any, i: Any) -> Any:
    """Return array[i] for i >= 0; without the cast a check for negative i would take four instructions."""
    return array[np.uint64(i)]


@device
def _fold(lane: Any, a: Any, b: Any, mask: Any) -> Any:
    """Return the sum over two lanes whose numbers differ in the bit `mask`: of `b` in the lane with it, else of `a`."""
    upper = (lane & mask) != 0
    kept, sent = (b, a) if upper else (a, b)
    return kept + shuffle_xor(sent, mask)


@device
def sum_of_lanes(value: Any) -> Any:
    """Return the sum of the values of all lanes, to each lane."""
    for mask in (16, 8, 4, 2, 1):
        value += shuffle_xor(value, mask)
    return value


@device
def sums_of_lanes(lane: Any, values: Any) -> Any:
    """Return to lane l the sum of values[l // 4] of all lanes: SUMS sums by nine shuffles instead of forty."""
    a, b = _fold(lane, values[0], values[4], 16), _fold(lane, values[1], values[5], 16)
    c, d = _fold(lane, values[2], values[6], 16), _fold(lane, values[3], values[7], 16)
    total = _fold(lane, _fold(lane, a, c, 8), _fold(lane, b, d, 8), 4)
    total += shuffle_xor(total, 2)
    total += shuffle_xor(total, 1)
    return total


@device
def sum_of_sums(value: Any) -> Any:
    """Return to each lane the sum of SUMS values, of which each is the value of SHARE lanes, as of `sums_of_lanes`."""
    return sum_of_lanes(value) * np.float32(1 / SHARE)


def chunks_of(width: int) -> int:
    """Return the number of chunks of a row of `width` floats, rounded up; each lane has FLOATS floats of a chunk."""
    return -(-width // _CHUNK)


def floats_of(width: int) -> int:
    """Return the number of floats that a lane has of a row of `width` floats, a multiple of FLOATS."""
    return chunks_of(width) * FLOATS


def _make_is_inside(width: int) -> Callable[..., Any]:
    """Return a device function (chunk, column): whether a column of this chunk is in a row of `width` floats."""
    n_full = width // _CHUNK  # chunks in which the row does not end

    @device
    def is_inside(chunk: Any, column: Any) -> Any:
        return chunk < n_full or column < width  # the compiler knows the first condition

    return is_inside


def reading(width: int, load: Callable[..., Any]) -> Callable[..., Any]:
    """Return a device function (table, start, lane, rows, t) that reads a row of `width` floats with `load`.

    It writes the lane's part to rows[t], zeros behind the end of the row; table[start] is the row's first float.
    """
    chunks, is_inside = chunks_of(width), _make_is_inside(width)

    @device
    def read(table: Any, start: Any, lane: Any, rows: Any, t: Any) -> None:
        for chunk in range(chunks):
            column, k = chunk * _CHUNK + lane * FLOATS, chunk * FLOATS
            if is_inside(chunk, column):
                rows[t, k], rows[t, k + 1], rows[t, k + 2], rows[t, k + 3] = load(table, start + column)
            else:
                rows[t, k], rows[t, k + 1], rows[t, k + 2], rows[t, k + 3] = _ZERO, _ZERO, _ZERO, _ZERO

    return read


def writing(width: int, store: Callable[..., Any]) -> Callable[..., Any]:
    """Return a device function (table, start, lane, rows, t) that writes rows[t] to a row of `width` floats of a table.

    table[start] is the row's first float. `store` writes four floats, or adds them, as `add4` does.
    """
    chunks, is_inside = chunks_of(width), _make_is_inside(width)

    @device
    def write(table: Any, start: Any, lane: Any, rows: Any, t: Any) -> None:
        for chunk in range(chunks):
            column, k = chunk * _CHUNK + lane * FLOATS, chunk * FLOATS
            if is_inside(chunk, column):
                store(table, start + column, rows[t, k], rows[t, k + 1], rows[t, k + 2], rows[t, k + 3])

    return write
