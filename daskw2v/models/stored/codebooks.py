"""Product quantization (Jegou et al. 2011, "Product Quantization for Nearest Neighbor Search", section II-B).

Vectors are cut into parts of some dimensions. Each part has 256 centroids, found by k-means (Lloyd 1982), and a vector
has a byte for each part: the number of the nearest centroid. The k-means of scikit-learn is not used, because it needs
an extra.
"""

from importlib import import_module

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.models.stored.arguments import at_least_one
from daskw2v.models.stored.threads import share
from daskw2v.types import Float32Array, UInt8Array

CENTROIDS = 256  # values of a byte
MOST_PART = 64  # most dimensions of a part
_SAMPLE = 1 << 15  # most vectors that centroids are made from: 128 for each
_TIMES = 16  # steps of k-means; after them, centroids hardly move


def check_part_size(part_size: int) -> None:
    """Check that `part_size` is an integer of 1 to MOST_PART; raises `ParameterError`."""
    if at_least_one("part_size", part_size) > MOST_PART:
        raise ParameterError(f"part_size={part_size} is more than the {MOST_PART} dimensions of a byte.", "Give fewer.")


def parts_of(vectors: Float32Array, part_size: int) -> Float32Array:
    """Return the parts of n vectors, shape (parts, n, part_size); the last is filled with zeros."""
    n, columns = vectors.shape
    n_parts = -(-columns // part_size)
    parts = np.zeros((n, n_parts * part_size), np.float32)
    parts[:, :columns] = vectors
    return np.ascontiguousarray(parts.reshape(n, n_parts, part_size).swapaxes(0, 1))


def centroids_of(vectors: Float32Array, seed: int) -> Float32Array:
    """Return centroids of n vectors, shape (n, D), as columns of a matrix, shape (D, CENTROIDS) float32.

    k-means starts from random vectors of the sample. A centroid that is nearest to no vector stays.
    """
    assign, random = import_module("daskw2v.kernels.search").assign, np.random.default_rng(seed)
    taught = vectors[random.permutation(len(vectors))[:_SAMPLE]]
    found = np.ascontiguousarray(taught[np.arange(CENTROIDS) % len(taught)].T)
    room, codes = np.empty(CENTROIDS, np.float32), np.empty(len(taught), np.uint8)
    for _ in range(_TIMES):
        assign(taught, found, room, codes)
        sizes = np.bincount(codes, minlength=CENTROIDS)
        totals = np.stack([np.bincount(codes, weights, CENTROIDS) for weights in taught.T])
        found = np.where(sizes > 0, totals / np.maximum(sizes, 1), found).astype(np.float32)
    return found


def books_of(parts: Float32Array) -> Float32Array:
    """Return the centroids of each part, shape (parts, part_size, CENTROIDS), given n, shape (parts, n, part_size)."""
    return np.stack([centroids_of(part, number) for number, part in enumerate(parts)])


def codes_of(parts: Float32Array, books: Float32Array, threads: int = 0) -> UInt8Array:
    """Return the numbers of the centroids nearest to the parts of n vectors, shape (n, parts).

    Parameters
    ----------
    parts, books
        Shapes (parts, n, part_size) and (parts, part_size, CENTROIDS) float32.
    threads
        One for each core by default.
    """
    assign = import_module("daskw2v.kernels.search").assign  # Numba is loaded once it is needed
    found = np.empty((parts.shape[1], len(parts)), np.uint8)

    def write(rows: slice) -> None:
        room, codes = np.empty(CENTROIDS, np.float32), np.empty(rows.stop - rows.start, np.uint8)
        for number, (part, book) in enumerate(zip(parts, books, strict=True)):
            assign(part[rows], book, room, codes)
            found[rows, number] = codes

    share(write, len(found), threads)
    return found


def decoded(codes: UInt8Array, books: Float32Array, columns: int) -> Float32Array:
    """Return the vectors that codes stand for, shape (n, columns) float32.

    Parameters
    ----------
    codes, books
        Shapes (n, parts) uint8 and (parts, part_size, CENTROIDS) float32.
    columns
        Dimensions of the vectors: the last part may have fewer than its book.
    """
    rows = np.empty((len(codes), len(books), books.shape[1]), np.float32)
    for number, book in enumerate(books):
        rows[:, number] = book.T[codes[:, number]]
    return np.ascontiguousarray(rows.reshape(len(codes), len(books) * books.shape[1])[:, :columns])
