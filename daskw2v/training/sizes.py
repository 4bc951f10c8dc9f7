"""The sizes of a text and of workers, which memory and time of a run depend on.

Sizes of a text are known once it is encoded, and guessed before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import find_format
from daskw2v.sampling.segments import keep_thresholds, max_dropped_words
from daskw2v.sampling.weights import NS_EXPONENT
from daskw2v.shards.encode import SHARD_TYPES
from daskw2v.shards.layout import Corpus
from daskw2v.types import Float64Array
from daskw2v.vocabulary.count import StoredVocabulary

TOP = 1 << 20  # most frequent words, whose frequencies show how even partitions are
_MIN_SHARE = 1e-9  # of a text that subsampling keeps, for formulas to divide by
_SENTENCE = 20.0  # words

# English Wikipedia in lower case, 1.7 to 17 million words: types are 17.4 * words ** 0.573 within 2 %, and of these
# 0.75 * m ** -0.573 occur m times or more, within 3 % for m from 5 to 50
_FACTOR, _EXPONENT, _KEPT = 17.4, 0.573, 0.75
_SUBSAMPLED = 1.35, 0.2  # subsampling keeps the share 1.35 + 0.2 * log10(sample) of words: .75 for 1e-3, .55 for 1e-4
_WORD_BYTES = 5.9  # of the same text, with the space behind each word
_EXPANSION = {None: 1, "gzip": 3, "bz2": 4, "xz": 4, "zstd": 3}  # bytes of text of a compressed byte


@dataclass(frozen=True)
class Text:
    """The sizes of a text.

    Parameters
    ----------
    words, types
        Number of running words, and of distinct words.
    subsampled
        Number of running words that subsampling keeps.
    vocabulary
        Number of words of the vocabulary, which are the rows of the tables.
    blocks, shards
        Number of blocks (ranges of files, which tasks read), and of shards (encoded text, which tasks write).
    shard_words, shard_types
        Running words of the largest shard, and distinct words of the shard with most distinct words.
    entries
        Sum over all shards of their numbers of distinct words.
    """

    words: int
    types: int
    subsampled: int
    vocabulary: int
    blocks: int
    shards: int
    shard_words: int
    shard_types: int
    entries: int


def known_text(corpus: Corpus, vocabulary: StoredVocabulary, params: Params) -> Text:
    """Return the sizes of an encoded text, or of its excerpt, whose words are counted; each shard counts as a block."""
    counts = vocabulary.read_counts(0, min(vocabulary.size, max_dropped_words(params.sample)))
    dropped = counts * (1 - keep_thresholds(counts, params.sample, vocabulary.total) / 2.0**32)
    # An excerpt is assumed to have its share of the words that were counted
    subsampled = int((vocabulary.total - dropped.sum()) * min(1.0, corpus.n_tokens / vocabulary.raw_words))
    types, n = [shard.n_types for shard in corpus.shards], len(corpus.shards)
    words = max(shard.n_tokens for shard in corpus.shards)
    return Text(corpus.n_tokens, vocabulary.raw_types, subsampled, vocabulary.size, n, n, words, max(types), sum(types))


def guess_text(
    sources: Sequence[Source],
    params: Params,
    resources: Resources,
    types: int | None = None,
    vocabulary: int | None = None,
) -> Text:
    """Return the guessed sizes of a text of which only the sizes of its files are known.

    The number of distinct words follows Heaps' law with the constants of English Wikipedia, unless `types` is passed;
    other text may have several times as many.

    Parameters
    ----------
    sources
        The files.
    params, resources
        `min_count`, `max_final_vocab`, `sample` and `block_size` are read.
    types, vocabulary
        Number of distinct words of the text, and of words of the vocabulary; None where they are not known.
    """
    sizes = [int(file.size * _EXPANSION[file.compression] * find_format(file.format).expansion) for file in sources]
    words = max(1, int(sum(sizes) / _WORD_BYTES))
    types = min(words, types or max(vocabulary or 1, int(_FACTOR * words**_EXPONENT)))
    share = 1.0 if params.min_count == 1 else _KEPT * params.min_count**-_EXPONENT
    n_words = min(types, vocabulary or min(max(1, int(types * share)), params.max_final_vocab or types))
    shard_words = max(1, int(min(resources.block_bytes, max(sizes, default=0)) / _WORD_BYTES))
    shard_types = max(1, int(types * (shard_words / words) ** _EXPONENT))
    if shard_types > SHARD_TYPES:  # then a shard ends before its block does
        shard_words = int(shard_words * (SHARD_TYPES / shard_types) ** (1 / _EXPONENT))
        shard_types = SHARD_TYPES
    shards = -(-words // shard_words)
    blocks = sum(1 if source.compression else -(-source.size // resources.block_bytes) for source in sources)
    share = _SUBSAMPLED[0] + _SUBSAMPLED[1] * math.log10(params.sample) if params.sample else 1.0
    subsampled = int(words * min(1.0, max(0.1, share)))
    return Text(words, types, subsampled, n_words, blocks, shards, shard_words, shard_types, shards * shard_types)


@dataclass(frozen=True, eq=False)
class Load:
    """The load of training: words and pairs.

    Parameters
    ----------
    words, types
        Running words of all epochs, and words of the vocabulary.
    pairs
        Pairs of all epochs.
    top
        Share of each of the most frequent words in all pairs, shape (n,) float64.
    """

    words: float
    types: int
    pairs: float
    top: Float64Array

    @property
    def rare(self) -> int:
        """Number of words that are not in `top`; they are assumed to be equally frequent."""
        return self.types - len(self.top)

    @cached_property
    def shares(self) -> Float64Array:
        """Share of each of the most frequent words in the pairs, and last the share of a rare word, shape (n + 1,)."""
        return np.append(self.top, max(0.0, 1 - self.top.sum()) / max(1, self.rare))

    @cached_property
    def noise(self) -> Float64Array:
        """Share of each of these words in the negatives, shape (n + 1,), as `shares`."""
        weights = self.shares**NS_EXPONENT
        return weights / self.total(weights)

    def total(self, values: Float64Array) -> float:
        """Return the sum over all words of values in the order of `shares`: the last value is each rare word's."""
        return float(values[:-1].sum() + self.rare * values[-1])


def estimate_load(text: Text, params: Params) -> Load:
    """Return the load of training a text, if its words have frequencies by Zipf's law, 1 / (rank * H)."""
    share, kept = max(text.subsampled / text.words, _MIN_SHARE), subsampled_frequencies(text.vocabulary, params)
    contexts = mean_contexts(np.array([_SENTENCE * share]), params)
    words = float(text.words * params.epochs)
    pairs = max(1.0, words * share * contexts)  # for formulas to divide by
    return Load(words, text.vocabulary, pairs, kept / max(share, kept.sum()))


def subsampled_frequencies(types: int, params: Params) -> Float64Array:
    """Return the shares of the unsampled text that the most frequent words keep, at most TOP of `types`, shape (n,)."""
    frequency = 1 / (np.arange(1.0, min(TOP, types) + 1) * (math.log(types) + np.euler_gamma))
    if not params.sample:
        return frequency
    ratio = params.sample / frequency
    return frequency * np.minimum(1, np.sqrt(ratio) + ratio)  # as segments.keep_thresholds


def mean_contexts(lengths: Float64Array, params: Params) -> float:
    """Return the mean number of contexts of a word in sentences of these lengths, shape (n,).

    A window that is drawn from 1..window contains a word at distance k with probability (window + 1 - k) / window.
    """
    distances = np.arange(1, params.window + 1)
    reach = (params.window + 1 - distances) / params.window if params.shrink_windows else np.ones(params.window)
    return float(2 * (np.maximum(lengths[:, None] - distances, 0) @ reach).sum() / lengths.sum())


@dataclass(frozen=True)
class Workers:
    """The workers of a cluster, which are all assumed to be equal.

    Parameters
    ----------
    n
        Number of worker processes.
    threads
        Threads of a worker.
    memory
        Bytes that all workers hold together (`cluster.workers.usable_memory`); infinity where none has a limit.
    devices
        Number of devices of a worker; each has its share of the threads.
    limit, device_limit
        Bytes that a worker may allocate, infinity for no limit; and bytes that are free on a device, None for a device
        without memory of its own.
    network, storage
        Bytes by second of a worker: to the other workers, and as much from them; to the shared store, or from it.
    cores
        Number of cores that all workers share; infinity where each has its own.
    """

    n: int = 1
    threads: int = 1
    memory: float = math.inf
    devices: int = 1
    limit: float = math.inf
    device_limit: float | None = None
    network: float = math.inf
    storage: float = math.inf
    cores: float = math.inf

    @property
    def slots(self) -> int:
        """Number of threads of all workers."""
        return self.n * self.threads

    def busy(self, threads: float) -> float:
        """Return how many of `threads` threads work at a time."""
        return min(threads, self.slots, self.cores)
