"""A part of the words in the memory of an NVIDIA GPU: that which CUDA gives this process first."""

from typing import Any

import numpy as np

from daskw2v.cuda import load
from daskw2v.devices.part import Part
from daskw2v.objectives.base import Columns, PartMemory


class CudaPart(Part):
    """A part trained by a GPU: tables lie there from the first column of a task to its last.

    Raises
    ------
    MissingExtraError, ClusterError
        As `cuda.check_gpu` does.
    """

    device = "cuda"

    def _start(self) -> None:
        self._cuda = load("numba.cuda")

    def _put(self, values: Any) -> Any:
        return self._cuda.to_device(np.ascontiguousarray(values))

    def _back(self, values: Any) -> Any:
        return values.copy_to_host()

    def _run(self, n_batches: int, columns: Columns, memory: PartMemory, losses: Any) -> None:
        if n_batches:
            self._kernel(columns, 0, n_batches, memory, self._prepared, losses)
