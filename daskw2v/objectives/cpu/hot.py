"""Hot rows: a thread's own copies of the rows that all threads use most (Vuurens et al. 2016, algorithm 1).

Words are numbered by falling count, and so are the tree's inner nodes: the hottest rows of a table are its first.
Threads that write the same cache lines wait for each other; so each works on copies of them, and adds what it changed
to the table from time to time: the hottest rows most often.
"""

from typing import Any

from daskw2v.kernels.jit import inline, kernel
from daskw2v.objectives.cpu.steps import address, merge_rows

_OFTEN = 16  # rows of each flush


@kernel
def fetch_hot(tables: Any, scratch: Any) -> None:
    """Copy the hot rows of both tables to the thread's own place, and remember their values."""
    width, hot = tables.width, tables.hot
    n = hot.rows * width
    for table, shift, before in (
        (tables.source, hot.source, scratch.sources), (tables.output, hot.output, scratch.outputs)
    ):  # fmt: skip
        if shift:
            before[:] = table[:n]
            table[shift * width : shift * width + n] = before


@kernel
def flush_hot(tables: Any, scratch: Any, rows: Any) -> None:
    """Add the thread's changes of the first rows to both tables, and copy the current rows again."""
    width, hot = tables.width, tables.hot
    n = rows * width
    for table, shift, before in (
        (tables.source, hot.source, scratch.sources), (tables.output, hot.output, scratch.outputs)
    ):  # fmt: skip
        at = address(table)
        if shift:
            merge_rows(at, at + 4 * shift * width, address(before), n)


@inline
def rows_due(hot: Any, done: Any, step: Any) -> Any:
    """Return how many rows are to be flushed after `done` centers, the last `step` of them at once.

    Every flush has the first _OFTEN rows, every second one twice as many, every fourth four times: a row used half as
    often waits twice as long, so that all copies are about as far from the table, and a flush has few rows.
    """
    due = 0
    if hot.rows and done % hot.flush < step:
        number = done // hot.flush
        due = min(hot.rows, _OFTEN * (number & -number))
    return due
