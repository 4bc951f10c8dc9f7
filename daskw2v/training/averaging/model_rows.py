"""Both tables between two rounds, for who looks at them."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from distributed import Future

from daskw2v.training.averaging.replica_task import Trained
from daskw2v.training.loop.strategy import ModelRows, TableParts
from daskw2v.training.start.blocks import TableBlock, join_blocks, pick_block
from daskw2v.types import Float32Array, Int64Array


def model_rows(blocks: Mapping[TableBlock, Future], left: Future | None) -> ModelRows:
    """Return the tables that blocks make, or what the only replica left, which is `Trained` with the same blocks."""
    numbered = dict[str, dict[int, TableBlock]]()
    for number, block in enumerate(blocks):
        numbered.setdefault(block.table, {})[number] = block
    if left is None:
        return {
            table: TableParts([blocks[b] for b in own.values()], partial(pick_block, [*own.values()]), join_blocks)
            for table, own in numbered.items()
        }
    return {
        table: TableParts([left], partial(_pick_left, own), partial(_join_left, [*own]))
        for table, own in numbered.items()
    }


def _join_left(numbers: Sequence[int], trained: Trained) -> Float32Array:
    """Return the table that some blocks of the only replica make, in this machine's memory."""
    return join_blocks(*(trained.rows[number] for number in numbers))


def _pick_left(
    blocks: Mapping[int, TableBlock], trained: Trained, _: int, wanted: Int64Array
) -> tuple[Int64Array, Float32Array]:
    """Return some rows of a table of which the only replica has these blocks, as `TableParts.pick` does."""
    own = [*blocks.values()]
    found = [pick_block(own, trained.rows[number], n, wanted) for n, number in enumerate(blocks)]
    return np.concatenate([which for which, _ in found]), np.concatenate([rows for _, rows in found])
