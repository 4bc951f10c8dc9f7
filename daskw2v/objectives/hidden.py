"""The hidden vector of CBOW: what a window's contexts say together, and how they share its move."""

from typing import Any

import numpy as np

from daskw2v.jit import inline
from daskw2v.objectives.steps import add_row, load_int64


@inline
def gather(contexts: Any, n: Any, width: Any, mean: Any, hidden: Any) -> None:
    """Set the row at `hidden`, and the one behind it, to the mean, or the sum, of n contexts."""
    add_row(hidden, hidden, np.float32(-1.0), width)
    share = np.float32(1.0 / n if mean else 1.0)
    for i in range(n):
        add_row(hidden, load_int64(contexts, i), share, width)
    before = hidden + 4 * width
    add_row(before, before, np.float32(-1.0), width)
    add_row(before, hidden, np.float32(1.0), width)


@inline
def scatter(contexts: Any, n: Any, width: Any, mean: Any, hidden: Any) -> None:
    """Add what the row at `hidden` moved away from the one behind it to each of n contexts.

    As in word2vec.c and gensim, the contexts of a mean each take all of the move, those of a sum a share of it.
    """
    add_row(hidden, hidden + 4 * width, np.float32(-1.0), width)
    share = np.float32(1.0 if mean else 1.0 / n)
    for i in range(n):
        add_row(load_int64(contexts, i), hidden, share, width)
