"""Partitions of a model in the memory of a device, trained two by two."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from daskw2v.objectives import find_bucket_trainer
from daskw2v.objectives.base import FloatArray, Objective
from daskw2v.params import Params
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.simd import aligned_zeros, padded


class Meeting(ABC):
    """Input partitions and output partitions.

    Parameters
    ----------
    objective, params
        What is trained.
    sources, outputs
        The numbers of partitions, and their rows, shape (rows, D) float32. They are copied, one after the other.
    counts, total
        Returns how often each word of a partition occurs, shape (rows,) int64; and how often all words do.
    max_in_flight
        As in Resources.
    """

    device: ClassVar[str]

    def __init__(
        self,
        objective: Objective,
        params: Params,
        sources: Iterable[tuple[int, FloatArray]],
        outputs: Iterable[tuple[int, FloatArray]],
        counts: Callable[[int], npt.NDArray[np.int64]],
        total: int,
        max_in_flight: int | None,
    ) -> None:
        self._train = find_bucket_trainer(objective, self.device)
        self._params, self._counts, self._total = params, counts, total
        self._max_in_flight = max_in_flight
        self._width = padded(params.vector_size)
        self._start()
        self._sources, self._outputs = (
            {number: self._put(_padded_copy(rows, self._width)) for number, rows in of} for of in (sources, outputs)
        )

    @abstractmethod
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

    def take_source(self, number: int) -> FloatArray:
        """Return the rows of an input partition, and let go of it."""
        return self._take(self._sources, number)

    def take_output(self, number: int) -> FloatArray:
        """Return the rows of an output partition, and let go of it."""
        return self._take(self._outputs, number)

    def _take(self, tables: dict[int, Any], number: int) -> FloatArray:
        # No copy where rows fill whole cache lines
        rows: FloatArray = self._back(tables.pop(number)).reshape(-1, self._width)
        return np.ascontiguousarray(rows[:, : self._params.vector_size])

    @abstractmethod
    def _start(self) -> None:
        """Make ready what trains."""

    @abstractmethod
    def _put(self, table: FloatArray) -> Any:
        """Return a table in the device's memory."""

    @abstractmethod
    def _back(self, table: Any) -> FloatArray:
        """Return a table of the device in this machine's memory."""


def _padded_copy(rows: FloatArray, width: int) -> FloatArray:
    # Small pages: each meeting takes new memory, and huge pages may have to be made first, which takes seconds where
    # the system's file cache has filled the rest. The kernel loses 4 % by it.
    table = aligned_zeros(len(rows) * width)
    table.reshape(-1, width)[:, : rows.shape[1]] = rows
    return table
