"""Input rows that are composed of their own and of their features' rows, for the kernels of any objective.

A thread trains a stretch of centers at a time. It composes the rows of the stretch's words in a separate table. The
objective's kernel trains them there like rows of words without features. The thread then adds the change of each row to
the rows that it was composed of. So the row of a feature is read and written once a stretch for all words that have it,
and the rows that a window reads lie close together. Within a stretch, a word does not see other words' changes of the
features that they share.

Each part of a mean takes the change times its weight, scaled so that the mean changes as much as the kernel changed it;
with weights of 1, each takes all of the change, as in fastText. The changes of many words in a stretch add up to too
long a step: a feature of n > CROWD words takes CROWD / n of their sum.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from daskw2v.features.words import WordFeatures
from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.simd import aligned_zeros
from daskw2v.objectives.base import Rate, Tables
from daskw2v.objectives.cpu.hidden import add_scaled, sum_scaled
from daskw2v.objectives.cpu.steps import address, prefetch_row, store_int64
from daskw2v.sampling.segments import Segment
from daskw2v.types import Float32Array, Int32Array, Int64Array

STRETCH = 4096  # centers
CROWD = 2  # words

_AHEAD = 2  # rows of features that are prefetched before they are read


class Composer(NamedTuple):
    """The arrays in which a thread composes the rows of a stretch of centers.

    Parameters
    ----------
    words, features
        Ids of the distinct words of the stretch, and numbers of their features' rows, int32. These and other arrays may
        be longer than the stretch needs.
    word_numbers, feature_numbers
        The index in `words` of each word of the vocabulary, shape (V,), and in `features` of each row of a feature,
        int32; -1 if absent.
    starts
        Bounds of the members of each feature, features + 1 of them, int64.
    members
        Addresses of the composed rows of the words that have each feature, feature by feature, int64.
    weights
        Weight of the feature for each member, float32; of length 0 where the weights of all features are 1.
    rows, before
        The composed rows now, and before training, flat and padded, float32.
    scales
        Two factors for each word, float32: 1 / the sum of its weights, and the sum of its weights / that of their
        squares, which scales a change.
    """

    words: Int32Array
    features: Int32Array
    word_numbers: Int32Array
    feature_numbers: Int32Array
    starts: Int64Array
    members: Int64Array
    weights: Float32Array
    rows: Float32Array
    before: Float32Array
    scales: Float32Array


class ComposedRows(NamedTuple):
    """The parts of composed rows, beside the words' own rows, and a thread's arrays to compose them in.

    Parameters
    ----------
    features
        The words' features.
    rows
        The flat table of the features' rows, padded like all tables, float32.
    composer
        The thread's arrays.
    window
        `window` of Params.
    """

    features: WordFeatures
    rows: Float32Array
    composer: Composer
    window: int


def make_composer(features: WordFeatures, n_features: int, window: int, width: int) -> Composer:
    """Return a thread's `Composer` for a table of `n_features` rows of `width` floats; `window` is that of Params."""
    n_words = features.n_words
    words = min(n_words, STRETCH + 2 * window)
    sizes = np.diff(features.offsets)
    members = int(np.partition(sizes, n_words - words)[n_words - words :].sum())
    max_features = min(members, n_features)
    return Composer(
        words=np.empty(words, np.int32),
        features=np.empty(max_features, np.int32),
        word_numbers=np.full(n_words, -1, np.int32),
        feature_numbers=np.full(n_features, -1, np.int32),
        starts=np.empty(max_features + 2, np.int64),
        members=np.empty(members, np.int64),
        weights=np.empty(members if len(features.weights) else 0, np.float32),
        rows=aligned_zeros(words * width),
        before=aligned_zeros(words * width),
        scales=np.empty(2 * words, np.float32),
    )


def train_composed(
    train: Callable[..., tuple[int, float]],
    segment: Segment,
    first: int,
    last: int,
    tables: Tables,
    rate: Rate,
    epoch: int,
    prepared: Any,
    composed: ComposedRows,
) -> tuple[int, float]:
    """Train the centers first..last-1 of a segment by an objective's trainer; return examples and loss.

    Parameters
    ----------
    train, segment, first, last, rate, epoch, prepared
        A `Trainer` (`objectives.base`), and its arguments.
    tables
        The tables: `source` holds the words' own rows, none of which is frozen.
    composed
        The words' features, the table of their rows, and the thread's arrays.
    """
    features, rows, composer, window = composed
    inputs = np.zeros(len(segment.tokens), np.int32)
    local = tables._replace(source=composer.rows, inputs=inputs, hot=tables.hot._replace(source=0))
    examples, loss = 0, 0.0
    for start in range(first, last, STRETCH):
        stop = min(start + STRETCH, last)
        low, high = max(start - window, 0), min(stop + window, len(inputs))
        words = segment.tokens, low, high, inputs
        n_composed = compose_rows(*words, features, tables.source, rows, tables.width, composer)
        n, lost = train(segment, start, stop, local, rate, epoch, prepared)
        spread_changes(*n_composed, features, tables.source, rows, tables.width, composer, CROWD)
        examples, loss = examples + n, loss + lost
    return examples, loss


@kernel
def compose_rows(
    tokens: Any, first: Any, last: Any, inputs: Any, features: Any, own: Any, rows: Any, width: Any, composer: Any
) -> Any:
    """Compose the rows of the distinct words of the tokens first..last-1; return the numbers of words and of features.

    `inputs` receives the index of each token's composed row. `own` and `rows` are the tables of words and of features.
    """
    n_words = _number_words(tokens, first, last, inputs, composer)
    n_features = _list_members(n_words, features, width, composer)
    weighted = len(composer.weights) > 0
    for word in range(n_words):
        own_start, offset = np.int64(composer.words[word]) * width, word * width
        weight = features.own[composer.words[word]]
        for k in range(width):
            composer.rows[offset + k] = weight * own[own_start + k]
    for feature in range(n_features):
        row = _row_address(feature, n_features, rows, width, composer)
        start, stop = composer.starts[feature], composer.starts[feature + 1]
        n = 1 if weighted else stop - start  # members of one weight
        for i in range(start, stop, n):
            weight = composer.weights[i] if weighted else np.float32(1.0)
            add_scaled(address(composer.members) + 8 * i, n, width, weight, row)
    for word in range(n_words):
        share, offset = composer.scales[2 * word], word * width
        for k in range(width):
            composer.rows[offset + k] *= share
            composer.before[offset + k] = composer.rows[offset + k]
    return n_words, n_features


@kernel
def spread_changes(
    n_words: Any, n_features: Any, features: Any, own: Any, rows: Any, width: Any, composer: Any, crowd: Any
) -> None:
    """Add the changes of composed rows to their parts; mark all words and features as absent.

    `n_words` and `n_features` are the result of `compose_rows`. `crowd` is as CROWD.
    """
    weighted = len(composer.weights) > 0
    for word in range(n_words):
        scale, offset, own_start = composer.scales[2 * word + 1], word * width, np.int64(composer.words[word]) * width
        composer.word_numbers[composer.words[word]] = -1
        weight = features.own[composer.words[word]]
        for k in range(width):
            composer.rows[offset + k] = scale * (composer.rows[offset + k] - composer.before[offset + k])
            own[own_start + k] += weight * composer.rows[offset + k]
    for feature in range(n_features):
        row = _row_address(feature, n_features, rows, width, composer)
        composer.feature_numbers[composer.features[feature]] = -1
        start, stop = composer.starts[feature], composer.starts[feature + 1]
        share, n = np.float32(min(1.0, crowd / (stop - start))), 1 if weighted else stop - start
        for i in range(start, stop, n):
            weight = composer.weights[i] if weighted else np.float32(1.0)
            sum_scaled(address(composer.members) + 8 * i, n, width, share * weight, row)


@inline
def _number_words(tokens: Any, first: Any, last: Any, inputs: Any, composer: Any) -> Any:
    """Assign numbers to the distinct words of the tokens first..last-1, by first appearance; return their number."""
    n = 0
    for i in range(first, last):
        word = tokens[i]
        number = composer.word_numbers[word]
        if number < 0:
            number = n
            composer.word_numbers[word], composer.words[n] = number, word
            n += 1
        inputs[i] = number
    return n


@kernel
def _list_members(n_words: Any, features: Any, width: Any, composer: Any) -> Any:
    """Assign numbers to the distinct features of n words, list the members of each; return the number of features."""
    n, starts, weighted = 0, composer.starts, len(composer.weights) > 0
    for number in range(n_words):
        word = composer.words[number]
        total = features.own[word]
        squares = total * total
        for i in range(features.offsets[word], features.offsets[word + 1]):
            row = features.rows[i]
            feature = composer.feature_numbers[row]
            if feature < 0:
                feature = n
                composer.feature_numbers[row], composer.features[n] = feature, row
                starts[n + 1] = 0
                n += 1
            starts[feature + 1] += 1
            weight = features.weights[i] if weighted else np.float32(1.0)
            total += weight
            squares += weight * weight
        composer.scales[2 * number] = np.float32(1.0) / total
        composer.scales[2 * number + 1] = total / squares
    starts[0] = 0
    for feature in range(n):
        starts[feature + 1] += starts[feature]
    for feature in range(n, 0, -1):  # first the index of a feature's next member, at last their end
        starts[feature] = starts[feature - 1]
    for number in range(n_words):
        word = composer.words[number]
        for i in range(features.offsets[word], features.offsets[word + 1]):
            feature = composer.feature_numbers[features.rows[i]]
            index = starts[feature + 1]
            starts[feature + 1] = index + 1
            store_int64(address(composer.members), index, address(composer.rows) + number * 4 * width)
            if weighted:
                composer.weights[index] = features.weights[i]
    return n


@inline
def _row_address(feature: Any, n_features: Any, rows: Any, width: Any, composer: Any) -> Any:
    """Return the address of a feature's row, and prefetch the row of a later feature."""
    later, row_bytes = composer.features[min(feature + _AHEAD, n_features - 1)], 4 * width
    prefetch_row(address(rows) + np.int64(later) * row_bytes, width)
    return address(rows) + np.int64(composer.features[feature]) * row_bytes
