"""The common parts of the references, in float64 NumPy, which tests compare every kernel with."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from daskw2v.features.words import WordFeatures
from daskw2v.kernels.rng import GOLDEN, draws, mix
from daskw2v.objectives.noise import BATCH, Markets, PreparedNoise, negatives_of
from daskw2v.objectives.windows import OF, Prefixes, Windows
from daskw2v.sampling.segments import Segment
from daskw2v.types import Float64Array, Int64Array, UInt64Array

_U64 = np.uint64


Goals = tuple[Int64Array, Float64Array]  # rows of the output table, and their signs


class Window(NamedTuple):
    """A center's word, its position in the corpus, the places and words of its contexts, its rate and its columns."""

    word: int
    position: int
    places: list[int]
    contexts: list[int]
    alpha: float
    columns: slice = slice(None)


class WindowGoals(Protocol):
    """Returns the targets of a window's contexts."""

    def __call__(self, prepared: Any, epoch: int, window: Window, number: int, positions: Int64Array, /) -> list[Goals]:
        """Return the targets that all contexts share, or the targets of each context.

        `prepared` is what `Objective.prepare` returned. `number` is the index of the window in a range of centers, and
        `positions` are their positions in the corpus.
        """


class WindowRule(NamedTuple):
    """The training of a window by an objective.

    Parameters
    ----------
    goals
        The targets.
    as_one
        Whether the contexts are trained together, as one hidden vector (CBOW).
    """

    goals: WindowGoals
    as_one: bool


def windows_in(segment: Segment, first: int, last: int, windows: Windows) -> Iterator[Window]:
    """Yield the windows of the centers first..last-1 of a segment."""
    for center in range(first, last):
        position = int(segment.positions[center])
        sentence = int(np.searchsorted(segment.bounds, center, side="right")) - 1
        reach = reach_of(windows, position)
        start = max(int(segment.bounds[sentence]), center - reach)
        stop = min(int(segment.bounds[sentence + 1]), center + reach + 1)
        places = [i for i in range(start, stop) if i != center]
        contexts = [int(segment.tokens[i]) for i in places]
        alpha = float(np.float32(windows.alpha + windows.slope * (position - windows.origin)))
        columns = columns_at(windows.prefixes, position)
        yield Window(int(segment.tokens[center]), position, places, contexts, alpha, columns)


def columns_at(prefixes: Prefixes, position: int) -> slice:
    """Return the columns that the window at a corpus position trains."""
    bits = int(draws(prefixes.key, np.array([position], _U64))[0])
    drawn = (bits >> 32) * OF * prefixes.n >> 32
    return slice(prefixes.sizes[drawn]) if drawn < prefixes.n else slice(None)


def reach_of(windows: Windows, position: int) -> int:
    """Return how far the window at a corpus position reaches to either side."""
    if not windows.shrink_windows:
        return windows.window
    bits = int(draws(windows.key, np.array([position], _U64))[0])
    return windows.window - ((bits >> 32) * windows.window >> 32)


def targets_of(table: UInt64Array, key: np.uint64, window: Window, negative: int, pair: int = 0) -> Goals:
    """Return a window's word and negatives, and their signs, shapes (1 + negative,).

    `pair` is the number of the context, where each draws its own.
    """
    return _with_signs(window.word, picked(table, _bits(key, window.position, pair * negative, negative)))


def goals_of(prepared: PreparedNoise, epoch: int, window: Window, pair: int = 0, position: int | None = None) -> Goals:
    """Return the targets of a window and their signs, including negatives of the word's market, which it draws itself.

    Other negatives are drawn at `position`, by default the position of the window.
    """
    negatives = negatives_of(prepared, epoch)
    n, further, key = negatives.negative, negatives.market_negative, negatives.key
    first = pair * (n + further)
    drawn = picked(negatives.table, _bits(key, window.position if position is None else position, first, n))
    near = _picked_in_market(negatives.markets, window.word, _bits(key, window.position, first + n, further))
    return _with_signs(window.word, np.concatenate([drawn, near]))


def _bits(key: np.uint64, position: int, first: int, n: int) -> UInt64Array:
    """Return the random bits of n draws of a window, of which `first` stand before them."""
    numbers = np.arange(first + 1, first + n + 1, dtype=_U64)
    return np.asarray(mix.py_func(draws(key, np.array([position], _U64)) + numbers * GOLDEN))


def _with_signs(word: int, negatives: Int64Array) -> Goals:
    """Return a word and its negatives, and their signs; the word itself is no negative."""
    signs = np.where(negatives == word, 0.0, -1.0)
    return np.concatenate([[word], negatives]), np.concatenate([[1.0], signs])


def _picked_in_market(markets: Markets, word: int, bits: UInt64Array) -> Int64Array:
    """Return the words that random bits choose from the market of a word, shape of `bits`."""
    if not len(bits):
        return np.empty(0, np.int64)
    first, n = int(markets.spans[word] >> _U64(32)), int(markets.spans[word] & _U64(0xFFFFFFFF))
    table = markets.slots[first : first + n] - _U64(first)  # of this market alone
    return markets.words[first + picked(table, bits)].astype(np.int64)


def picked(table: UInt64Array, bits: UInt64Array) -> Int64Array:
    """Return the outcomes that random bits choose by an alias table, shape of `bits`."""
    slots = ((bits >> _U64(32)) * _U64(len(table))) >> _U64(32)
    entries = table[slots]
    own = (bits & _U64(0xFFFFFFFF)) < (entries >> _U64(32))
    return np.where(own, slots, entries & _U64(0xFFFFFFFF)).astype(np.int64)


def train_targets(
    source: Float64Array,
    contexts: list[int],
    output: Float64Array,
    targets: Int64Array,
    signs: Float64Array,
    alpha: float,
    size: int,
) -> float:
    """Train contexts against targets in place and return the loss.

    Parameters
    ----------
    source, output
        Tables of rows, shapes (V, D) float64.
    contexts
        Rows of `source`. Four different ones are updated together, or two, or one.
    targets, signs
        Rows of `output`, and +1, -1 or 0 for each, shapes (T,).
    alpha
        Learning rate.
    size
        Targets in a group. Group follows group, and sees the contexts as the one before left them.
    """
    loss = 0.0
    for g in range(0, len(targets), size):
        group, sign = targets[g : g + size], signs[g : g + size]
        p = 1.0 / (1.0 + np.exp(-np.clip(sign * (source[contexts] @ output[group].T), -30.0, 30.0)))
        loss -= float((np.abs(sign) * np.log(p)).sum())
        gain = alpha * sign * (1.0 - p)
        i = 0
        while i < len(contexts):
            n = next(n for n in (4, 2, 1) if len(set(contexts[i : i + n])) == n)
            together = contexts[i : i + n]
            x = source[together].copy()
            for t, target in enumerate(group):
                source[together] += gain[i : i + n, t, None] * output[target]
                output[target] += gain[i : i + n, t] @ x
            i += n
    return loss


def train_rows(
    source: Float64Array,
    contexts: Int64Array,
    output: Float64Array,
    targets: Int64Array,
    signs: Float64Array,
    own: Int64Array,
    kind: Float64Array,
    alpha: float,
    size: int,
) -> float:
    """Train rows against targets that all meet, and one each, in place; return the loss.

    Within a group of targets all dots are taken first; then rows move, BATCH at a time.

    Parameters
    ----------
    source, output, alpha, size
        As in `train_targets`.
    contexts
        Rows of `source`, shape (n,). A row that is listed twice moves twice.
    targets, signs
        Rows of `output` that all contexts meet, shape (T,), and +1, -1 or 0 for each context and row, shape (n, T).
    own, kind
        A row of `output` for each context, and +1, -1 or 0, shapes (n,). The last group meets these.
    """
    loss, starts = 0.0, [*range(0, len(targets), size)] or [0]
    for start in starts:
        group, last = targets[start : start + size], float(start == starts[-1])
        rows = np.concatenate([np.tile(group, (len(own), 1)), own[:, None]], axis=1)
        sign = np.concatenate([signs[:, start : start + size], last * kind[:, None]], axis=1)
        p = 1.0 / (1.0 + np.exp(-np.clip(sign * np.einsum("cd,ctd->ct", source[contexts], output[rows]), -30.0, 30.0)))
        loss -= float((np.abs(sign) * np.log(p)).sum())
        gains = alpha * sign * (1.0 - p)
        for batch in (slice(i, i + BATCH) for i in range(0, len(contexts), BATCH)):
            x, gain = source[contexts[batch]].copy(), gains[batch]
            updates = np.zeros_like(x)
            for t, target in enumerate(group):
                updates += gain[:, t, None] * output[target]
                output[target] += gain[:, t] @ x
            for c, target in enumerate(own[batch]):
                updates[c] += gain[c, -1] * output[target]
                output[target] += gain[c, -1] * x[c]
            np.add.at(source, contexts[batch], updates)
    return loss


def train_hidden(
    source: Float64Array,
    contexts: list[list[int]],
    output: Float64Array,
    targets: Int64Array,
    signs: Float64Array,
    own: list[int],
    alpha: float,
    mean: bool,
) -> float:
    """Train the hidden vectors of windows (CBOW) against targets in place, and return the loss.

    Parameters
    ----------
    source, output, alpha
        As in `train_targets`.
    contexts
        Rows of `source`, of each window.
    targets, signs
        Rows of `output` that all windows meet, shape (T,), and +1, -1 or 0 for each window and row, shape (windows, T).
    own
        A row of `output` for each window that its hidden vector comes closer to; or none at all.
    mean
        Whether a hidden vector is the mean of the contexts, or their sum. A hidden vector stays until all targets are
        updated.
    """
    sizes = [len(rows) for rows in contexts]
    hidden = [source[rows].sum(axis=0) / (n if mean else 1) for rows, n in zip(contexts, sizes, strict=True)]
    gains, loss = [], 0.0
    for c, x in enumerate(hidden):
        rows, sign = (
            np.concatenate([targets, own[c : c + 1]]).astype(np.int64),
            np.concatenate([signs[c], [1.0] * bool(own)]),
        )
        p = 1.0 / (1.0 + np.exp(-np.clip(sign * (output[rows] @ x), -30.0, 30.0)))
        loss -= float((np.abs(sign) * np.log(p)).sum())
        gains.append(alpha * sign * (1.0 - p))
    updates = np.zeros_like(hidden)
    for t, target in enumerate(targets.tolist()):
        before = output[target].copy()
        for c, x in enumerate(hidden):
            updates[c] += gains[c][t] * before
            output[target] += gains[c][t] * x
    for c, target in enumerate(own):
        updates[c] += gains[c][-1] * output[target]
        output[target] += gains[c][-1] * hidden[c]
    for of_window, update, n in zip(contexts, updates, sizes, strict=True):
        np.add.at(source, of_window, update / (1 if mean else n))
    return loss


def train_composed(
    train: Callable[..., tuple[int, float]],
    segment: Segment,
    first: int,
    last: int,
    own: Float64Array,
    rows: Float64Array,
    output: Float64Array,
    features: WordFeatures,
    window: int,
    stretch: int,
    crowd: int,
    *arguments: Any,
) -> tuple[int, float]:
    """Train input rows that are composed of words' own and their features' rows, in place; return examples and loss.

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
        Centers of a stretch; a feature of more words than `crowd` in it takes that share of their changes.
    """
    examples, loss, places = 0, 0.0, np.repeat(np.arange(len(own)), np.diff(features.offsets))
    weights = features.with_weights().astype(np.float64)
    totals = features.own + np.bincount(places, weights, len(own))
    squares = features.own.astype(np.float64) ** 2 + np.bincount(places, weights**2, len(own))
    for start in range(first, last, stretch):
        stop = min(start + stretch, last)
        vectors = features.own[:, None] * own
        np.add.at(vectors, places, weights[:, None] * rows[features.rows])
        vectors /= totals[:, None]
        before = vectors.copy()
        done, lost = train(segment, start, stop, vectors, output, *arguments)
        changes = (totals / squares)[:, None] * (vectors - before)
        there = np.zeros(len(own), bool)
        there[segment.tokens[max(start - window, 0) : stop + window]] = True
        members = np.bincount(features.rows, there[places], len(rows))
        shares = np.minimum(1.0, crowd / np.maximum(1, members))
        own += features.own[:, None] * changes
        np.add.at(rows, features.rows, (shares[features.rows] * weights)[:, None] * changes[places])
        examples, loss = examples + done, loss + lost
    return examples, loss
