"""Tables of a version written anew on the cluster, a block or a partition of their rows a task."""

from collections.abc import Callable
from typing import Any

import numpy as np
from distributed import Client

from daskw2v.cluster.tasks import run_tasks
from daskw2v.models.stored.attempts import finish_tables
from daskw2v.models.stored.tables import (
    create_model,
    open_table,
    read_partition,
    table_names,
    write_partition,
    write_table_rows,
)
from daskw2v.sampling.segments import cut
from daskw2v.store.checksums import Written
from daskw2v.store.storage import Store
from daskw2v.training.start.blocks import rows_per_block
from daskw2v.types import Float32Array, RowIds

RowsChange = Callable[[str, RowIds, Float32Array], Float32Array]  # of a table's name, its rows' ids, and the rows


def declare_like(source: Store, target: Store, *, subwords: bool = False) -> None:
    """Declare a version with the tables of another; what lay at its URL before is replaced; raises as `rewrite` does.

    `subwords`: whether it is to have a network too, as `create_model` says.
    """
    tables = {name: open_table(source, name) for name in table_names(source)}
    words, shapes = tables["input"], {name: table.shape for name, table in tables.items()}
    chunk_rows = max(table.chunk_rows for table in tables.values())  # a table of fewer rows has smaller chunks
    create_model(target, shapes, chunk_rows, words.partitions.n, subwords=subwords)


def rewrite(client: Client, stage: str, change: RowsChange, source: Store, target: Store) -> None:
    """Write all tables of a version, changed, into another one, which was declared like it.

    Tasks read what stays as it is: Dask may run them again.

    Parameters
    ----------
    client, stage
        Where to run, and what the tasks are called.
    change
        Returns the rows to be written; importable on the workers.
    source, target
        From where, and to where.

    Raises
    ------
    StoreError
        If something of the source is missing or damaged.
    """
    jobs: dict[str, tuple[Any, ...]] = {}
    for name in table_names(source):
        table = open_table(source, name)
        if table.partitions.n > 1:
            jobs |= {f"{name}-{p}": (change, source, target, name, p) for p in range(table.partitions.n)}
            continue
        step = max(1, rows_per_block(table.shape[1]) // table.chunk_rows) * table.chunk_rows
        jobs |= {f"{name}-{start}": (change, source, target, name, start, stop)
                 for start, stop in cut(0, len(table), step)}  # fmt: skip
    finish_tables(target, [written for _, written in run_tasks(client, stage, _rewrite, jobs)])


def _rewrite(
    change: RowsChange, source: Store, target: Store, name: str, start: int, stop: int | None = None
) -> Written:
    """Task: write rows start:stop of a table, or those of partition `start`; return their checksums."""
    table = open_table(source, name)
    if stop is None:
        rows = read_partition(source, name, start)
        return write_partition(target, name, start, change(name, table.partitions.words(start), rows))
    return write_table_rows(target, name, start, change(name, np.arange(start, stop), table[start:stop]))
