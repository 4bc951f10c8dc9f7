"""Writes tables of a version as the strategies do."""

from daskw2v.models.stored.tables import create_model, write_partition, write_table_rows
from daskw2v.store.storage import Store
from daskw2v.types import Float32Array
from daskw2v.vocabulary.partition import Partitions


def write_input(store: Store, rows: Float32Array, row_block: int, n_partitions: int) -> None:
    """Create a version with the table `input`, in blocks of rows or, if there are several, in partitions."""
    create_model(store, {"input": rows.shape}, row_block, n_partitions)
    if n_partitions == 1:
        for start in range(0, len(rows), row_block):
            write_table_rows(store, "input", start, rows[start : start + row_block])
    else:
        for part in range(n_partitions):
            write_partition(store, "input", part, rows[Partitions(len(rows), n_partitions).words(part)])
