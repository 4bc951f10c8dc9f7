"""Explicit SIMD for Numba kernels: operations on LLVM vectors, and aligned memory.

Numba's auto-vectoriser emits 256-bit code for every processor, and run-time alias checks before each loop. LLVM's
vector types avoid both, and LLVM lowers the same code for AVX-512, AVX2 and NEON. Functions with an LLVM builder emit
code: they run while a kernel is compiled, inside intrinsics (`kernels.jit.emitting`). Their vectors are LLVM values, of
float32 unless stated otherwise.
"""

import math
import mmap
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import llvmlite.binding
import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils

from daskw2v.kernels.jit import FAST
from daskw2v.types import Float32Array

ROW_ALIGNMENT = 16  # floats: rows are padded to whole cache lines of 64 bytes

_float = ir.FloatType()
_i32 = ir.IntType(32)


def _find_registers() -> tuple[int, int]:
    """Return the number of vector registers of the processor for which Numba compiles, and the floats of a register.

    It is this host's processor, unless the environment variable NUMBA_CPU_FEATURES names other features.
    """
    features = numba.config.CPU_FEATURES
    names = (llvmlite.binding.get_host_cpu_features().flatten() if features is None else features).split(",")
    if "+avx512f" in names:
        return 32, 16
    if "+avx" in names:
        return 16, 8
    return 32 if "+neon" in names else 16, 4


SLOTS = 16  # sums that `sums` returns, on every host
REGISTERS, LANES = _find_registers()  # vector registers of the processor, and floats of a register


def padded(width: int) -> int:
    """Return `width`, a number of floats, rounded up to whole cache lines."""
    return -(-width // ROW_ALIGNMENT) * ROW_ALIGNMENT


def aligned_zeros(n: int, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """Return n zeros, shape (n,), on cache lines that hold no other data, so that no thread writes beside them."""
    return _allocate_aligned(np.zeros, n, dtype)


def aligned_empty(n: int, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """Return an uninitialized array of shape (n,) on cache lines that hold no other data."""
    return _allocate_aligned(np.empty, n, dtype)


def _allocate_aligned(allocate: Callable[..., npt.NDArray[Any]], n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of shape (n,) on its own cache lines, in memory of `allocate`: `np.zeros` or `np.empty`."""
    line, size = 4 * ROW_ALIGNMENT, n * np.dtype(dtype).itemsize
    memory = allocate((-(-size // line) + 1) * line, np.uint8)  # holds n numbers on whole lines, wherever it begins
    skip = -memory.ctypes.data % line
    return memory[skip : skip + size].view(dtype)


def huge_zeros(n: int) -> Float32Array:
    """Return n zeros that begin on a page, in huge pages where the system has them, shape (n,) float32.

    Kernels access rows of a table at random, and with small pages each access would miss the TLB.
    """
    return np.frombuffer(huge_pages(4 * n), np.float32, n)


def sparse_zeros(n: int) -> Float32Array:
    """Return n zeros that begin on a page, shape (n,) float32; a page takes memory once it is written."""
    return np.frombuffer(_allocate_pages(4 * n), np.float32, n)


def huge_pages(size: int) -> mmap.mmap:
    """Return `size` bytes of zeros, at least one, that begin on a page, in huge pages where the system has them."""
    memory = _allocate_pages(size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel built without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _allocate_pages(size: int) -> mmap.mmap:
    """Return `size` bytes of zeros, at least one, that begin on a page."""
    size = max(1, size)
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def vector_of(lanes: int) -> ir.VectorType:
    """Return the LLVM type of a vector of `lanes` float32."""
    return ir.VectorType(_float, lanes)


def constant(value: float, lanes: int) -> ir.Constant:
    """Return a constant vector of `lanes` float32, all of them `value`."""
    return ir.Constant(vector_of(lanes), [value] * lanes)


def integers(value: int, lanes: int) -> ir.Constant:
    """Return a constant vector of `lanes` int32, all of them `value`."""
    return ir.Constant(ir.VectorType(_i32, lanes), [value] * lanes)


def load(builder: Any, pointer: Any, lanes: int) -> Any:
    """Return the vector of `lanes` consecutive floats at a pointer."""
    kind = vector_of(lanes)
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=4, typ=kind)


def store(builder: Any, pointer: Any, value: Any) -> None:
    """Store a vector at a pointer."""
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=4)


def call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Return the result of an LLVM intrinsic, called by its name; `result` is the result's LLVM type."""
    kind = ir.FunctionType(result, [a.type for a in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, arguments)


def fma(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Return x * y + z for vectors of floats, with one rounding where the processor can."""
    return call(builder, f"llvm.fmuladd.v{x.type.count}f32", x.type, x, y, z)


def broadcast(builder: Any, vector: Any, lane: int, lanes: int) -> Any:
    """Return a vector of `lanes` lanes, all of them the lane `lane` of a vector."""
    mask = ir.Constant(ir.VectorType(_i32, lanes), [lane] * lanes)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


def splat(builder: Any, scalar: Any, lanes: int) -> Any:
    """Return a vector of `lanes` lanes, all of them a scalar."""
    undefined = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    return broadcast(builder, builder.insert_element(undefined, scalar, _i32(0)), 0, lanes)


def prefetch(builder: Any, pointer: Any, *, write: bool = True) -> None:
    """Prefetch the cache line at a pointer, for writing, or for reading only."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _i32, _i32, _i32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [builder.bitcast(pointer, byte), _i32(int(write)), _i32(3), _i32(1)])


def clamp(builder: Any, x: Any, low: float, high: float) -> Any:
    """Return a vector of floats clipped to low..high; NaN stays NaN."""
    n = x.type.count
    for bound, sign in ((low, "<"), (high, ">")):
        outside = builder.fcmp_ordered(sign, x, constant(bound, n))
        x = builder.select(outside, constant(bound, n), x)
    return x


def sums(builder: Any, vectors: Sequence[Any]) -> Any:
    """Return the sums of up to SLOTS vectors of LANES floats as one vector of SLOTS: lane i has the sum of vectors[i].

    Each level of a tree adds halves of two vectors, one beside the other: with 16 lanes, 16 sums take 15 additions
    instead of 64. The sum of a vector that is None is zero.
    """
    level = [*vectors, *[None] * (SLOTS - len(vectors))]
    segment = LANES  # lanes that hold the partial sums of one of the vectors
    while segment > 1:
        half = len(level) // 2
        level = [_add_halves(builder, a, b, segment) for a, b in zip(level[:half], level[half:], strict=True)]
        segment //= 2
    return _interleave(builder, [constant(0.0, LANES) if v is None else v for v in level])


def _add_halves(builder: Any, a: Any, b: Any, segment: int) -> Any:
    """Return the sums of the two halves of each segment of `a` and of `b`; sums of `a` and `b` alternate.

    A segment has `segment` lanes. None is a vector of zeros; the result for two of them is None.
    """
    if a is None and b is None:
        return None
    a, b = (constant(0.0, LANES) if v is None else v for v in (a, b))
    half = segment // 2
    straight = [i + LANES * (i % segment >= half) for i in range(LANES)]  # a blend: no shuffle
    crossed = [i + half if i % segment < half else LANES + i - half for i in range(LANES)]
    parts = [builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_i32, LANES), m)) for m in (straight, crossed)]
    return builder.fadd(*parts, flags=FAST)


def _interleave(builder: Any, vectors: Sequence[Any]) -> Any:
    """Return 2**k vectors merged lane by lane: lane i of vector j becomes lane i * len(vectors) + j."""
    while len(vectors) > 1:
        half = len(vectors) // 2
        n = vectors[0].type.count
        order = [i for lane in range(n) for i in (lane, n + lane)]
        mask = ir.Constant(ir.VectorType(_i32, 2 * n), order)
        vectors = [builder.shuffle_vector(a, b, mask) for a, b in zip(vectors[:half], vectors[half:], strict=True)]
    return vectors[0]


def exp(builder: Any, x: Any) -> Any:
    """Return e**x in each lane of a vector of floats, with a relative error of about 2e-7, for |x| <= 80."""
    n = x.type.count
    power = builder.fmul(x, constant(math.log2(math.e), n), flags=FAST)
    power_of_two = call(builder, f"llvm.rint.v{n}f32", x.type, power)
    # x - whole * ln 2 in two steps, so that the remainder keeps its bits
    remainder = fma(builder, power_of_two, constant(-0.693359375, n), x)
    remainder = fma(builder, power_of_two, constant(2.12194440e-4, n), remainder)
    result = constant(1 / 720, n)
    for c in (1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
        result = fma(builder, result, remainder, constant(c, n))
    bits = builder.shl(builder.fptosi(power_of_two, ir.VectorType(_i32, n)), integers(23, n))
    return builder.bitcast(builder.add(builder.bitcast(result, bits.type), bits), x.type)


def inverse_root(builder: Any, x: Any) -> Any:
    """Return 1 / sqrt(x) in each lane of a vector of float32, with a relative error of about 2e-7, for normal x > 0.

    It is an estimate from the bits and three Newton steps, which take less time than a root and a division.
    """
    n = x.type.count
    kind = ir.VectorType(_i32, n)
    half = builder.lshr(builder.bitcast(x, kind), integers(1, n))
    y = builder.bitcast(builder.sub(integers(0x5F375A86, n), half), x.type)
    minus = builder.fmul(constant(-0.5, n), x)
    for _ in range(3):
        y = builder.fmul(y, fma(builder, builder.fmul(minus, y), y, constant(1.5, n)))
    return y
