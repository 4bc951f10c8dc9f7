"""The load of a text: how many pairs it has, and how often its most frequent words are in them."""

import math
from functools import lru_cache

import numpy as np

from daskw2v.config.params import Params
from daskw2v.features.settings import most_rows
from daskw2v.sampling.hierarchy import NS_EXPONENT
from daskw2v.training.sizes.forecast import Load
from daskw2v.training.sizes.text import Text
from daskw2v.types import Float64Array

TOP = 1 << 20  # words whose frequencies tell how even partitions are
_LEAST = 1e-9  # share of a text that is left, for formulas to divide by
SENTENCE = 20.0  # words of a sentence, where a text's are not known


def contexts_of(lengths: Float64Array, params: Params) -> float:
    """Return a word's contexts, on average, in sentences of such lengths.

    Of the words k apart, a window that is drawn from 1..window reaches (window + 1 - k) / window.
    """
    apart = np.arange(1, params.window + 1)
    reach = (params.window + 1 - apart) / params.window if params.shrink_windows else np.ones(params.window)
    return float(2 * (np.maximum(lengths[:, None] - apart, 0) @ reach).sum() / lengths.sum())


def zipf(words: float, types: int, params: Params) -> Load:
    """Return the load of words of frequency 1 / (rank * H); rarer ones than the top are never dropped.

    `words` are those of all epochs.
    """
    frequency, kept = _top(types, params)
    share = 1 - frequency.sum() + kept.sum()
    return _load(words, share, types, params, kept / share)


def load_of(text: Text, params: Params) -> Load:
    """Return the load of a text, of which subsampling leaves a known share."""
    share = max(text.left / text.words, _LEAST)
    _, kept = _top(text.vocabulary, params)
    return _load(text.words * params.epochs, share, text.vocabulary, params, kept / max(share, kept.sum()))


def _top(types: int, params: Params) -> tuple[Float64Array, Float64Array]:
    """Return the frequencies of the most frequent words in the text, and what subsampling leaves of them."""
    frequency = 1 / (np.arange(1.0, min(TOP, types) + 1) * (math.log(types) + np.euler_gamma))
    if not params.sample:
        return frequency, frequency
    ratio = params.sample / frequency
    return frequency, frequency * np.minimum(1, np.sqrt(ratio) + ratio)  # as segments.keep_thresholds


def _load(words: float, share: float, types: int, params: Params, top: Float64Array) -> Load:
    contexts = contexts_of(np.array([SENTENCE * share]), params)
    pairs = max(1.0, words * share * contexts)  # for formulas to divide by
    return Load(words, types, params.vector_size, pairs, top, most_rows(params, types))


@lru_cache(2)  # many plans are compared for the same load
def shares_of(load: Load) -> tuple[int, Float64Array, Float64Array]:
    """Return how many words are rare, taken as equally frequent; shares of words, and of noise, theirs at the end."""
    rest = load.types - len(load.top)
    shares = np.append(load.top, max(0.0, 1 - load.top.sum()) / max(1, rest))
    noise = shares**NS_EXPONENT
    return rest, shares, noise / (noise[:-1].sum() + rest * noise[-1])
