"""Loads, stores and bit operations that Numba lacks; results do not depend on the machine's byte order.

`data` is an array of uint8.
"""

import sys
from typing import Any

from llvmlite import ir
from numba.core import types

from daskw2v.kernels import simd
from daskw2v.kernels.jit import emitting

_I8, _I64 = ir.IntType(8), ir.IntType(64)


def _get_pointer(builder: Any, data: Any, index: Any, to: ir.Type) -> Any:
    """Return the address of data[index] as a pointer to the LLVM type `to`."""
    return builder.bitcast(builder.gep(data, [index]), to.as_pointer())


def _call_intrinsic(builder: Any, name: str, *args: Any) -> Any:
    """Return the result of an LLVM intrinsic that returns a 64-bit integer."""
    return simd.call(builder, name, _I64, *args)


def _to_little_endian(builder: Any, value: Any, swap: str = "llvm.bswap.i64") -> Any:
    """Return the value that a 64-bit load or comparison has on little-endian machines; other machines apply `swap`."""
    return value if sys.byteorder == "little" else _call_intrinsic(builder, swap, value)


@emitting(types.uint64, None, types.int64)
def load8(builder: Any, data: Any, index: Any) -> Any:
    """Return the bytes data[index : index + 8] as a little-endian integer; the caller checks the bounds."""
    return _to_little_endian(builder, builder.load(_get_pointer(builder, data, index, _I64), align=1))


@emitting(types.void, None, types.int64, types.uint64)
def store8(builder: Any, data: Any, index: Any, value: Any) -> None:
    """Write an integer to the bytes data[index : index + 8], little-endian; the caller checks the bounds."""
    builder.store(_to_little_endian(builder, value), _get_pointer(builder, data, index, _I64), align=1)


@emitting(types.uint64, None, types.int64, types.uint8)
def mask64(builder: Any, data: Any, index: Any, limit: Any) -> Any:
    """Return 64 bits, of which bit i is set if data[index + i] <= limit; the caller checks the bounds."""
    loaded = builder.load(_get_pointer(builder, data, index, ir.VectorType(_I8, 64)), align=1)
    bits = builder.bitcast(builder.icmp_unsigned("<=", loaded, simd.splat(builder, limit, 64)), _I64)
    return _to_little_endian(builder, bits, "llvm.bitreverse.i64")


@emitting(types.int64, types.uint64)
def lowest_bit(builder: Any, bits: Any) -> Any:
    """Return the index of the lowest bit that is set, 64 if none is."""
    return _call_intrinsic(builder, "llvm.cttz.i64", bits, ir.Constant(ir.IntType(1), 0))


@emitting(types.int64, types.uint64)
def count_bits(builder: Any, bits: Any) -> Any:
    """Return the number of bits that are set."""
    return _call_intrinsic(builder, "llvm.ctpop.i64", bits)


@emitting(types.void, None, types.int64)
def prefetch_entry(builder: Any, array: Any, index: Any) -> None:
    """Prefetch the cache line of array[index] for reading."""
    simd.prefetch(builder, _get_pointer(builder, array, index, _I8), write=False)
