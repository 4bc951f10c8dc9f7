"""A model on the cluster: row blocks of its tables as futures, which never pass through the client."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from distributed import Client, Future

from daskw2v.cluster.shared_memory import share
from daskw2v.models.stored.tables import create_model, read_table, write_table_rows
from daskw2v.sampling.run import Run
from daskw2v.store.checksums import Written
from daskw2v.store.durability import durable
from daskw2v.store.storage import Store
from daskw2v.training.start.initial_rows import first_rows
from daskw2v.types import Float32Array, Int64Array

BLOCK_BYTES = 32 << 20


@dataclass(frozen=True)
class TableBlock:
    """Rows start..stop-1 of a table."""

    table: str
    start: int
    stop: int


BlockFutures = Mapping[TableBlock, Future]


def rows_per_block(vector_size: int) -> int:
    """Return how many rows of float32 make a block of some 32 MB."""
    return max(1, BLOCK_BYTES // (4 * vector_size))


def cut_tables(tables: Mapping[str, int], vector_size: int, cuts: Sequence[int] = ()) -> list[TableBlock]:
    """Cut tables (their numbers of rows by name) into row blocks, table after table; an empty one has a block too.

    A block begins at each of `cuts`, too.
    """
    return [
        TableBlock(table, start, stop)
        for table, rows in tables.items()
        for start, stop in pairwise(_bounds(rows, rows_per_block(vector_size), cuts))
    ]


def _bounds(rows: int, step: int, cuts: Sequence[int]) -> list[int]:
    inner = {*range(step, rows, step), *(cut for cut in cuts if cut < rows)}
    return [0, *sorted(inner), rows]


def initial_block(run: Run, block: TableBlock) -> Float32Array:
    """Task: the block's rows before training."""
    return share(first_rows(run, block.table, np.arange(block.start, block.stop)))


def join_blocks(*rows: Float32Array) -> Float32Array:
    """Return the table that blocks of rows make, in their order."""
    return np.concatenate(rows)


def pick_block(
    blocks: Sequence[TableBlock], rows: Float32Array, number: int, wanted: Int64Array
) -> tuple[Int64Array, Float32Array]:
    """Return some rows of one of a table's blocks, as `TableParts.pick` does."""
    block = blocks[number]
    first, last = np.searchsorted(wanted, [block.start, block.stop])
    return np.arange(first, last), np.asarray(rows)[wanted[first:last] - block.start]


def load_block(store: Store, block: TableBlock) -> Float32Array:
    """Task: the block's rows as a store holds them."""
    return share(read_table(store, block.table, block.start, block.stop))


@durable()
def save_block(store: Store, table: str, start: int, *rows: Float32Array) -> Written:
    """Task: write consecutive blocks that lie along the chunks, so all may be written at once; return checksums."""
    return write_table_rows(store, table, start, np.asarray(rows[0]) if len(rows) == 1 else join_blocks(*rows))


def load_blocks(client: Client, store: Store, blocks: Iterable[TableBlock], key: str) -> dict[TableBlock, Future]:
    """Return futures of blocks that begin a new chain: nothing behind them can be asked for again."""
    return {
        block: client.submit(load_block, store, block, key=f"load-{key}-{block.table}-{block.start}", retries=2)
        for block in blocks
    }


def save_blocks(client: Client, store: Store, blocks: BlockFutures, vector_size: int, key: str) -> list[Future]:
    """Declare a store's tables and write all blocks; return the futures of the writes."""
    tables: dict[str, tuple[int, int]] = {}
    for block in blocks:
        rows = max(block.stop, tables.get(block.table, (0, 0))[0])
        tables[block.table] = (rows, vector_size)
    step = rows_per_block(vector_size)
    create_model(store, tables, step)
    by_chunk: dict[tuple[str, int], list[Future]] = {}
    for block, future in blocks.items():
        by_chunk.setdefault((block.table, block.start // step * step), []).append(future)
    return [
        client.submit(save_block, store, table, start, *futures, key=f"save-{key}-{table}-{start}", retries=2)
        for (table, start), futures in by_chunk.items()
    ]
