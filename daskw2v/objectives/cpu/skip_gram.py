"""Skip-gram on the CPU: each context of a window meets all targets."""

from typing import Any

from daskw2v.kernels.jit import inline
from daskw2v.kernels.simd import SLOTS
from daskw2v.objectives.cpu.centers import CenterTrainer, Targets, make_center_trainer
from daskw2v.objectives.cpu.steps import MAX_TARGETS, dots, gradients_one, gradients_two, load_int64, updates


def skip_gram(targets: Targets) -> CenterTrainer:
    """Return a skip-gram trainer, as `make_center_trainer` does; its examples are pairs of a context and a center."""
    return make_center_trainer(targets, train_contexts)


@inline
def train_contexts(scratch: Any, contexts: Any, n: Any, targets: Any, width: Any, alpha: Any, tile: Any) -> Any:
    """Train n contexts against the targets of their window, group by group; return n.

    Parameters
    ----------
    scratch
        `objectives.cpu.scratch.ScratchAddresses`.
    contexts, n
        Address of the list of the addresses of the contexts' rows, and its length.
    targets
        `objectives.cpu.centers.WindowTargets`.
    width, alpha
        Row length in floats, and the learning rate.
    tile
        Tuple as long as a group has targets.
    """
    for group in range(targets.groups):
        _train_group(scratch, contexts, n, targets, group * len(tile), width, alpha, tile)
    return n


@inline
def _train_group(
    scratch: Any, contexts: Any, n: Any, targets: Any, first: Any, width: Any, alpha: Any, tile: Any
) -> None:
    """Train n contexts against a group of a window's targets, from index `first` on."""
    rows, signs = targets.rows + first * targets.stride * 8, targets.signs + first * 4
    ahead = rows + targets.ahead
    for i in range(0, n - 3, 4):
        a, b = load_int64(contexts, i), load_int64(contexts, i + 1)
        c, d = load_int64(contexts, i + 2), load_int64(contexts, i + 3)
        dots((a, b, c, d), rows, ahead, targets.stride, width, scratch.values + i * (4 * MAX_TARGETS), tile)
    i = n // 4 * 4
    if n & 2:
        a, b = load_int64(contexts, i), load_int64(contexts, i + 1)
        dots((a, b), rows, ahead, targets.stride, width, scratch.values + i * (4 * MAX_TARGETS), tile)
    if n & 1:
        a = load_int64(contexts, n - 1)
        dots((a,), rows, ahead, targets.stride, width, scratch.values + (n - 1) * (4 * MAX_TARGETS), tile)
    even = n // 2 * SLOTS
    gradients_two(scratch.values, even, signs, alpha, scratch.mantissa, scratch.exponent, tile)
    if n & 1:
        gradients_one(scratch.values + 4 * even, SLOTS, signs, alpha, scratch.mantissa, scratch.exponent, tile)
    i = 0
    while i < n:
        values = scratch.values + i * (4 * MAX_TARGETS)
        remaining = n - i
        a = load_int64(contexts, i)
        b = load_int64(contexts, i + 1) if remaining > 1 else a
        c = load_int64(contexts, i + 2) if remaining > 3 else a
        d = load_int64(contexts, i + 3) if remaining > 3 else a
        if (a != b) & (a != c) & (a != d) & (b != c) & (b != d) & (c != d):
            updates((a, b, c, d), rows, ahead, targets.stride, width, values, tile)
            i += 4
        elif a != b:
            updates((a, b), rows, ahead, targets.stride, width, values, tile)
            i += 2
        else:
            updates((a,), rows, ahead, targets.stride, width, values, tile)
            i += 1
