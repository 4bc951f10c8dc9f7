"""Joins the phrases of a shard, within sentences, from the left; a word belongs to one phrase at most."""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.kernels.jit import inline, kernel
from daskw2v.phrases.bigrams import NOTHING, key_of
from daskw2v.shards.dictionary import Dictionary, padded
from daskw2v.shards.words import take_words
from daskw2v.types import Int32Array, Int64Array, UInt8Array, UInt64Array


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
    """Replace symbols by numbers in order of first appearance; fill in order and counts; return how many there are."""
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
