"""Partitions of a model in this machine's memory, trained two by two, each pair by one thread."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from daskw2v.objectives import find_bucket_trainer
from daskw2v.objectives.base import FloatArray, Objective
from daskw2v.params import Params
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.simd import aligned_zeros, padded


class CpuMeeting:
    """Input partitions and output partitions.

    Parameters
    ----------
    objective, params
        What is trained.
    sources, outputs
        The numbers of partitions, and their rows, shape (rows, D) float32. They are copied, one after the other.
    """

    def __init__(
        self,
        objective: Objective,
        params: Params,
        sources: Iterable[tuple[int, FloatArray]],
        outputs: Iterable[tuple[int, FloatArray]],
    ) -> None:
        self._train = find_bucket_trainer(objective, "cpu")
        self._params = params
        self._width = padded(params.vector_size)
        self._sources, self._outputs = (
            {number: _padded_copy(rows, self._width) for number, rows in of} for of in (sources, outputs)
        )

    def train(
        self, source: int, output: int, bucket: Bucket, alpha: float, words: npt.NDArray[np.uint64], key: np.uint64
    ) -> tuple[int, float]:
        """Train the bucket of two partitions; return the number of pairs and the summed loss.

        Threads may call it at the same time for partitions that are not the same.

        Parameters
        ----------
        source, output
            The numbers of the two partitions.
        bucket
            The pairs, and the noise of other pairs.
        alpha
            Learning rate.
        words
            Alias table of the output partition's words, shape (rows,) uint64.
        key
            Stream of the draws.
        """
        tables = self._sources[source], self._outputs[output]
        return self._train(bucket, *tables, self._width, alpha, self._params, words, key)

    def take_source(self, number: int) -> FloatArray:
        """Return the rows of an input partition, and let go of it."""
        return self._take(self._sources, number)

    def take_output(self, number: int) -> FloatArray:
        """Return the rows of an output partition, and let go of it."""
        return self._take(self._outputs, number)

    def _take(self, tables: dict[int, FloatArray], number: int) -> FloatArray:
        # No copy where rows fill whole cache lines
        return np.ascontiguousarray(tables.pop(number).reshape(-1, self._width)[:, : self._params.vector_size])


def _padded_copy(rows: FloatArray, width: int) -> FloatArray:
    # Small pages: each meeting takes new memory, and huge pages may have to be made first, which takes seconds where
    # the system's file cache has filled the rest. The kernel loses 4 % by it.
    table = aligned_zeros(len(rows) * width)
    table.reshape(-1, width)[:, : rows.shape[1]] = rows
    return table
