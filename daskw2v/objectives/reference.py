"""The common parts of the references, in float64 NumPy, which tests compare every kernel with."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from daskw2v.config.params import Params
from daskw2v.features.words import WordFeatures
from daskw2v.kernels.rng import GOLDEN, draws, mix
from daskw2v.objectives.base import Rate
from daskw2v.objectives.noise import BATCH, Markets, PreparedNoise, make_negatives
from daskw2v.objectives.settings import ContextsTogether
from daskw2v.objectives.windows import PREFIX_PERIOD, Prefixes, Windows, make_windows
from daskw2v.sampling.segments import Segment
from daskw2v.types import Float64Array, Int64Array, UInt64Array

_U64 = np.uint64

Rows = Float64Array  # of a table, shape (n, D)
Goals = tuple[Int64Array, Float64Array]  # rows of the output table, shape (T,), and their signs: 1, -1 or 0


class Window(NamedTuple):
    """A window: word and position in the corpus, indices and words of its contexts, learning rate, trained columns.

    The indices are indices of tokens in the segment.
    """

    word: int
    position: int
    indices: list[int]
    contexts: list[int]
    alpha: float
    columns: slice = slice(None)


class WindowRule(NamedTuple):
    """The training of a window by an objective.

    Parameters
    ----------
    goals
        Function (prepared, epoch, window, number, positions) that returns the targets that all contexts of a window
        share, a list of one, or the targets of each context. `prepared` is the result of `Objective.prepare`, `number`
        the index of the window in a range of centers, and `positions` are these centers' positions in the corpus.
    as_one
        Whether the contexts are trained together, as one hidden vector (CBOW).
    size
        Function from the Params and the number of targets to the targets of a group, for contexts trained apart.
    """

    goals: Callable[[Any, int, Window, int, Int64Array], list[Goals]]
    as_one: bool
    size: Callable[[Params, int], int] = lambda _, n: n

    def train(
        self, segment: Segment, first: int, last: int, source: Rows, output: Rows, rate: Rate, epoch: int, prepared: Any
    ) -> tuple[int, float]:
        """Train the centers first..last-1 in place, in tables of (rows, D) float64.

        Return the number of examples, which are pairs, or windows with a context if `as_one`, and their summed loss.
        """
        params, examples, loss = prepared.params, 0, 0.0
        positions = segment.positions[first:last]
        for number, window in enumerate(list_windows(segment, first, last, make_windows(params, rate, epoch))):
            contexts, alpha = window.contexts, window.alpha
            if not contexts:
                continue
            x, y = source[:, window.columns], output[:, window.columns]
            goals = self.goals(prepared, epoch, window, number, positions)
            examples += 1 if self.as_one else len(contexts)
            if self.as_one:
                ((targets, signs),) = goals
                mean = ContextsTogether.of(params).cbow_mean
                loss += train_hidden(x, [contexts], y, (targets, signs[None]), [], alpha, mean)
                continue
            for group, goal in zip(group_contexts(contexts, goals), goals, strict=True):
                loss += train_targets(x, group, y, goal, alpha, self.size(params, len(goal[0])))
        return examples, loss


def group_contexts(contexts: list[int], goals: list[Goals]) -> list[list[int]]:
    """Return the contexts that meet each of the goals: all contexts for a single one, else one context each."""
    return [contexts] if len(goals) == 1 else [[context] for context in contexts]


def list_windows(segment: Segment, first: int, last: int, windows: Windows) -> Iterator[Window]:
    """Yield the window of each center first..last-1 of a segment, also windows without a context."""
    for center in range(first, last):
        position = int(segment.positions[center])
        sentence = int(np.searchsorted(segment.bounds, center, side="right")) - 1
        reach = window_reach(windows, position)
        start = max(int(segment.bounds[sentence]), center - reach)
        stop = min(int(segment.bounds[sentence + 1]), center + reach + 1)
        indices = [i for i in range(start, stop) if i != center]
        contexts = [int(segment.tokens[i]) for i in indices]
        alpha = float(np.float32(windows.alpha + windows.slope * (position - windows.origin)))
        columns = window_columns(windows.prefixes, position)
        yield Window(int(segment.tokens[center]), position, indices, contexts, alpha, columns)


def window_columns(prefixes: Prefixes, position: int) -> slice:
    """Return the slice of columns that the window at a corpus position trains."""
    bits = int(draws(prefixes.key, np.array([position], _U64))[0])
    drawn = (bits >> 32) * PREFIX_PERIOD * prefixes.n >> 32
    return slice(prefixes.sizes[drawn]) if drawn < prefixes.n else slice(None)


def window_reach(windows: Windows, position: int) -> int:
    """Return the number of words on either side that the window at a corpus position reaches."""
    if not windows.shrink_windows:
        return windows.window
    bits = int(draws(windows.key, np.array([position], _U64))[0])
    return windows.window - ((bits >> 32) * windows.window >> 32)


def draw_pair_targets(table: UInt64Array, key: np.uint64, window: Window, negative: int, pair: int = 0) -> Goals:
    """Return a window's word and negatives, and their signs, shapes (1 + negative,).

    If each context draws negatives, `pair` is the index of the context.
    """
    return _add_signs(window.word, pick_words(table, _random_bits(key, window.position, pair * negative, negative)))


def draw_goals(
    prepared: PreparedNoise, epoch: int, window: Window, pair: int = 0, position: int | None = None
) -> Goals:
    """Return the targets of a window, the word, negatives and negatives of its market, and their signs, shapes (T,).

    Negatives of the market are drawn at the window's position, others at `position`, by default the same. `pair` is as
    in `draw_pair_targets`.
    """
    negatives = make_negatives(prepared, epoch)
    n, further, key = negatives.negative, negatives.market_negative, negatives.key
    first = pair * (n + further)
    drawn = pick_words(negatives.table, _random_bits(key, window.position if position is None else position, first, n))
    near = _pick_in_market(negatives.markets, window.word, _random_bits(key, window.position, first + n, further))
    return _add_signs(window.word, np.concatenate([drawn, near]))


def _random_bits(key: np.uint64, position: int, first: int, n: int) -> UInt64Array:
    """Return the 64 random bits of the draws first + 1..first + n at a position, shape (n,)."""
    numbers = np.arange(first + 1, first + n + 1, dtype=_U64)
    return np.asarray(mix.py_func(draws(key, np.array([position], _U64)) + numbers * GOLDEN))


def _add_signs(word: int, negatives: Int64Array) -> Goals:
    """Return a word and its negatives, and their signs: 1, then -1, or 0 for a negative that is the word."""
    signs = np.where(negatives == word, 0.0, -1.0)
    return np.concatenate([[word], negatives]), np.concatenate([[1.0], signs])


def _pick_in_market(markets: Markets, word: int, bits: UInt64Array) -> Int64Array:
    """Return the words that random bits choose from the market of a word, shape of `bits`."""
    if not len(bits):
        return np.empty(0, np.int64)
    first, n = int(markets.spans[word] >> _U64(32)), int(markets.spans[word] & _U64(0xFFFFFFFF))
    table = markets.slots[first : first + n] - _U64(first)  # the market alone
    return markets.words[first + pick_words(table, bits)].astype(np.int64)


def pick_words(table: UInt64Array, bits: UInt64Array) -> Int64Array:
    """Return the indices that random bits choose by an alias table, of the shape of `bits`."""
    slots = ((bits >> _U64(32)) * _U64(len(table))) >> _U64(32)
    entries = table[slots]
    is_kept = (bits & _U64(0xFFFFFFFF)) < (entries >> _U64(32))
    return np.where(is_kept, slots, entries & _U64(0xFFFFFFFF)).astype(np.int64)


def gradient(dots: Float64Array, signs: Float64Array, alpha: float) -> tuple[Float64Array, float]:
    """Return alpha * s * (1 - p) of each dot product, where p is sigmoid(s * dot), and the sum of the losses -log p.

    A sign s of 0 adds no loss. `signs` broadcasts to the shape of `dots`.
    """
    p = 1.0 / (1.0 + np.exp(-np.clip(signs * dots, -30.0, 30.0)))
    return alpha * signs * (1.0 - p), -float((np.abs(signs) * np.log(p)).sum())


def train_targets(source: Rows, contexts: list[int], output: Rows, goals: Goals, alpha: float, size: int) -> float:
    """Train contexts against targets in place and return the loss.

    Parameters
    ----------
    source, output
        Tables of rows, shapes (rows, D) float64.
    contexts
        Numbers of rows of `source`. Four different rows are updated together, or two, or one.
    goals
        Numbers of rows of `output`, and +1, -1 or 0 for each, shapes (T,).
    alpha
        Learning rate.
    size
        Targets in a group. Groups are trained one after another.
    """
    (targets, signs), loss = goals, 0.0
    for g in range(0, len(targets), size):
        group, i = targets[g : g + size], 0
        gain, lost = gradient(source[contexts] @ output[group].T, signs[g : g + size], alpha)
        loss += lost
        while i < len(contexts):
            n = next(n for n in (4, 2, 1) if len(set(contexts[i : i + n])) == n)
            batch = contexts[i : i + n]
            x = source[batch].copy()
            for t, target in enumerate(group):
                source[batch] += gain[i : i + n, t, None] * output[target]
                output[target] += gain[i : i + n, t] @ x
            i += n
    return loss


def train_rows(
    source: Rows, contexts: Int64Array, output: Rows, goals: Goals, own: Goals, alpha: float, size: int
) -> float:
    """Train rows in place against targets that all of them meet, and one target each; return the loss.

    Within a group of targets all dot products are computed first; then rows move, BATCH at a time.

    Parameters
    ----------
    source, output, alpha, size
        As in `train_targets`.
    contexts
        Numbers of n rows of `source`, shape (n,). A row that is listed twice moves twice.
    goals
        Rows of `output` that all contexts meet, shape (T,), and +1, -1 or 0 for each context and row, shape (n, T).
    own
        A row of `output` for each context, and +1, -1 or 0, shapes (n,). The last group meets these.
    """
    (targets, signs), (own_rows, own_signs) = goals, own
    loss, starts = 0.0, [*range(0, len(targets), size)] or [0]
    for start in starts:
        group, last = targets[start : start + size], float(start == starts[-1])
        rows = np.concatenate([np.tile(group, (len(own_rows), 1)), own_rows[:, None]], axis=1)
        sign = np.concatenate([signs[:, start : start + size], last * own_signs[:, None]], axis=1)
        gains, lost = gradient(np.einsum("cd,ctd->ct", source[contexts], output[rows]), sign, alpha)
        loss += lost
        for batch in (slice(i, i + BATCH) for i in range(0, len(contexts), BATCH)):
            x, gain = source[contexts[batch]].copy(), gains[batch]
            updates = np.zeros_like(x)
            for t, target in enumerate(group):
                updates += gain[:, t, None] * output[target]
                output[target] += gain[:, t] @ x
            for c, target in enumerate(own_rows[batch]):
                updates[c] += gain[c, -1] * output[target]
                output[target] += gain[c, -1] * x[c]
            np.add.at(source, contexts[batch], updates)
    return loss


def train_hidden(
    source: Rows, contexts: list[list[int]], output: Rows, goals: Goals, own: list[int], alpha: float, mean: bool
) -> float:
    """Train the hidden vectors of windows (CBOW) against targets in place, and return the loss.

    Parameters
    ----------
    source, output, alpha
        As in `train_targets`.
    contexts
        Numbers of the rows of `source` in each window, at least one.
    goals
        Rows of `output` that all windows meet, shape (T,), and +1, -1 or 0 for each window and row, shape (windows, T).
    own
        A row of `output` for each window, which its hidden vector is trained towards; or an empty list.
    mean
        Whether a hidden vector is the mean of the contexts, or their sum. A hidden vector stays until all targets are
        updated.
    """
    (targets, signs), sizes = goals, [len(rows) for rows in contexts]
    hidden = [source[rows].sum(axis=0) / (n if mean else 1) for rows, n in zip(contexts, sizes, strict=True)]
    gains, loss = [], 0.0
    for c, x in enumerate(hidden):
        rows = np.concatenate([targets, own[c : c + 1]]).astype(np.int64)
        gain, lost = gradient(output[rows] @ x, np.concatenate([signs[c], [1.0] * bool(own)]), alpha)
        gains.append(gain)
        loss += lost
    updates = np.zeros_like(hidden)
    for t, target in enumerate(targets.tolist()):
        before = output[target].copy()
        for c, x in enumerate(hidden):
            updates[c] += gains[c][t] * before
            output[target] += gains[c][t] * x
    for c, target in enumerate(own):
        updates[c] += gains[c][-1] * output[target]
        output[target] += gains[c][-1] * hidden[c]
    for window_contexts, update, n in zip(contexts, updates, sizes, strict=True):
        np.add.at(source, window_contexts, update / (1 if mean else n))
    return loss


def train_composed(
    train: Callable[..., tuple[int, float]],
    segment: Segment,
    first: int,
    last: int,
    own: Rows,
    rows: Rows,
    output: Rows,
    features: WordFeatures,
    window: int,
    stretch: int,
    crowd: int,
    *arguments: Any,
) -> tuple[int, float]:
    """Train rows composed of words' rows and of their features' rows, in place; return examples and loss.

    Parameters
    ----------
    train
        The reference of an objective, called with segment, first, last, both tables, and `arguments`.
    segment, first, last
        The centers first..last-1, trained a stretch at a time.
    own, rows, output
        Tables of rows, shapes (V, D), (F, D) and (any, D) float64.
    features, window
        The words' features, and the largest window.
    stretch, crowd
        Centers of a stretch; and the number of words of a stretch from which on a feature takes only a share,
        crowd / words, of their changes.
    """
    examples, loss, words_of_features = 0, 0.0, np.repeat(np.arange(len(own)), np.diff(features.offsets))
    weights = features.expand_weights().astype(np.float64)
    totals = features.own + np.bincount(words_of_features, weights, len(own))
    squares = features.own.astype(np.float64) ** 2 + np.bincount(words_of_features, weights**2, len(own))
    for start in range(first, last, stretch):
        stop = min(start + stretch, last)
        vectors = features.own[:, None] * own
        np.add.at(vectors, words_of_features, weights[:, None] * rows[features.rows])
        vectors /= totals[:, None]
        before = vectors.copy()
        n, lost = train(segment, start, stop, vectors, output, *arguments)
        changes = (totals / squares)[:, None] * (vectors - before)
        is_present = np.zeros(len(own), bool)
        is_present[segment.tokens[max(start - window, 0) : stop + window]] = True
        members = np.bincount(features.rows, is_present[words_of_features], len(rows))
        shares = np.minimum(1.0, crowd / np.maximum(1, members))
        own += features.own[:, None] * changes
        np.add.at(rows, features.rows, (shares[features.rows] * weights)[:, None] * changes[words_of_features])
        examples, loss = examples + n, loss + lost
    return examples, loss
