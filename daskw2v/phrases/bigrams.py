"""Bigrams of a shard: counted by their keys, and joined where they are phrases.

A key is a 64-bit number. Each pair of ids has its own, and keys look random, so their top bits divide bigrams into
buckets of about the same size. Counting sorted keys takes less memory than a hash table. Phrases are joined within
sentences, from the left; a word belongs to one phrase at most.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.kernels.jit import inline, kernel
from daskw2v.shards.dictionary import Dictionary, padded
from daskw2v.shards.words import take_words
from daskw2v.types import Int32Array, Int64Array, UInt8Array, UInt64Array

NOTHING = -1  # in place of a missing word
BIGRAM = np.dtype([("key", "<u8"), ("count", "<u4")])
BUCKET_WORDS = 1 << 22  # words of text for each bucket; a task merges at most as many distinct bigrams: 180 MB

# The fractional part of the golden ratio, and its inverse modulo 2**64
_FACTOR = 0x9E3779B97F4A7C15
_MULTIPLIER, _INVERSE = np.uint64(_FACTOR), np.uint64(pow(_FACTOR, -1, 1 << 64))
_32, _ONE = np.uint64(32), np.uint64(1)


@inline
def key_of(left: Any, right: Any) -> Any:
    """Return the key of a pair of numbers below 2**31; keys are never 0."""
    return (((np.uint64(left) << _32) | np.uint64(right)) + _ONE) * _MULTIPLIER


@kernel
def _fill_keys(codes: Any, starts: Any, ids: Any, before: Any, keys: Any) -> Any:
    """Fill in the key of each bigram in a sentence; return the number of bigrams."""
    n, s, left = 0, 0, before
    for i in range(len(codes)):
        if s < len(starts) and starts[s] == i:
            s, left = s + 1, NOTHING
        right = np.int64(ids[codes[i]])
        if left != NOTHING:
            keys[n] = key_of(left, right)
            n += 1
        left = right
    return n


def bigram_keys(codes: Int32Array, starts: Int64Array, ids: Int32Array, before: int = NOTHING) -> UInt64Array:
    """Return the keys of all bigrams that end in a piece of text, in order.

    Parameters
    ----------
    codes, starts
        Codes of the words, shape (n,), and indices of the first word of each sentence, shape (s,).
    ids
        Id of each code.
    before
        Id of the word before the first one if it is in the same sentence.
    """
    keys = np.empty(len(codes), np.uint64)
    return keys[: _fill_keys(codes, starts, ids, np.int64(before), keys)]


def count_keys(keys: UInt64Array) -> npt.NDArray[Any]:
    """Count equal keys, fewer than 2**32; return a BIGRAM for each distinct one, ascending. Sorts `keys` in place."""
    keys.sort()
    first = _firsts(keys)
    bigrams = np.empty(len(first), BIGRAM)
    bigrams["key"] = keys[first]
    bigrams["count"] = np.diff(first, append=len(keys))
    return bigrams


def merge_bigrams(parts: Sequence[npt.NDArray[Any]]) -> tuple[UInt64Array, Int64Array]:
    """Add up BIGRAMs; return distinct keys, ascending, and their counts."""
    keys = np.concatenate([part["key"] for part in parts])
    order = np.argsort(keys)
    keys = keys[order]
    counts = np.concatenate([part["count"] for part in parts])[order]
    first = _firsts(keys)
    return keys[first], np.add.reduceat(counts, first, dtype=np.int64) if len(first) else np.empty(0, np.int64)


def _firsts(keys: UInt64Array) -> Int64Array:
    """Return the start of each run of equal keys."""
    new = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    return np.flatnonzero(new)


def pairs_of(keys: UInt64Array) -> Int32Array:
    """Return the two ids of each key, shape (n, 2) int32."""
    numbers = keys * _INVERSE - _ONE
    return np.column_stack([numbers >> _32, numbers & np.uint64(0xFFFFFFFF)]).astype(np.int32)


def count_buckets(n_words: int) -> int:
    """Return the number of buckets for the bigrams of a text, a power of two."""
    return 1 << max(0, -(-n_words // BUCKET_WORDS) - 1).bit_length()


def cut_keys(keys: UInt64Array, n_buckets: int) -> Int64Array:
    """Return the bounds of the buckets among ascending keys, shape (n_buckets + 1,)."""
    bits = np.uint64(64 - (n_buckets.bit_length() - 1))
    inner = np.searchsorted(keys, np.arange(1, n_buckets, dtype=np.uint64) << bits)
    return np.array([0, *inner.tolist(), len(keys)])


class Joined(NamedTuple):
    """A piece of text with joined phrases.

    Parameters
    ----------
    symbols
        The code of a single word, or the number of codes + k for phrase k, shape (n,) int32.
    starts
        Index of the first symbol of each sentence, shape (s,) int64.
    """

    symbols: Int32Array
    starts: Int64Array


class _Table(NamedTuple):
    """Hash table from keys to phrases, at most half full; the key of a free slot is 0."""

    keys: UInt64Array
    numbers: Int32Array


@inline
def _slot_of(key: Any, keys: Any) -> Any:
    """Return the slot of a key, or the free slot for it."""
    last = np.uint64(len(keys) - 1)
    slot = (key >> np.uint64(32)) & last
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + np.uint64(1)) & last
    return slot


@kernel
def _fill_table(pairs: Any, keys: Any, numbers: Any) -> None:
    for k in range(len(pairs)):
        key = key_of(pairs[k, 0], pairs[k, 1])
        slot = _slot_of(key, keys)
        keys[slot], numbers[slot] = key, k


@kernel
def _join(
    codes: Any, starts: Any, first: Any, ahead: Any, n_codes: Any, table: Any, symbols: Any, new_starts: Any
) -> Any:
    """Fill in symbols and starts; return the number of each."""
    n, s, i, m = 0, 0, first, 0
    while i < len(codes):
        if s < len(starts) and starts[s] == i:
            new_starts[m] = n
            s, m = s + 1, m + 1
        symbol, i = codes[i], i + 1
        following = codes[i] if i < len(codes) else ahead
        if following != NOTHING and not (s < len(starts) and starts[s] == i):
            slot = _slot_of(key_of(symbol, following), table.keys)
            if table.keys[slot] != 0:
                symbol, i = n_codes + table.numbers[slot], i + 1
        symbols[n] = symbol
        n += 1
    return n, m


def join_codes(
    codes: Int32Array, starts: Int64Array, pairs: Int32Array, n_codes: int, *, taken: bool = False, ahead: int = NOTHING
) -> Joined:
    """Join the phrases of a piece of text.

    Parameters
    ----------
    codes, starts
        Codes of the words, shape (n,), and indices of the first word of each sentence, shape (s,).
    pairs
        The phrases, as codes of their two words, shape (k, 2).
    n_codes
        Number of codes.
    taken
        Whether the first word is the second word of a phrase that begins before it, and so is left out.
    ahead
        Code of the word that follows in the sentence of the last one, where it does not end with it. It becomes part
        of a phrase, or is left out.
    """
    size = 1 << (2 * len(pairs) + 1).bit_length()
    table = _Table(np.zeros(size, np.uint64), np.zeros(size, np.int32))
    _fill_table(pairs, table.keys, table.numbers)
    symbols, new_starts = np.empty(len(codes), np.int32), np.empty(len(starts), np.int64)
    n, m = _join(codes, starts, int(taken), np.int32(ahead), np.int32(n_codes), table, symbols, new_starts)
    return Joined(symbols[:n], new_starts[:m])


@kernel
def _renumber(symbols: Any, numbers: Any, order: Any, counts: Any) -> Any:
    """Replace symbols by numbers in order of first appearance; fill in order and counts; return their number."""
    n = 0
    for i in range(len(symbols)):
        symbol = symbols[i]
        number = numbers[symbol]
        if number < 0:
            number = numbers[symbol] = n
            order[n], counts[n] = symbol, 0
            n += 1
        counts[number] += 1
        symbols[i] = number
    return n


class WordList(NamedTuple):
    """The words of codes.

    Parameters
    ----------
    data, offsets
        Word i is data[offsets[i] : offsets[i + 1]].
    places
        Index of the word of each code.
    """

    data: UInt8Array
    offsets: Int64Array
    places: Int64Array

    def with_word(self, word: bytes) -> "WordList":
        """Return a copy with one more word, which gets the last code."""
        data = np.concatenate([self.data, np.frombuffer(word, np.uint8)])
        places = np.append(self.places, len(self.offsets) - 1)
        return WordList(data, np.append(self.offsets, len(data)), places)


def encode_symbols(
    symbols: Int32Array, words: WordList, pairs: Int32Array, delimiter: str
) -> tuple[Int32Array, Dictionary]:
    """Return the codes of symbols, by first appearance, and their dictionary.

    Parameters
    ----------
    symbols
        From `join_codes`; they are overwritten.
    words
        The words of codes.
    pairs
        The phrases, as codes of their two words, shape (k, 2).
    delimiter
        Text between the two words.
    """
    n_codes = len(words.places)
    n = min(len(symbols), n_codes + len(pairs))
    order, counts = np.empty(n, np.int64), np.empty(n, np.int64)
    n = _renumber(symbols, np.full(n_codes + len(pairs), -1, np.int32), order, counts)
    order, counts = order[:n], counts[:n]
    # A word is one part; a phrase is three parts: a word, the delimiter, a word
    is_phrase = order >= n_codes
    edges = np.cumsum(np.concatenate([[0], 1 + 2 * is_phrase]))
    begins = edges[:-1]
    parts = np.empty(edges[-1], np.int64)
    with_delimiter = words.with_word(delimiter.encode())
    parts[begins[~is_phrase]] = words.places[order[~is_phrase]]
    used = words.places[pairs[order[is_phrase] - n_codes]]
    for i, part in enumerate((used[:, 0], with_delimiter.places[-1], used[:, 1])):
        parts[begins[is_phrase] + i] = part
    data, offsets = take_words(with_delimiter.data, with_delimiter.offsets, parts)
    offsets = offsets[edges]
    dictionary = Dictionary(n)
    # Two symbols may be the same word: if a text has both new_york and new york
    codes = dictionary.encode(padded(data), offsets[:-1], offsets[1:], counts)
    return codes[symbols], dictionary
