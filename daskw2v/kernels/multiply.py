"""Products of float32 matrices by the calling thread alone: BLAS would start further threads in each task.

A product is made in tiles of rows and of two registers of columns, whose sums stay in registers while all terms are
added. Terms are added in order, so a number has the same bits in any tile, and on any processor with fused
multiply-add.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from daskw2v.kernels.jit import emitting, kernel
from daskw2v.kernels.simd import LANES, REGISTERS, fma, load, splat, store, vector_of
from daskw2v.types import Float32Array

_ROWS = REGISTERS // 4  # of a tile: its sums take half of the registers
_COLUMNS = 2 * LANES
_i64 = ir.IntType(64)


def multiply(left: Float32Array, right: Float32Array) -> Float32Array:
    """Return left @ right for C-contiguous matrices of shapes (n, m) and (m, k) float32, shape (n, k)."""
    (n, m), k = left.shape, right.shape[1]
    n_tiles, width = -(-n // _ROWS), -(-k // _COLUMNS) * _COLUMNS
    rows = left if n % _ROWS == 0 else np.concatenate([left, np.zeros((-n % _ROWS, m), np.float32)])
    terms = np.zeros((m, width), np.float32)
    terms[:, :k] = right
    product = np.empty((n_tiles * _ROWS, width), np.float32)
    _write_tiles(rows, terms, product)
    return np.ascontiguousarray(product[:n, :k])


@kernel
def _write_tiles(left: Any, right: Any, product: Any) -> None:
    """Write left @ right into `product`, whose rows and columns are those of whole tiles."""
    for column in range(0, right.shape[1], _COLUMNS):
        for row in range(0, left.shape[0], _ROWS):
            _write_tile(left, right, product, row, column, right.shape[0], right.shape[1])


@emitting(types.void, None, None, None, types.int64, types.int64, types.int64, types.int64)
def _write_tile(
    builder: Any, left: Any, right: Any, product: Any, row: Any, column: Any, n_terms: Any, width: Any
) -> None:
    """Write the tile of a product that begins at a row and a column.

    `left` has rows of `n_terms` floats, and `right` and `product` have rows of `width` floats.
    """
    zeros = ir.Constant(vector_of(LANES), None)
    sums = [[cgutils.alloca_once_value(builder, zeros) for _ in range(2)] for _ in range(_ROWS)]
    rows = [builder.add(row, _i64(r)) for r in range(_ROWS)]
    with cgutils.for_range(builder, n_terms, intp=_i64) as loop:
        factors = [load(builder, start, LANES) for start in _point_to_pair(builder, right, loop.index, column, width)]
        for tile_row, sums_of_row in zip(rows, sums, strict=True):
            index = builder.add(builder.mul(tile_row, n_terms), loop.index)
            number = splat(builder, builder.load(builder.gep(left, [index])), LANES)
            for factor, total in zip(factors, sums_of_row, strict=True):
                builder.store(fma(builder, number, factor, builder.load(total)), total)
    for tile_row, sums_of_row in zip(rows, sums, strict=True):
        for pointer, total in zip(_point_to_pair(builder, product, tile_row, column, width), sums_of_row, strict=True):
            store(builder, pointer, builder.load(total))


def _point_to_pair(builder: Any, matrix: Any, row: Any, column: Any, width: Any) -> list[Any]:
    """Return pointers to the two registers of a matrix that begin at a row and a column."""
    start = builder.add(builder.mul(row, width), column)
    return [builder.gep(matrix, [builder.add(start, _i64(k))]) for k in (0, LANES)]
