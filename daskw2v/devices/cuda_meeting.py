"""Partitions of a model in the memory of an NVIDIA GPU: that which CUDA gives this process first."""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.cuda import load
from daskw2v.devices.meeting import Meeting
from daskw2v.objectives.base import FloatArray, Warps
from daskw2v.objectives.hidden import BATCH
from daskw2v.objectives.touched import touched_in_partition
from daskw2v.sampling.hierarchy import RULES, split_negatives
from daskw2v.sampling.skipgrams import Bucket


class CudaMeeting(Meeting):
    """Two partitions are trained by warps without locks: the result depends on their order, which nobody knows.

    Raises
    ------
    MissingExtraError, ClusterError
        As `cuda.check_gpu` does.
    """

    device = "cuda"

    def _start(self) -> None:
        self._cuda, self._pieces = load("numba.cuda"), load("daskw2v.objectives.cuda.pieces")
        self._in_flight = self._pieces.room(self._max_in_flight)
        _, each = split_negatives(RULES[self._params.negative_rule], self._params.negative)
        self._negatives = max(self._params.negative, each + BATCH)  # of a batch, at most
        self._likely = lru_cache(maxsize=64)(self._find_likely)

    def _find_likely(self, table: str, number: int) -> Any:
        """Return how likely a batch touches each of the first rows of a partition, on the GPU."""
        touched = touched_in_partition(self._params, self._counts(number), self._total, self._negatives)
        return self._cuda.to_device(self._pieces.crowded(touched[table], self._in_flight))

    def train(
        self, source: int, output: int, bucket: Bucket, alpha: float, words: npt.NDArray[np.uint64], key: np.uint64
    ) -> tuple[int, float]:
        """Train the bucket of two partitions, as `Meeting.train` says; each thread's go to the GPU by themselves."""
        stream, put = self._cuda.stream(), self._cuda.to_device
        # Rows one by one: Numba cannot take one out of an array on the GPU that is empty
        there: Any = [tuple(put(np.ascontiguousarray(row)) for row in items) for items in bucket]
        tables, totals, negatives = (self._sources[source], self._outputs[output]), put(np.zeros(2)), put(words)
        likely = self._likely("input", source), self._likely("output", output)
        memory = Warps(*tables, self._width, 0, self._in_flight, *likely, totals, stream)
        try:
            self._train(Bucket(*there), memory, alpha, self._params, negatives, key)
        finally:
            stream.synchronize()  # before what it uses is let go
        return bucket.pairs.shape[1], float(totals.copy_to_host()[1])

    def _put(self, table: FloatArray) -> Any:
        return self._cuda.to_device(table)

    def _back(self, table: Any) -> FloatArray:
        rows: FloatArray = table.copy_to_host()
        return rows
