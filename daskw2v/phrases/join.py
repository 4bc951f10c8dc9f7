"""Words of a shard joined to phrases: from the left, each word in one phrase at most, in a sentence only."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.jit import inline, kernel
from daskw2v.phrases.bigrams import NOTHING, Ids, Integers, Keys, key_of
from daskw2v.shards.dictionary import Dictionary, padded, take_words


class Joined(NamedTuple):
    """A stretch of text whose bigrams are joined.

    Parameters
    ----------
    symbols
        A code for a word that stays alone, the number of codes + k for phrase k, shape (n,) int32.
    starts
        Where sentences start among them, shape (s,) int64.
    """

    symbols: Ids
    starts: Integers


class _Table(NamedTuple):
    """Phrases by their keys, at most half of the slots in use; a key of 0 is a free slot."""

    keys: Keys
    numbers: Ids


@inline
def _slot_of(key: Any, keys: Any) -> Any:
    """Return the slot of a key, or the free one where it would be."""
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
    """Fill in symbols and starts; return how many there are of each."""
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
    codes: Ids, starts: Integers, pairs: Ids, n_codes: int, *, taken: bool = False, ahead: int = NOTHING
) -> Joined:
    """Join the bigrams of a stretch of text that are phrases.

    Parameters
    ----------
    codes, starts
        The words, and where sentences start among them, shapes (n,) and (s,).
    pairs
        The phrases, as codes of their two words, shape (k, 2).
    n_codes
        Codes are below it.
    taken
        Whether the first word is the second one of a phrase that begins before it: it is left out.
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
    """Put numbers by first appearance in place of symbols; fill in the order and counts, and return how many."""
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


class Words(NamedTuple):
    """Words of codes.

    Parameters
    ----------
    data, offsets
        Word i is data[offsets[i] : offsets[i + 1]].
    places
        Which word each code is.
    """

    data: npt.NDArray[np.uint8]
    offsets: Integers
    places: Integers

    def with_word(self, word: bytes) -> "Words":
        """Return the same with one more word, whose code is the last."""
        data = np.concatenate([self.data, np.frombuffer(word, np.uint8)])
        places = np.append(self.places, len(self.offsets) - 1)
        return Words(data, np.append(self.offsets, len(data)), places)


def encode_symbols(symbols: Ids, words: Words, pairs: Ids, delimiter: str) -> tuple[Ids, Dictionary]:
    """Return the codes of symbols, by first appearance, and their dictionary.

    Parameters
    ----------
    symbols
        As of `join_codes`; they are overwritten.
    words
        The words of codes.
    pairs
        The phrases, as codes of their two words, shape (k, 2).
    delimiter
        What stands between the two.
    """
    n_codes = len(words.places)
    n = min(len(symbols), n_codes + len(pairs))
    order, counts = np.empty(n, np.int64), np.empty(n, np.int64)
    n = _renumber(symbols, np.full(n_codes + len(pairs), -1, np.int32), order, counts)
    order, counts = order[:n], counts[:n]
    # A word is one part, a phrase is three: a word, the delimiter, a word
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
    # Two symbols may be one word: where a text holds new_york beside new york
    codes = dictionary.encode(padded(data), offsets[:-1], offsets[1:], counts)
    return codes[symbols], dictionary
