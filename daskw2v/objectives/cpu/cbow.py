"""CBOW on the CPU: the contexts of a window together meet its targets, as one hidden vector."""

from typing import Any

from daskw2v.kernels.jit import inline
from daskw2v.objectives.cpu.centers import Targets, over_centers
from daskw2v.objectives.cpu.hidden import gather, scatter, train_hidden


def cbow(targets: Targets, mean: bool) -> Any:
    """Return the kernel, as `over_centers` does; its examples are windows with a context.

    A hidden vector is the mean of a window's contexts, or their sum.
    """

    @inline
    def train_window(scratch: Any, contexts: Any, n: Any, targets: Any, width: Any, alpha: Any, tile: Any) -> Any:
        update, zeros = scratch.zeros - 4 * width, scratch.zeros
        if n > 0:
            gather(contexts, n, width, mean, scratch.hidden, zeros)
            train_hidden(scratch, scratch.vectors, 1, update, targets, targets.rows, width, alpha, (0,), tile)
            scatter(contexts, n, width, mean, update)
        return min(n, 1)

    return over_centers(targets, train_window)
