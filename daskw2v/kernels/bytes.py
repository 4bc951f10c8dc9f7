"""Loads, stores and bit operations that Numba lacks; results are the same on machines of either byte order."""

import sys
from typing import Any

from llvmlite import ir
from numba.core import types

from daskw2v.kernels import simd
from daskw2v.kernels.jit import emitting

_I8, _I64 = ir.IntType(8), ir.IntType(64)


def _at(builder: Any, data: Any, index: Any, to: ir.Type) -> Any:
    """Return the address of data[index] as a pointer to `to`."""
    return builder.bitcast(builder.gep(data, [index]), to.as_pointer())


def _call(builder: Any, name: str, *args: Any) -> Any:
    """Call an LLVM intrinsic on 64-bit integers that returns one."""
    return simd.call(builder, name, _I64, *args)


def _little_endian(builder: Any, value: Any, swap: str = "llvm.bswap.i64") -> Any:
    """Return a value as it is on little-endian machines."""
    return value if sys.byteorder == "little" else _call(builder, swap, value)


@emitting(types.uint64, None, types.int64)
def load8(builder: Any, data: Any, index: Any) -> Any:
    """Return data[index : index + 8] as a little-endian integer; the caller guards the bounds."""
    return _little_endian(builder, builder.load(_at(builder, data, index, _I64), align=1))


@emitting(types.void, None, types.int64, types.uint64)
def store8(builder: Any, data: Any, index: Any, value: Any) -> None:
    """Write an integer to data[index : index + 8], little-endian; the caller guards the bounds."""
    builder.store(_little_endian(builder, value), _at(builder, data, index, _I64), align=1)


@emitting(types.uint64, None, types.int64, types.uint8)
def mask64(builder: Any, data: Any, index: Any, limit: Any) -> Any:
    """Return 64 bits, bit i set where data[index + i] <= limit; the caller guards the bounds."""
    loaded = builder.load(_at(builder, data, index, ir.VectorType(_I8, 64)), align=1)
    bits = builder.bitcast(builder.icmp_unsigned("<=", loaded, simd.splat(builder, limit, 64)), _I64)
    return _little_endian(builder, bits, "llvm.bitreverse.i64")


@emitting(types.int64, types.uint64)
def lowest_bit(builder: Any, bits: Any) -> Any:
    """Return the position of the lowest bit set, 64 where none is."""
    return _call(builder, "llvm.cttz.i64", bits, ir.Constant(ir.IntType(1), 0))


@emitting(types.int64, types.uint64)
def count_bits(builder: Any, bits: Any) -> Any:
    """Return how many bits are set."""
    return _call(builder, "llvm.ctpop.i64", bits)


@emitting(types.void, None, types.int64)
def prefetch_entry(builder: Any, array: Any, index: Any) -> None:
    """Bring the cache line that holds array[index] close, for reading."""
    simd.prefetch(builder, _at(builder, array, index, _I8), write=False)
