"""Two partitions of a model in this machine's memory, trained by one thread."""

import numpy as np
import numpy.typing as npt

from daskw2v.objectives import find_bucket_trainer
from daskw2v.objectives.base import FloatArray, Objective
from daskw2v.params import Params
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.simd import huge_zeros, padded


class CpuMeeting:
    """An input partition and an output partition.

    Parameters
    ----------
    objective, params
        What is trained.
    source, output
        Their rows, shape (rows, D) float32. They are copied.
    """

    def __init__(self, objective: Objective, params: Params, source: FloatArray, output: FloatArray) -> None:
        self._train = find_bucket_trainer(objective, "cpu")
        self._params = params
        self._width = padded(params.vector_size)
        self._source, self._output = (_padded_copy(rows, self._width) for rows in (source, output))

    def train(self, bucket: Bucket, alpha: float, words: npt.NDArray[np.uint64], key: np.uint64) -> tuple[int, float]:
        """Train their bucket; return the number of pairs and the summed loss.

        Parameters
        ----------
        bucket
            The pairs, and the noise of other pairs.
        alpha
            Learning rate.
        words
            Alias table of the output partition's words, shape (rows,) uint64.
        key
            Stream of the draws.
        """
        return self._train(bucket, self._source, self._output, self._width, alpha, self._params, words, key)

    def take(self) -> tuple[FloatArray, FloatArray]:
        """Return the rows of both partitions, and let go of them."""
        source, self._source = self._rows(self._source), _NONE
        output, self._output = self._rows(self._output), _NONE
        return source, output

    def _rows(self, table: FloatArray) -> FloatArray:
        # No copy where rows fill whole cache lines
        return np.ascontiguousarray(table.reshape(-1, self._width)[:, : self._params.vector_size])


_NONE: FloatArray = np.empty(0, np.float32)


def _padded_copy(rows: FloatArray, width: int) -> FloatArray:
    table = huge_zeros(len(rows) * width)
    table.reshape(-1, width)[:, : rows.shape[1]] = rows
    return table
