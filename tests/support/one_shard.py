"""Arrays in one file each, a Zarr shard."""

from daskw2v.store.arrays import create_array


def write_shard(group, name, values, chunk_rows, attributes=None):
    """Write a whole array, whose chunks lie in one shard."""
    array = create_array(
        group, name, values.shape, values.dtype, chunk_rows, shard_rows=len(values), attributes=attributes, held=True
    )
    array[...] = values
    array.finish()
