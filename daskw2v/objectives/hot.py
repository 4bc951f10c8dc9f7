"""Hot rows: a thread's own copies of the rows that all threads use most (Vuurens et al. 2016, algorithm 1).

Words are numbered by falling count, and so are the tree's inner nodes: the hottest rows of a table are its first.
Threads that write the same cache lines wait for each other; so each works on copies of them, and adds
what it changed to the table from time to time.
"""

from typing import Any

from daskw2v.jit import kernel
from daskw2v.objectives.steps import address, merge_rows


@kernel
def fetch_hot(source: Any, output: Any, width: Any, hot: Any, scratch: Any) -> None:
    """Copy the hot rows of both tables to the thread's own place, and keep them as they are."""
    n = hot.rows * width
    for table, shift, before in ((source, hot.source, scratch.sources), (output, hot.output, scratch.outputs)):
        before[:] = table[:n]
        table[shift * width : shift * width + n] = before


@kernel
def flush_hot(source: Any, output: Any, width: Any, hot: Any, scratch: Any) -> None:
    """Add the thread's changes to both tables, and take their rows as they now are."""
    n = hot.rows * width
    for table, shift, before in ((source, hot.source, scratch.sources), (output, hot.output, scratch.outputs)):
        at = address(table)
        merge_rows(at, at + 4 * shift * width, address(before), n)
