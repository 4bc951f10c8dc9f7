"""SGNS in float64 NumPy: the truth that every kernel is held to."""

from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.sampling.rng import GOLDEN, draws, mix

_U64 = np.uint64


def negatives_of(table: npt.NDArray[np.uint64], key: np.uint64, position: int, n: int) -> npt.NDArray[np.int64]:
    """Return the n negatives of the window at a corpus position, shape (n,) int64."""
    state = draws(key, np.array([position], _U64))
    bits = mix.py_func(state + np.arange(1, n + 1, dtype=_U64) * GOLDEN)
    slots = ((bits >> _U64(32)) * _U64(len(table))) >> _U64(32)
    entries = table[slots]
    own = (bits & _U64(0xFFFFFFFF)) < (entries >> _U64(32))
    return np.asarray(np.where(own, slots, entries & _U64(0xFFFFFFFF)), np.int64)


def reach_of(update: Any, position: int) -> int:
    """Return how far the window at a corpus position reaches to either side."""
    if not update.shrink_windows:
        return int(update.window)
    bits = int(draws(update.window_key, np.array([position], _U64))[0])
    return int(update.window) - ((bits >> 32) * int(update.window) >> 32)


def tile(
    source: npt.NDArray[np.float64],
    output: npt.NDArray[np.float64],
    contexts: list[int],
    targets: npt.NDArray[np.int64],
    signs: npt.NDArray[np.float64],
    alpha: float,
) -> float:
    """Train one tile in place and return its loss.

    Parameters
    ----------
    source, output
        Tables of rows, shapes (V, D) float64.
    contexts
        One, two or four distinct rows of `source`.
    targets, signs
        Rows of `output`, and +1, -1 or 0 for each, shapes (T,).
    alpha
        Learning rate.
    """
    x = source[contexts].copy()
    logits = np.clip(signs * (x @ output[targets].T), -30.0, 30.0)
    p = 1.0 / (1.0 + np.exp(-logits))
    gradient = alpha * signs * (1.0 - p)
    for t, target in enumerate(targets):
        source[contexts] += gradient[:, t, None] * output[target]
        output[target] += gradient[:, t] @ x
    return float(-(np.abs(signs) * np.log(p)).sum())


def train(
    segment: Any,
    first: int,
    last: int,
    source: npt.NDArray[np.float64],
    output: npt.NDArray[np.float64],
    update: Any,
    noise: npt.NDArray[np.uint64],
    group: int,
) -> tuple[int, float]:
    """Train the centers first..last-1 of a segment; arguments and results as in `cpu.train`.

    `source` and `output` are (V, D) float64 here; `group` is the number of targets a tile takes. Where there are
    more targets than that, tile follows tile and sees the contexts as the one before left them.
    """
    pairs, loss = 0, 0.0
    for center in range(first, last):
        word, position = int(segment.tokens[center]), int(segment.positions[center])
        sentence = int(np.searchsorted(segment.bounds, center, side="right")) - 1
        reach = reach_of(update, position)
        start = max(int(segment.bounds[sentence]), center - reach)
        stop = min(int(segment.bounds[sentence + 1]), center + reach + 1)
        contexts = [int(segment.tokens[i]) for i in range(start, stop) if i != center]
        negatives = negatives_of(noise, update.negative_key, position, update.negative)
        targets = np.concatenate([[word], negatives])
        signs = np.concatenate([[1.0], np.where(negatives == word, 0.0, -1.0)])
        alpha = float(np.float32(update.alpha + update.slope * (position - update.origin)))
        pairs += len(contexts)
        while contexts:
            taken = next(n for n in (4, 2, 1) if len(set(contexts[:n])) == n)
            for g in range(0, len(targets), group):
                loss += tile(source, output, contexts[:taken], targets[g : g + group], signs[g : g + group], alpha)
            del contexts[:taken]
    return pairs, loss
