"""Bytes of rows that a kernel for NVIDIA GPUs asks for, counted from the text: every read, and every addition."""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.simd import padded
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.objectives.tree import PreparedTree
from daskw2v.sampling.segments import Segment
from daskw2v.vocabulary.huffman import nodes_of
from tests.support.cuda.cases import rule_of
from tests.support.windows import count_contexts, reaches


class Rows(NamedTuple):
    """Rows read from tables and added to them, a word on average."""

    read: float
    added: float

    def bytes_of(self, params: Params) -> float:
        """Return the bytes of all of them."""
        return 4.0 * padded(params.vector_size) * (self.read + self.added)


def rows_of(
    params: Params,
    segment: Segment,
    prepared: Any,
    hot_rows: int = 0,
    *,
    ring: bool = True,
    top: int = 0,
    flush: int = 1,
) -> Rows:
    """Return the rows of a word of a segment, all of whose tokens are centers.

    Borders of pieces add those of a window to a thousand words or more, which are left out.

    Parameters
    ----------
    prepared
        The objective's `prepare`'s result.
    hot_rows
        The first words' contexts are read and added in each window.
    ring
        Whether others wait in shared memory, and so are read and added once for all windows that they are in.
    top, flush
        The first nodes of a tree wait there, too, and are read and added after so many windows.
    """
    contexts = count_contexts(segment, params)
    n, hidden, met = len(contexts), rule_of(params.objective.name).as_one, contexts > 0
    if isinstance(prepared, PreparedTree):
        below_top = np.concatenate([[0], np.cumsum(nodes_of(prepared.tree.steps) >= top)])
        targets = np.diff(below_top[prepared.tree.starts])[segment.tokens]
    else:
        of = SharedNegatives.of(params)
        targets = np.full(n, 1 + of.negative)
        if of.negative_sharing == "pair" and not hidden:
            targets = targets * contexts
    near = int(targets[met].sum() if hidden else targets.sum())
    near += top * (n // flush)
    kept = segment.tokens >= hot_rows if ring else np.zeros(n, bool)
    met_hot = count_met(segment, params, ~kept)
    # CBOW reads a context to sum it up, and again to move it
    read = near + int(kept.sum()) + met_hot * (2 if hidden else 1)
    return Rows(read / n, (near + int(kept.sum()) + met_hot) / n)


def count_met(segment: Segment, params: Params, which: Any) -> int:
    """Return how many contexts of all windows are among some tokens."""
    before = np.concatenate([[0], np.cumsum(which)])
    place, lengths = np.arange(len(which)), np.diff(segment.bounds)
    low, high = np.repeat(segment.bounds[:-1], lengths), np.repeat(segment.bounds[1:], lengths)
    reach = reaches(segment, params)
    left, right = np.maximum(low, place - reach), np.minimum(high, place + reach + 1)
    return int((before[right] - before[left] - which).sum())
