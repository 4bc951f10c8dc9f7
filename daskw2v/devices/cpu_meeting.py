"""Partitions of a model in this machine's memory, trained two by two, each pair by one thread."""

import numpy as np
import numpy.typing as npt

from daskw2v.devices.meeting import Meeting
from daskw2v.objectives.base import FloatArray, HotRows, Memory
from daskw2v.sampling.skipgrams import Bucket


class CpuMeeting(Meeting):
    """The result depends on nothing but the input."""

    device = "cpu"

    def _start(self) -> None:
        pass

    def train(
        self, source: int, output: int, bucket: Bucket, alpha: float, words: npt.NDArray[np.uint64], key: np.uint64
    ) -> tuple[int, float]:
        """Train the bucket of two partitions, as `Meeting.train` says."""
        memory = Memory(self._sources[source], self._outputs[output], self._width, HotRows(0, 0, 0, 1))
        pairs, loss = self._train(bucket, memory, alpha, self._params, words, key)
        return pairs, loss

    def _put(self, table: FloatArray) -> FloatArray:
        return table

    def _back(self, table: FloatArray) -> FloatArray:
        return table
