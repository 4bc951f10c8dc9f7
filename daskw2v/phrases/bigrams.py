"""Bigrams of a shard: counted by their keys, and joined where they are phrases.

A key is a 64-bit number. Different pairs of ids have different keys, and keys look random, so that their top bits
divide bigrams into buckets of about the same size. Counting sorted keys takes less memory than a hash table. Phrases
are joined within sentences, from the left; a word belongs to one phrase at most.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.kernels.jit import inline, kernel
from daskw2v.shards.dictionary import Dictionary, padded
from daskw2v.shards.words import take_words
from daskw2v.types import Int32Array, Int64Array, UInt8Array, UInt64Array

NOTHING = -1  # instead of the id or code of a missing word
BIGRAM = np.dtype([("key", "<u8"), ("count", "<u4")])
BUCKET_WORDS = 1 << 22  # words of text for each bucket; a task merges at most as many distinct bigrams: 180 MB

# The fractional part of the golden ratio, and its inverse modulo 2**64
_FACTOR = 0x9E3779B97F4A7C15
_MULTIPLIER, _INVERSE = np.uint64(_FACTOR), np.uint64(pow(_FACTOR, -1, 1 << 64))
_32, _ONE = np.uint64(32), np.uint64(1)


@inline
def make_key(left: Any, right: Any) -> Any:
    """Return the key of a pair of word ids or codes below 2**31, uint64, in a kernel; keys are never 0."""
    return (((np.uint64(left) << _32) | np.uint64(right)) + _ONE) * _MULTIPLIER


@kernel
def _fill_keys(codes: Any, starts: Any, ids: Any, before: Any, keys: Any) -> Any:
    """Fill in `keys` as `bigram_keys` returns them; return the number of bigrams. Other arguments are as there."""
    n, s, left = 0, 0, before
    for i in range(len(codes)):
        if s < len(starts) and starts[s] == i:
            s, left = s + 1, NOTHING
        right = np.int64(ids[codes[i]])
        if left != NOTHING:
            keys[n] = make_key(left, right)
            n += 1
        left = right
    return n


def bigram_keys(codes: Int32Array, starts: Int64Array, ids: Int32Array, before: int = NOTHING) -> UInt64Array:
    """Return the keys of all bigrams within sentences that end in a piece of text, in order, uint64.

    Parameters
    ----------
    codes, starts
        Codes of the piece's words, shape (n,), and indices of the first word of each sentence, shape (s,).
    ids
        Word id of each code.
    before
        Id of the word before the piece, if the piece begins inside the sentence of this word; or `NOTHING`.
    """
    keys = np.empty(len(codes), np.uint64)
    return keys[: _fill_keys(codes, starts, ids, np.int64(before), keys)]


def count_keys(keys: UInt64Array) -> npt.NDArray[Any]:
    """Count equal keys; return an array of BIGRAM with each distinct key, ascending, and its count.

    There are fewer than 2**32 keys, which are sorted in place.
    """
    keys.sort()
    first = _run_starts(keys)
    bigrams = np.empty(len(first), BIGRAM)
    bigrams["key"] = keys[first]
    bigrams["count"] = np.diff(first, append=len(keys))
    return bigrams


def merge_bigrams(parts: Sequence[npt.NDArray[Any]]) -> tuple[UInt64Array, Int64Array]:
    """Add up the counts of equal keys in arrays of BIGRAM; return the distinct keys, ascending, and their counts."""
    keys = np.concatenate([part["key"] for part in parts])
    order = np.argsort(keys)
    keys = keys[order]
    counts = np.concatenate([part["count"] for part in parts])[order]
    first = _run_starts(keys)
    return keys[first], np.add.reduceat(counts, first, dtype=np.int64) if len(first) else np.empty(0, np.int64)


def _run_starts(keys: UInt64Array) -> Int64Array:
    """Return the index of the first key of each run of equal keys, shape (runs,) int64."""
    is_start = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_start[1:])
    return np.flatnonzero(is_start)


def pairs_of(keys: UInt64Array) -> Int32Array:
    """Return the pair of word ids of each of n keys, shape (n, 2) int32: the inverse of `make_key`."""
    numbers = keys * _INVERSE - _ONE
    return np.column_stack([numbers >> _32, numbers & np.uint64(0xFFFFFFFF)]).astype(np.int32)


def choose_n_buckets(n_words: int) -> int:
    """Return the number of buckets for the bigrams of a text of `n_words` tokens, a power of two."""
    return 1 << max(0, -(-n_words // BUCKET_WORDS) - 1).bit_length()


def cut_keys(keys: UInt64Array, n_buckets: int) -> Int64Array:
    """Return the bounds of the buckets among ascending keys, shape (n_buckets + 1,) int64."""
    bits = np.uint64(64 - (n_buckets.bit_length() - 1))
    inner = np.searchsorted(keys, np.arange(1, n_buckets, dtype=np.uint64) << bits)
    return np.array([0, *inner.tolist(), len(keys)])


class Joined(NamedTuple):
    """A piece of text whose phrases are joined.

    Parameters
    ----------
    symbols
        For a single word its code, and for phrase k the number of codes + k, shape (n,) int32.
    starts
        Index of the first symbol of each sentence, shape (s,) int64.
    """

    symbols: Int32Array
    starts: Int64Array


class _PairTable(NamedTuple):
    """A hash table from the keys of phrases to their numbers, at most half full; the key of a free slot is 0."""

    keys: UInt64Array
    numbers: Int32Array


@inline
def _find_slot(key: Any, keys: Any) -> Any:
    """Return the slot of a key in the `keys` of a `_PairTable`, or the free slot where the key belongs."""
    last = np.uint64(len(keys) - 1)
    slot = (key >> np.uint64(32)) & last
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + np.uint64(1)) & last
    return slot


@kernel
def _fill_table(pairs: Any, keys: Any, numbers: Any) -> None:
    """Fill in an empty `_PairTable`, whose fields are `keys` and `numbers`, with phrases, shape (k, 2)."""
    for k in range(len(pairs)):
        key = make_key(pairs[k, 0], pairs[k, 1])
        slot = _find_slot(key, keys)
        keys[slot], numbers[slot] = key, k


@kernel
def _join(
    codes: Any, starts: Any, first: Any, ahead: Any, n_codes: Any, table: Any, symbols: Any, new_starts: Any
) -> Any:
    """Fill in `symbols` and `new_starts`, the fields of `Joined`; return the numbers of symbols and of starts.

    `first` is the index of the first word that is read, `table` the `_PairTable` of the phrases; further arguments are
    as in `join_codes`.
    """
    n, s, i, m = 0, 0, first, 0
    while i < len(codes):
        if s < len(starts) and starts[s] == i:
            new_starts[m] = n
            s, m = s + 1, m + 1
        symbol, i = codes[i], i + 1
        following = codes[i] if i < len(codes) else ahead
        if following != NOTHING and not (s < len(starts) and starts[s] == i):
            slot = _find_slot(make_key(symbol, following), table.keys)
            if table.keys[slot] != 0:
                symbol, i = n_codes + table.numbers[slot], i + 1
        symbols[n] = symbol
        n += 1
    return n, m


def join_codes(
    codes: Int32Array,
    starts: Int64Array,
    pairs: Int32Array,
    n_codes: int,
    *,
    skip_first: bool = False,
    ahead: int = NOTHING,
) -> Joined:
    """Return a piece of text with its phrases joined.

    Parameters
    ----------
    codes, starts
        Codes of the piece's words, shape (n,), and indices of the first word of each sentence, shape (s,).
    pairs
        The phrases, as codes of their two words, shape (k, 2).
    n_codes
        Number of different codes.
    skip_first
        Whether to leave out the first word, as it is the second word of a phrase that begins before the piece.
    ahead
        Code of the word after the piece, if the piece ends inside the sentence of this word; or `NOTHING`. The word is
        read only as the second word of a phrase.
    """
    size = 1 << (2 * len(pairs) + 1).bit_length()
    table = _PairTable(np.zeros(size, np.uint64), np.zeros(size, np.int32))
    _fill_table(pairs, table.keys, table.numbers)
    symbols, new_starts = np.empty(len(codes), np.int32), np.empty(len(starts), np.int64)
    n, m = _join(codes, starts, int(skip_first), np.int32(ahead), np.int32(n_codes), table, symbols, new_starts)
    return Joined(symbols[:n], new_starts[:m])


@kernel
def _renumber(symbols: Any, numbers: Any, order: Any, counts: Any) -> Any:
    """Replace symbols by new numbers 0, 1, ..., in order of first appearance; return how many numbers there are.

    Parameters
    ----------
    symbols
        The symbols, overwritten by their numbers, shape (n,).
    numbers
        The number of each symbol that may occur; -1 before the call.
    order, counts
        Filled: the symbol of each number, and its occurrences.
    """
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
    """The word of each code.

    Parameters
    ----------
    data, offsets
        Word i is data[offsets[i] : offsets[i + 1]].
    indices
        Index i of the word of each code, shape (n_codes,) int64.
    """

    data: UInt8Array
    offsets: Int64Array
    indices: Int64Array

    def with_word(self, word: bytes) -> "WordList":
        """Return a copy with one more word, whose code is the number of codes so far."""
        data = np.concatenate([self.data, np.frombuffer(word, np.uint8)])
        indices = np.append(self.indices, len(self.offsets) - 1)
        return WordList(data, np.append(self.offsets, len(data)), indices)


def encode_symbols(
    symbols: Int32Array, words: WordList, pairs: Int32Array, delimiter: str
) -> tuple[Int32Array, Dictionary]:
    """Return new codes of the words and phrases of a text, by first appearance, and the dictionary of these codes.

    Parameters
    ----------
    symbols
        Symbols of `join_codes`, shape (n,), which are overwritten.
    words
        The word of each old code.
    pairs
        The phrases, as old codes of their two words, shape (k, 2).
    delimiter
        Text between the two words of a phrase.
    """
    n_codes = len(words.indices)
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
    parts[begins[~is_phrase]] = words.indices[order[~is_phrase]]
    joined = words.indices[pairs[order[is_phrase] - n_codes]]
    for i, part in enumerate((joined[:, 0], with_delimiter.indices[-1], joined[:, 1])):
        parts[begins[is_phrase] + i] = part
    data, offsets = take_words(with_delimiter.data, with_delimiter.offsets, parts)
    offsets = offsets[edges]
    dictionary = Dictionary(n)
    # Two symbols may be the same word: if a text has both new_york and new york
    codes = dictionary.encode(padded(data), offsets[:-1], offsets[1:], counts)
    return codes[symbols], dictionary
