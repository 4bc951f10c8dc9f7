"""Row blocks of tables on the cluster; rows never pass through the client.

The blocks of a model are futures. The tables of a version are rewritten by tasks, each for a block or a partition: the
rows of one p-th of the words, which `rotation` stores together.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from distributed import Client, Future

from daskw2v.cluster.shared_memory import share
from daskw2v.cluster.tasks import run_tasks
from daskw2v.models.stored import tables as stored
from daskw2v.models.stored.store import finish_tables
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut_range
from daskw2v.store.checksums import ChunkChecksums
from daskw2v.store.durability import durable
from daskw2v.store.storage import Store
from daskw2v.training.start.initial_rows import make_initial_rows
from daskw2v.types import Float32Array, Int64Array, RowIds

BLOCK_BYTES = 32 << 20
RowsChange = Callable[[str, RowIds, Float32Array], Float32Array]  # from a table's name, ids of rows, and rows, to rows


@dataclass(frozen=True)
class TableBlock:
    """A row block: the rows start..stop-1 of a table."""

    table: str
    start: int
    stop: int


BlockFutures = Mapping[TableBlock, Future]


def rows_per_block(vector_size: int) -> int:
    """Return the number of float32 rows of `vector_size` dimensions in a block of about 32 MB, at least 1."""
    return max(1, BLOCK_BYTES // (4 * vector_size))


def cut_tables(tables: Mapping[str, int], vector_size: int, cuts: Sequence[int] = ()) -> list[TableBlock]:
    """Return the row blocks of tables, table after table; an empty table has one block.

    Parameters
    ----------
    tables
        Number of rows of each table.
    vector_size
        Number of dimensions of a row.
    cuts
        Indices of rows at which a block of each table begins, besides the bounds by size.
    """
    blocks, step = list[TableBlock](), rows_per_block(vector_size)
    for table, rows in tables.items():
        inner = {*range(step, rows, step), *(cut for cut in cuts if cut < rows)}
        blocks += [TableBlock(table, start, stop) for start, stop in pairwise([0, *sorted(inner), rows])]
    return blocks


def initial_block(run: Run, block: TableBlock) -> Float32Array:
    """Task: return the rows of a block before training, shape (rows, D) float32."""
    return share(make_initial_rows(run, block.table, np.arange(block.start, block.stop)))


def join_blocks(*rows: Float32Array) -> Float32Array:
    """Return a table from the rows of its blocks, in their order."""
    return np.concatenate(rows)


def pick_block(
    blocks: Sequence[TableBlock], rows: Float32Array, number: int, wanted: Int64Array
) -> tuple[Int64Array, Float32Array]:
    """Return the indices in `wanted` of the rows that block `number` has, and these rows, as `TableParts.pick`."""
    block = blocks[number]
    first, last = np.searchsorted(wanted, [block.start, block.stop])
    return np.arange(first, last), np.asarray(rows)[wanted[first:last] - block.start]


def load_block(store: Store, block: TableBlock) -> Float32Array:
    """Task: return the rows of a block from the tables in a folder, shape (rows, D) float32."""
    return share(stored.read_table(store, block.table, block.start, block.stop))


@durable()
def save_block(store: Store, table: str, start: int, *rows: Float32Array) -> ChunkChecksums:
    """Task: write the rows of consecutive blocks, which fill chunks, from row `start` on; return checksums."""
    return stored.write_table_rows(store, table, start, np.asarray(rows[0]) if len(rows) == 1 else join_blocks(*rows))


def submit_blocks(
    client: Client, run: Run, store: Store | None, blocks: Iterable[TableBlock], key: str
) -> dict[TableBlock, Future]:
    """Return the futures of blocks that are read from a folder, or of blocks before training for None.

    Dask needs no earlier task to compute them again. `key` is a part of the tasks' keys.
    """
    job = initial_block, run, "initial", 0
    task, source, name, retries = job if store is None else (load_block, store, "load", 2)
    return {
        block: client.submit(task, source, block, key=f"{name}-{key}-{block.table}-{block.start}", retries=retries)
        for block in blocks
    }


def save_blocks(client: Client, store: Store, blocks: BlockFutures, vector_size: int, key: str) -> list[Future]:
    """Create the tables of all blocks in a folder, and submit the writing; return the futures of the checksums."""
    tables, by_chunk = dict[str, tuple[int, int]](), dict[tuple[str, int], list[Future]]()
    step = rows_per_block(vector_size)
    for block, future in blocks.items():
        tables[block.table] = max(block.stop, tables.get(block.table, (0, 0))[0]), vector_size
        by_chunk.setdefault((block.table, block.start // step * step), []).append(future)
    stored.create_model(store, tables, step)
    return [
        client.submit(save_block, store, table, start, *futures, key=f"save-{key}-{table}-{start}", retries=2)
        for (table, start), futures in by_chunk.items()
    ]


def declare_like(source: Store, target: Store, *, subwords: bool = False) -> None:
    """Create a version with empty tables like another version's; a version in the target folder is replaced.

    With `subwords`, the version is to have a network, too, as in `create_model`. Raises as `rewrite` does.
    """
    tables = {name: stored.open_table(source, name) for name in stored.table_names(source)}
    words, shapes = tables["input"], {name: table.shape for name, table in tables.items()}
    chunk_rows = max(table.chunk_rows for table in tables.values())  # a table of fewer rows has smaller chunks
    stored.create_model(target, shapes, chunk_rows, words.partitions.n, subwords=subwords)


def rewrite(client: Client, stage: str, change: RowsChange, source: Store, target: Store) -> None:
    """Write all tables of a version, with changed rows, to another version, which `declare_like` created.

    The tables are then finished; no manifest is written. Tasks read a version that does not change, so that Dask may
    run them again.

    Parameters
    ----------
    client, stage
        The cluster, and the name of the tasks.
    change
        Function from a table's name, ids of rows, and these rows, shape (n, D), to the rows to be written; importable
        on the workers.
    source, target
        The folders of the version that is read, and of the version that is written.

    Raises
    ------
    StoreError
        If a part of the source is missing or damaged.
    """
    jobs: dict[str, tuple[Any, ...]] = {}
    for name in stored.table_names(source):
        table, job = stored.open_table(source, name), (change, source, target, name)
        if table.partitions.n > 1:
            jobs |= {f"{name}-{p}": (*job, p) for p in range(table.partitions.n)}
        else:
            step = max(1, rows_per_block(table.shape[1]) // table.chunk_rows) * table.chunk_rows
            jobs |= {f"{name}-{start}": (*job, start, stop) for start, stop in cut_range(0, len(table), step)}
    finish_tables(target, [written for _, written in run_tasks(client, stage, _rewrite, jobs)])


def _rewrite(
    change: RowsChange, source: Store, target: Store, name: str, start: int, stop: int | None = None
) -> ChunkChecksums:
    """Task: write rows start..stop-1 of a table, or the partition `start` if `stop` is None; return checksums."""
    table = stored.open_table(source, name)
    if stop is None:
        rows = stored.read_partition(source, name, start)
        return stored.write_partition(target, name, start, change(name, table.partitions.words(start), rows))
    return stored.write_table_rows(target, name, start, change(name, np.arange(start, stop), table[start:stop]))
