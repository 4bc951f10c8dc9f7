"""Rows of a table that a task leaves in the memory of a GPU, for the next task of this process."""

from typing import Any

import numpy as np
import numpy.typing as npt
from dask.sizeof import sizeof

from daskw2v.kernels import buffers
from daskw2v.types import Float32Array


class GpuRows:
    """Rows of a table on a GPU, as the result of a task. They must not be changed.

    The rows become a NumPy array, shape (rows, D) float32, where they are sent, written or passed to `numpy.asarray`.

    Parameters
    ----------
    values
        The rows on the GPU, one after the other, padded to complete cache lines, float32.
    shape
        Number of rows, and their length D.
    gpu
        The GPU: a context manager that makes it the calling thread's current GPU.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, values: Any, shape: tuple[int, int], gpu: Any) -> None:
        self.values, self.shape, self._gpu = values, shape, gpu

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        with self._gpu:
            rows: Float32Array = self.values.copy_to_host(buffers.pool.empty(len(self.values)))
        unpadded = rows.reshape(len(self), -1)[:, : self.shape[1]] if len(self) else rows.reshape(self.shape)
        return np.ascontiguousarray(unpadded, dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return np.asarray, (np.asarray(self),)

    @property
    def nbytes(self) -> int:
        """Bytes on the GPU."""
        return int(self.values.nbytes)


@sizeof.register(GpuRows)  # type: ignore[untyped-decorator]
def _(rows: GpuRows) -> int:
    return rows.nbytes  # Dask runs a task where most of its arguments are
