"""Loads, stores and bit operations that Numba lacks; results are the same on machines of either byte order."""

import sys
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from daskw2v.kernels import simd

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_LITTLE = sys.byteorder == "little"


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any, to: ir.Type) -> Any:
    """Return the address of array[index] as a pointer to `to`."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), to.as_pointer())


def _call(builder: Any, name: str, *args: Any) -> Any:
    """Call an LLVM intrinsic on 64-bit integers that returns one."""
    return simd.call(builder, name, _I64, *args)


@intrinsic
def load8(_: Any, data: Any, index: Any) -> Any:
    """Return data[index : index + 8] as a little-endian integer; the caller guards the bounds."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_pointer(context, builder, signature.args[0], args[0], args[1], _I64), align=1)
        return value if _LITTLE else _call(builder, "llvm.bswap.i64", value)

    return types.uint64(data, types.int64), generate


@intrinsic
def store8(_: Any, data: Any, index: Any, value: Any) -> Any:
    """Write an integer to data[index : index + 8], little-endian; the caller guards the bounds."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, index, value = args
        value = value if _LITTLE else _call(builder, "llvm.bswap.i64", value)
        builder.store(value, _pointer(context, builder, signature.args[0], array, index, _I64), align=1)
        return context.get_dummy_value()

    return types.void(data, types.int64, types.uint64), generate


@intrinsic
def mask64(_: Any, data: Any, index: Any, limit: Any) -> Any:
    """Return 64 bits, bit i set where data[index + i] <= limit; the caller guards the bounds."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(_I8, 64)
        array, index, limit = args
        loaded = builder.load(_pointer(context, builder, signature.args[0], array, index, vector), align=1)
        seed = builder.insert_element(ir.Constant(vector, ir.Undefined), limit, ir.Constant(_I32, 0))
        zeros = ir.Constant(ir.VectorType(_I32, 64), [0] * 64)
        limits = builder.shuffle_vector(seed, ir.Constant(vector, ir.Undefined), zeros)
        bits = builder.bitcast(builder.icmp_unsigned("<=", loaded, limits), _I64)
        return bits if _LITTLE else _call(builder, "llvm.bitreverse.i64", bits)

    return types.uint64(data, types.int64, types.uint8), generate


@intrinsic
def lowest_bit(_: Any, bits: Any) -> Any:
    """Return the position of the lowest bit set, 64 where none is."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "llvm.cttz.i64", args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def count_bits(_: Any, bits: Any) -> Any:
    """Return how many bits are set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _call(builder, "llvm.ctpop.i64", args[0])

    return types.int64(types.uint64), generate


@intrinsic
def prefetch_entry(_: Any, array: Any, index: Any) -> Any:
    """Bring the cache line that holds array[index] close, for reading."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        entry = _pointer(context, builder, signature.args[0], args[0], args[1], _I8)
        simd.prefetch(builder, entry, write=False)
        return context.get_dummy_value()

    return types.void(array, types.int64), generate
