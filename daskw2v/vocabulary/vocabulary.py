"""The words of a model as UTF-8 bytes, with counts and ids; strings are only made for words that are asked for.

A sorted array of hashes and ids leads from words to ids; it has 8 bytes a word and no Python object. NumPy alone
searches it, so that a query of a model loads no compiler.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from numbers import Integral
from typing import Any, Self, SupportsIndex, TypeGuard

import numpy as np
import zarr

from daskw2v.config.settings import is_number
from daskw2v.errors import UnknownWordError, VocabularyError, counted
from daskw2v.fields import PickledFields
from daskw2v.shards.words import are_words, cut_words, get_word, same_words
from daskw2v.store.arrays import read_array, write_array
from daskw2v.types import Int32Array, Int64Array, UInt8Array, UInt64Array

_ALL = (1 << 64) - 1
_ID = (1 << 32) - 1  # bits of a key that are an id; the bits above are a hash
# Odd constants with well mixed bits (the fractional parts of the golden ratio, sqrt 2 and sqrt 3)
_BASE, _LENGTH, _LAST = 0x9E3779B97F4A7C15, 0x6A09E667F3BCC909, 0xBB67AE8584CAA73B
_32 = np.uint64(32)
_SEARCHED_WORDS = 1 << 14  # words that are searched for at once
_DECODED_WORDS = 4096  # words decoded at once in iteration
_SHOWN_WORDS = 3  # in a repr

Word = str | SupportsIndex  # an integer, such as the id of an item, stands for its digits


class WordIndex:
    """An index that finds the ids of V distinct words.

    Parameters
    ----------
    data, offsets
        The word with id i is data[offsets[i] : offsets[i + 1]], shapes (n,) uint8 and (V + 1,) int64.

    Raises
    ------
    VocabularyError
        If a word occurs twice.
    """

    def __init__(self, data: UInt8Array, offsets: Int64Array) -> None:
        self._data, self._offsets = data, offsets
        self._keys = _make_sorted_keys(data, offsets)
        self._view = self._keys.data  # gives Python's integers, which are faster one at a time
        self._refuse_duplicates()

    def __reduce__(self) -> Any:
        return WordIndex, (self._data, self._offsets)  # a memoryview would become bytes, or is refused

    def find(self, word: bytes) -> int | None:
        """Return the id of a word in UTF-8; None if the index lacks the word."""
        hash_ = _hash_word(word)
        for slot in range(bisect_left(self._view, hash_ << 32), len(self._view)):
            key = self._view[slot]
            if key >> 32 != hash_:
                break
            if get_word(self._data, self._offsets, key & _ID) == word:
                return key & _ID
        return None

    def find_all(self, data: UInt8Array, offsets: Int64Array) -> Int32Array:
        """Return the id of each of n words, -1 if the index lacks the word, shape (n,) int32.

        Parameters
        ----------
        data, offsets
            Word i is data[offsets[i] : offsets[i + 1]], uint8 and shape (n + 1,) int64.
        """
        word_ids = np.full(len(offsets) - 1, -1, np.int32)
        keys = _make_sorted_keys(data, offsets)  # in order of the index: its memory is read from begin to end
        for start in range(0, len(keys), _SEARCHED_WORDS):
            part = keys[start : start + _SEARCHED_WORDS]
            words, hashes = _extract_ids(part), part >> _32
            slots = np.searchsorted(self._keys, hashes << _32)
            while True:
                inside = slots < len(self._keys)
                words, hashes, slots = words[inside], hashes[inside], slots[inside]
                candidates = self._keys[slots]
                alike = candidates >> _32 == hashes
                words, hashes, slots, ids = words[alike], hashes[alike], slots[alike], _extract_ids(candidates[alike])
                if not len(words):
                    break
                same = same_words((self._data, self._offsets), ids, (data, offsets), words)
                word_ids[words[same]] = ids[same]
                words, hashes, slots = words[~same], hashes[~same], slots[~same] + 1
        return word_ids

    def _refuse_duplicates(self) -> None:
        """Raise a VocabularyError if a word occurs twice; only words with equal hashes are compared."""
        hashes = self._keys >> _32
        alike = hashes[1:] == hashes[:-1]
        slots = np.flatnonzero(np.append(alike, False) | np.append(False, alike)).tolist()
        for _, group in groupby((self._view[slot] for slot in slots), lambda key: key >> 32):
            words = set[bytes]()
            for key in group:
                word = get_word(self._data, self._offsets, key & _ID)
                if word in words:
                    remedy = "It is damaged: take the model from a copy, or train again; give each word once."
                    raise VocabularyError(f"The vocabulary holds {word.decode(errors='replace')!r} twice.", remedy)
                words.add(word)


def _extract_ids(keys: UInt64Array) -> Int64Array:
    """Return the ids in the lower 32 bits of keys."""
    return (keys & np.uint64(_ID)).astype(np.int64)


def _hash_word(word: bytes) -> int:
    """Return a 32-bit hash of a word: the mixed bits of a polynomial of the word's bytes, and of its length."""
    value = 0
    for byte in reversed(word):
        value = value * _BASE + byte & _ALL
    value = (value + len(word) * _LENGTH) * _LAST & _ALL
    return value >> 32


def _make_sorted_keys(data: UInt8Array, offsets: Int64Array) -> UInt64Array:
    """Return the keys of V words, ascending, shape (V,) uint64: `_hash_word` of a word << 32 | the word's id."""
    keys = np.arange(len(offsets) - 1, dtype=np.uint64)
    for first, last in cut_words(offsets):
        bounds = offsets[first : last + 1]
        begins, lengths = bounds[:-1] - bounds[0], np.diff(bounds).astype(np.uint64)
        n_bytes = int(bounds[-1] - bounds[0])
        powers, inverses = (_compute_powers(base, n_bytes) for base in (_BASE, pow(_BASE, -1, _ALL + 1)))
        sums = np.zeros(len(powers), np.uint64)
        np.cumsum(data[bounds[0] : bounds[-1]] * powers[:-1], out=sums[1:])
        # A word's polynomial is what its bytes add to the sum over all bytes, divided by the power before the word
        values = (sums[bounds[1:] - bounds[0]] - sums[begins]) * inverses[begins]
        values = (values + lengths * np.uint64(_LENGTH)) * np.uint64(_LAST)
        keys[first:last] |= values >> _32 << _32
    keys.sort()
    return keys


def _compute_powers(base: int, n: int) -> UInt64Array:
    """Return the powers base**0 .. base**n modulo 2**64, shape (n + 1,) uint64."""
    powers = np.full(n + 1, base, np.uint64)
    powers[0] = 1
    return np.cumprod(powers, out=powers)


def is_word(key: Any) -> TypeGuard[Word]:
    """Return whether a key is a string or an integer, but not a bool."""
    return isinstance(key, str) or is_number(key, Integral)


def as_text(key: Any) -> Any:
    """Return the digits of a key that is an integer, as a string, and any other key unchanged."""
    return str(int(key)) if is_number(key, Integral) else key


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary(PickledFields):
    """Words in order of their ids: most frequent first, equal counts by bytes.

    Parameters
    ----------
    data
        UTF-8 bytes of all words, concatenated, shape (n_bytes,) uint8.
    offsets
        Bounds of the words in `data`, shape (V + 1,) int64.
    counts
        Occurrences of each word in the corpus, shape (V,) int64.
    """

    data: UInt8Array
    offsets: Int64Array
    counts: Int64Array

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[str]:
        """Yield the words in order of their ids."""
        for start in range(0, len(self), _DECODED_WORDS):
            yield from self.between(start, min(start + _DECODED_WORDS, len(self)))

    def __repr__(self) -> str:
        first = ", ".join(map(repr, self.between(0, min(_SHOWN_WORDS, len(self)))))
        return f"<Vocabulary of {len(self):,} words: {first}{', ...' if len(self) > _SHOWN_WORDS else ''}>"

    def __contains__(self, word: object) -> bool:
        return self.find(word) is not None

    @classmethod
    def from_words(cls, words: Sequence[Word], counts: Iterable[int]) -> Self:
        """Return the vocabulary of words, which stand in the order of their ids, and of the words' counts.

        Raises
        ------
        VocabularyError
            If a word occurs twice, or the numbers of words and of counts differ.
        """
        encoded = [as_text(word).encode() for word in words]
        numbers = np.array(list(counts), np.int64)
        if len(numbers) != len(encoded) or len(set(encoded)) != len(encoded):
            raise VocabularyError(
                f"{counted(len(encoded), 'word')} ({len(set(encoded))} distinct) with "
                f"{counted(len(numbers), 'count')}.",
                "Give each word once, and one count for each word.",
            )
        offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets, numbers)

    @cached_property
    def words(self) -> list[str]:
        """All words in order of their ids; for large vocabularies, use `word` or `between`."""
        return self.between(0, len(self))

    def between(self, start: int, stop: int) -> list[str]:
        """Return the words of the ids from `start` to `stop` - 1."""
        bounds = self.offsets[start : max(start, stop) + 1]
        data, bounds = self.data[bounds[0] : bounds[-1]].tobytes(), bounds - bounds[0]
        return [_decode(data[a:b]) for a, b in pairwise(bounds.tolist())]

    def word(self, id_: int) -> str:
        """Return the word with an id, 0..V-1.

        Raises
        ------
        IndexError
            If there is no such id.
        """
        if not 0 <= id_ < len(self):
            raise IndexError(f"There is no word {id_} of {len(self)}.")
        return _decode(get_word(self.data, self.offsets, id_))

    @cached_property
    def _index(self) -> WordIndex:
        """The index of the words, built on first use."""
        return WordIndex(self.data, self.offsets)

    def find(self, word: object) -> int | None:
        """Return the id of a word, a string or an integer; None if the vocabulary lacks it, or it has another type."""
        word = as_text(word)
        # Lone surrogates are encoded as bytes that match no word.
        return self._index.find(word.encode("utf-8", "surrogatepass")) if isinstance(word, str) else None

    def find_all(self, other: "Vocabulary") -> Int32Array:
        """Return the id that each word of `other` has in this vocabulary, -1 for none, shape (len(other),) int32."""
        return self._index.find_all(other.data, other.offsets)

    def id(self, word: Word) -> int:
        """Return the id of a word, a string or an integer; an integer stands for its digits.

        Raises
        ------
        UnknownWordError
            If the word is not in the vocabulary.
        """
        id_ = self.find(word)
        if id_ is None:
            raise UnknownWordError(
                f"{as_text(word)!r} is not among the {counted(len(self), 'word')} of the vocabulary.",
                "Look for another form (case, spelling), or train with a lower min_count."
                if isinstance(word, str)
                else "A number is looked up as a word; index_to_key has the word of a row.",
            )
        return id_

    def save(self, group: zarr.Group) -> None:
        """Write the vocabulary into a Zarr group, as the arrays words, offsets and counts."""
        write_array(group, "words", self.data)
        write_array(group, "offsets", self.offsets)
        write_array(group, "counts", self.counts)

    @classmethod
    def load(cls, group: zarr.Group) -> Self:
        """Read the vocabulary that `save` wrote into a Zarr group.

        Raises
        ------
        StoreError
            If an array is missing.
        VocabularyError
            If the arrays contradict each other.
        """
        data, offsets, counts = (read_array(group, name) for name in ("words", "offsets", "counts"))
        types = [array.dtype for array in (data, offsets, counts)]
        if not are_words(data, offsets) or types[2] != np.int64 or counts.ndim != 1 or len(offsets) != len(counts) + 1:
            raise VocabularyError(
                f"The vocabulary at {group.store_path} is damaged: {len(counts)} counts ({types[2]}), {len(offsets)} "
                f"offsets ({types[1]}) over {len(data)} bytes ({types[0]}).",
                "Delete it and run train again.",
            )
        return cls(data, offsets, counts)


def _decode(word: bytes) -> str:
    """Return a word of a vocabulary as a string; raises a VocabularyError if it is no UTF-8."""
    try:
        return word.decode()
    except UnicodeDecodeError as error:
        problem = f"The vocabulary is damaged: its word {word[:60]!r} is no UTF-8 ({error.reason})."
        raise VocabularyError(problem, "Take the model from a copy, or delete it and run train again.") from None
