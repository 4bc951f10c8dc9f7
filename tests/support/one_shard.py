"""Arrays in one file each, a Zarr shard."""

from typing import Any

import numpy.typing as npt
import zarr

from daskw2v.store.arrays import create_array


def write_shard(
    group: zarr.Group, name: str, values: npt.NDArray[Any], chunk_rows: int, attributes: dict[str, Any] | None = None
) -> None:
    """Write a whole array, whose chunks lie in one shard."""
    array = create_array(
        group, name, values.shape, values.dtype, chunk_rows, shard_rows=len(values), attributes=attributes, held=True
    )
    array[...] = values
    array.finish()
