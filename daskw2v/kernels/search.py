"""The kernels that search tables of small vectors: int8, signs, and product quantization.

Product quantization (Jegou et al. 2011, "Product Quantization for Nearest Neighbor Search") cuts a vector into parts,
and names each part by the nearest of the centroids for this part (section II-B). Section numbers refer to this paper.
"""

from typing import Any

import numpy as np

from daskw2v.kernels.bytes import count_bits
from daskw2v.kernels.jit import kernel
from daskw2v.types import Float32Array, Float64Array, UInt8Array, UInt64Array

_ROWS = 64  # rows of a table that are compared with all queries before the next rows: they stay in the cache
_ROWS_OF_SIGNS = 256  # the same for a table of signs


@kernel
def bounds(
    codes: Any, steps: Any, errors: Any, first: int, stop: int, queries: Any, scales: Any, start: int, most: Any
) -> None:
    """Write upper bounds of the cosines of queries with the words first:stop to `most`.

    The bound is the product of a word's int8 and a query's int16 numbers, both times their steps, plus the word's
    error. Products are added up in int32, for which queries have to be small enough (`kinds.quantized_queries`).

    Parameters
    ----------
    codes, steps, errors
        Vectors of all words, shape (words, D) int8; step and error of each word, shape (words,) float32.
    first, stop
        Range of words.
    queries, scales
        Vectors of queries, shape (queries, D) int16, and the step of each, shape (queries,) float32.
    start, most
        Output: the bound of a word goes to column word - `start` of `most`, shape (queries, columns) float32.
    """
    for begin in range(first, stop, _ROWS):
        for query in range(len(queries)):
            for word in range(begin, min(begin + _ROWS, stop)):
                dot = np.int32(0)
                for k in range(codes.shape[1]):
                    dot = np.int32(dot + np.int32(codes[word, k]) * np.int32(queries[query, k]))
                most[query, word - start] = np.float32(dot) * (steps[word] * scales[query]) + errors[word]


def bounds_reference(codes: Any, steps: Any, errors: Any, queries: Any, scales: Any) -> Float64Array:
    """Return the bounds of `bounds` for all words, shape (queries, words) float64."""
    cosines = (queries.astype(np.float64) * scales[:, None]) @ (codes.astype(np.float64) * steps[:, None]).T
    return np.asarray(cosines + errors)


@kernel
def agreements(codes: Any, first: int, stop: int, queries: Any, start: int, most: Any) -> None:
    """Write minus the Hamming distances of queries to the words first:stop to most[:, first - start : stop - start].

    `codes` and `queries` are the bits of all words and of the queries, shapes (words, W) and (queries, W) uint64.
    """
    for begin in range(first, stop, _ROWS_OF_SIGNS):
        for query in range(len(queries)):
            for word in range(begin, min(begin + _ROWS_OF_SIGNS, stop)):
                differ = 0
                for k in range(codes.shape[1]):
                    differ += count_bits(codes[word, k] ^ queries[query, k])
                most[query, word - start] = np.float32(-differ)


def agreements_reference(codes: UInt64Array, queries: UInt64Array) -> Float32Array:
    """Return the results of `agreements` for all words, shape (queries, words) float32."""
    return -np.bitwise_count(queries[:, None] ^ codes[None]).sum(axis=2).astype(np.float32)


@kernel
def assign(vectors: Any, centroids: Any, distances: Any, codes: Any) -> None:
    """Write the index of the centroid nearest to one part of each of n vectors to `codes`, shape (n,) uint8.

    The part is the same range of dimensions in all vectors. Of equally near centroids, the first counts.

    Parameters
    ----------
    vectors, centroids
        The parts, shape (n, size) float32, and their centroids, shape (size, K) float32: a row for each dimension.
    distances
        Scratch memory of K float32.
    """
    for i in range(len(vectors)):
        distances[:] = 0
        for d in range(len(centroids)):
            value = vectors[i, d]
            for k in range(len(distances)):
                gap = centroids[d, k] - value
                distances[k] += gap * gap
        best = 0
        for k in range(1, len(distances)):
            if distances[k] < distances[best]:
                best = k
        codes[i] = best


@kernel
def sums(codes: Any, first: int, stop: int, tables: Any, start: int, most: Any) -> None:
    """Write inner products of queries with the words first:stop to most[:, first - start : stop - start].

    They are computed asymmetrically (section III-A): words are quantized, queries are not.

    Parameters
    ----------
    codes
        Index of the centroid of each part of each word, shape (words, parts) uint8.
    tables
        Inner products of each query's parts with all centroids, shape (queries, parts, K) float32.
    """
    for begin in range(first, stop, _ROWS):
        for query in range(len(tables)):
            for word in range(begin, min(begin + _ROWS, stop)):
                total = np.float32(0.0)
                for part in range(codes.shape[1]):
                    total += tables[query, part, codes[word, part]]
                most[query, word - start] = total


def assign_reference(vectors: Float32Array, centroids: Float32Array) -> UInt8Array:
    """Return the codes that `assign` writes, from distances in float64, shape (n,) uint8."""
    gaps = vectors.astype(np.float64)[:, :, None] - centroids.astype(np.float64)[None]
    return np.asarray((gaps**2).sum(axis=1).argmin(axis=1), np.uint8)


def sums_reference(codes: UInt8Array, tables: Float32Array) -> Float64Array:
    """Return the results of `sums` for all words, shape (queries, words) float64."""
    parts = np.arange(codes.shape[1])
    return np.asarray(tables.astype(np.float64)[:, parts[None], codes].sum(axis=2))
