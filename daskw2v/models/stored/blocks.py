"""Blocks of words, whose vectors are compared with others at once."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from daskw2v.kernels.cores import usable_cores
from daskw2v.types import Float32Array, Int64Array


class VectorBlock(NamedTuple):
    """Ids of words, ascending, shape (n,), their vectors, shape (n, D), and their lengths, shape (n,)."""

    ids: Int64Array
    vectors: Float32Array
    norms: Float32Array

    def cosines(self, units: Float32Array) -> Float32Array:
        """Return the cosines of m unit vectors, shape (m, D), with the words, shape (m, n)."""
        # Of one vector, at the speed of memory without threads, and the same bits in any block
        scores: Float32Array = np.vecdot(self.vectors, units)[None] if len(units) == 1 else units @ self.vectors.T
        scores /= self.norms
        return scores

    def columns(self, ids: Int64Array) -> Int64Array:
        """Return the columns of words in the cosines, shape of `ids`; -1 for words of other blocks."""
        columns = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[columns] == ids, columns, -1)


def compared(
    blocks: Iterable[VectorBlock], groups: Sequence[Float32Array], *, by_threads: bool
) -> Iterator[tuple[VectorBlock, list[Float32Array]]]:
    """Yield each block, and its words' cosines with each group of unit vectors.

    With `by_threads` each core takes blocks of its own, which are all in memory, since one core does not use all of the
    memory's bandwidth. For many vectors, BLAS has threads of its own.
    """

    def cosines(block: VectorBlock) -> list[Float32Array]:
        return [block.cosines(units) for units in groups]

    if not by_threads:
        yield from ((block, cosines(block)) for block in blocks)
        return
    found = list(blocks)
    with ThreadPoolExecutor(max(1, min(usable_cores(), len(found)))) as pool:
        yield from zip(found, pool.map(cosines, found), strict=True)
