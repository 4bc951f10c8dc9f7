"""From words to ids: a sorted array of hashes and ids, of 8 bytes a word and no object.

It is NumPy's, so that whoever asks a model for words loads no compiler.
"""

from bisect import bisect_left
from itertools import groupby
from typing import Any

import numpy as np

from daskw2v.errors import VocabularyError
from daskw2v.shards.words import cut_words, same_words
from daskw2v.types import Int32Array, Int64Array, UInt8Array, UInt64Array

_ALL = (1 << 64) - 1
_ID = (1 << 32) - 1  # bits of a key that are an id; those above are a hash
# Odd constants with well mixed bits (the fractional parts of the golden ratio, sqrt 2 and sqrt 3)
_BASE, _LENGTH, _LAST = 0x9E3779B97F4A7C15, 0x6A09E667F3BCC909, 0xBB67AE8584CAA73B
_32 = np.uint64(32)
_AT_ONCE = 1 << 14  # words that are looked up at once


class WordIndex:
    """The ids of distinct words.

    Parameters
    ----------
    data, offsets
        Word i is data[offsets[i] : offsets[i + 1]], shapes (n,) uint8 and (V + 1,) int64.

    Raises
    ------
    VocabularyError
        If a word occurs twice.
    """

    def __init__(self, data: UInt8Array, offsets: Int64Array) -> None:
        self._data, self._offsets = data, offsets
        self._keys = _sorted_keys(data, offsets)
        self._view = self._keys.data  # gives Python's integers, which are faster one at a time
        self._refuse_twins()

    def __reduce__(self) -> Any:
        return WordIndex, (self._data, self._offsets)  # a memoryview would become bytes, or is refused

    def find(self, word: bytes) -> int | None:
        """Return a word's id, or None if it is unknown."""
        hash_ = _hash(word)
        for place in range(bisect_left(self._view, hash_ << 32), len(self._view)):
            key = self._view[place]
            if key >> 32 != hash_:
                break
            if self._word(key & _ID) == word:
                return key & _ID
        return None

    def find_all(self, data: UInt8Array, offsets: Int64Array) -> Int32Array:
        """Return the id of each word in `data`, -1 if it is unknown, shape (n,) int32."""
        found = np.full(len(offsets) - 1, -1, np.int32)
        keys = _sorted_keys(data, offsets)  # in order of the index: its memory is read from begin to end
        for start in range(0, len(keys), _AT_ONCE):
            part = keys[start : start + _AT_ONCE]
            words, hashes = _ids(part), part >> _32
            places = np.searchsorted(self._keys, hashes << _32)
            while True:
                inside = places < len(self._keys)
                words, hashes, places = words[inside], hashes[inside], places[inside]
                known = self._keys[places]
                alike = known >> _32 == hashes
                words, hashes, places, ids = words[alike], hashes[alike], places[alike], _ids(known[alike])
                if not len(words):
                    break
                same = same_words(self._data, self._offsets, ids, data, offsets, words)
                found[words[same]] = ids[same]
                words, hashes, places = words[~same], hashes[~same], places[~same] + 1
        return found

    def _word(self, id_: int) -> bytes:
        return self._data[self._offsets[id_] : self._offsets[id_ + 1]].tobytes()

    def _refuse_twins(self) -> None:
        """Raise an error where a word stands twice; only words of one hash are compared."""
        hashes = self._keys >> _32
        alike = hashes[1:] == hashes[:-1]
        places = np.flatnonzero(np.append(alike, False) | np.append(False, alike)).tolist()
        for _, group in groupby((self._view[place] for place in places), lambda key: key >> 32):
            words = set[bytes]()
            for key in group:
                word = self._word(key & _ID)
                if word in words:
                    raise VocabularyError(
                        f"The vocabulary holds {word.decode(errors='replace')!r} twice.",
                        "It is damaged: take the model from a copy, or train again; give each word once.",
                    )
                words.add(word)


def _ids(keys: UInt64Array) -> Int64Array:
    return (keys & np.uint64(_ID)).astype(np.int64)


def _hash(word: bytes) -> int:
    """Return 32 well mixed bits of a word: those of a polynomial of its bytes and its length."""
    value = 0
    for byte in reversed(word):
        value = value * _BASE + byte & _ALL
    value = (value + len(word) * _LENGTH) * _LAST & _ALL
    return value >> 32


def _sorted_keys(data: UInt8Array, offsets: Int64Array) -> UInt64Array:
    """Return the keys of words in order: `_hash` above the id, shape (V,) uint64."""
    keys = np.arange(len(offsets) - 1, dtype=np.uint64)
    for first, last in cut_words(offsets):
        bounds = offsets[first : last + 1]
        begins, lengths = bounds[:-1] - bounds[0], np.diff(bounds).astype(np.uint64)
        powers, inverses = (_powers(base, int(bounds[-1] - bounds[0])) for base in (_BASE, pow(_BASE, -1, _ALL + 1)))
        sums = np.zeros(len(powers), np.uint64)
        np.cumsum(data[bounds[0] : bounds[-1]] * powers[:-1], out=sums[1:])
        # Of all bytes at once: a word's polynomial is what it adds, less the powers before it
        values = (sums[bounds[1:] - bounds[0]] - sums[begins]) * inverses[begins]
        values = (values + lengths * np.uint64(_LENGTH)) * np.uint64(_LAST)
        keys[first:last] |= values >> _32 << _32
    keys.sort()
    return keys


def _powers(base: int, n: int) -> UInt64Array:
    """Return the powers 0 to n of a number, modulo 2^64."""
    powers = np.full(n + 1, base, np.uint64)
    powers[0] = 1
    return np.cumprod(powers, out=powers)
