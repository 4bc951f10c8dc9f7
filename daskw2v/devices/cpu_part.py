"""A part of the words in this machine's memory."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from daskw2v.devices.part import Part
from daskw2v.objectives.base import Columns, FloatArray, PartMemory


class CpuPart(Part):
    """A part trained by threads."""

    device = "cpu"

    def _start(self) -> None:
        self._pool = ThreadPoolExecutor(self._threads)

    def _put(self, values: Any) -> Any:
        return values

    def _back(self, values: Any) -> Any:
        return values

    def _run(self, n_batches: int, columns: Columns, memory: PartMemory, losses: FloatArray) -> None:
        def train(number: int) -> None:
            first, last = (n_batches * n // self._threads for n in (number, number + 1))
            self._kernel(columns, first, last, memory, self._prepared, losses)

        list(self._pool.map(train, range(self._threads)))

    def take(self, table: str) -> list[FloatArray]:
        """Return a table's rows and moments, and let go of them."""
        self._pool.shutdown()
        return super().take(table)
