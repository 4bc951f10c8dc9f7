"""Words to codes: an exact, growing hash table over bytes, without a Python object per word.

What each step gained, in ns per word of 32 MiB of Wikipedia (5.7 M words, 129 K types), one core at 2.5 GHz:

    8 bytes a step; hash and code in the table; a branch on whether a word has more than 8 bytes   40
    head and tail in the table, no branch on lengths up to 16                                      34
    table entries asked for some words ahead                                                       27
    hashing and looking up as two kernels, over padded bytes                                       23

Finding the words (`whitespace.split`) takes another 6; byte by byte (FNV), all together took 41.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.jit import inline, kernel
from daskw2v.shards.bytes import load8, prefetch

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.uint64]

PADDING = 8  # bytes that must follow the last word, so that 8 can be loaded at once anywhere
_AHEAD = 24  # words between asking for a table entry and reading it
_ENTRY = 4  # numbers a table entry: head, tail, (length + 1) << 32 | code + 1 (0: free), unused
_FIRST_TYPES = 1 << 15
_FIRST_BYTES = 1 << 19
# Odd constants with well mixed bits (the fractional parts of the golden ratio, sqrt 2 and sqrt 3).
_LENGTH, _STEP, _LAST = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0x6A09E667F3BCC909),
    np.uint64(0xBB67AE8584CAA73B),
)
_29, _32 = np.uint64(29), np.uint64(32)
_ONE, _CODE = np.uint64(1), np.uint64(0xFFFFFFFF)


@inline
def _mixed(hash_: Any, word: Any) -> Any:
    hash_ = (hash_ ^ word) * _STEP
    return hash_ ^ (hash_ >> _32)


@kernel
def _digest(data: Bytes, begins: Integers, ends: Integers, heads: Unsigned, tails: Unsigned, hashes: Unsigned) -> None:
    """Find each word's first 8 bytes, its last 8 if it is longer (else 0), and its hash.

    Head, tail and length are all of a word of up to 16 bytes, and no branch depends on a length below that:
    it would be mispredicted, which costs more than all the rest.
    """
    for i in range(len(begins)):
        begin, end = begins[i], ends[i]
        length = end - begin
        half = np.uint64(4 * (8 - min(length, 8)))
        head = (load8(data, begin) << half) << half
        tail = load8(data, max(begin, end - 8)) & np.uint64(-np.int64(length > 8))
        hash_ = _mixed(_mixed(np.uint64(length) * _LENGTH, head), tail)
        if length > 16:
            for k in range(begin + 8, end - 8, 8):
                hash_ = _mixed(hash_, load8(data, k))
        hash_ *= _LAST
        heads[i], tails[i], hashes[i] = head, tail, hash_ ^ (hash_ >> _29)


@inline
def _same_middle(a: Bytes, i: int, b: Bytes, j: int, length: int) -> bool:
    """Compare all but head and tail of words of more than 16 bytes."""
    same = True
    for k in range(8, length - 8, 8):
        same &= load8(a, i + k) == load8(b, j + k)
    return same


@kernel
def _look_up(
    data: Bytes,
    begins: Integers,
    ends: Integers,
    weights: Integers | None,
    heads: Unsigned,
    tails: Unsigned,
    digests: Unsigned,
    codes: npt.NDArray[np.int32],
    table: Unsigned,
    words: Bytes,
    offsets: Integers,
    hashes: Unsigned,
    counts: Integers,
    n_types: int,
) -> tuple[int, int]:
    """Look up or insert words; return how many were done before room ran out, and the number of types."""
    slots = np.uint64(len(table) - 1)
    n = len(begins)
    for i in range(n):
        ahead = min(i + _AHEAD, n - 1)
        prefetch(table, np.int64(digests[ahead] & slots) * _ENTRY)
        head, tail, slot = heads[i], tails[i], digests[i] & slots
        begin = begins[i]
        length = ends[i] - begin
        while True:
            entry = table[slot, 2]
            code: Any = np.int64(entry & _CODE) - 1
            other = (table[slot, 0] ^ head) | (table[slot, 1] ^ tail) | ((entry >> _32) ^ np.uint64(length + 1))
            if other == 0:
                if length <= 16 or _same_middle(data, begin, words, offsets[code], length):
                    break
            elif code < 0:
                start = offsets[n_types]
                if n_types == len(counts) or start + length + PADDING > len(words):
                    return i, n_types
                table[slot, 0], table[slot, 1] = head, tail
                table[slot, 2] = (np.uint64(length + 1) << _32) | np.uint64(n_types + 1)
                for k in range(length):
                    words[start + k] = data[begin + k]
                hashes[n_types] = digests[i]
                counts[n_types] = 0
                offsets[n_types + 1] = start + length
                code = n_types
                n_types += 1
                break
            slot = (slot + _ONE) & slots
        codes[i] = code
        if weights is None:
            counts[code] += 1
        else:
            counts[code] += weights[i]
    return n, n_types


@kernel
def _fill(table: Unsigned, heads: Unsigned, tails: Unsigned, hashes: Unsigned, offsets: Integers) -> None:
    """Put all words into an empty table; they are known to be distinct."""
    slots = np.uint64(len(table) - 1)
    n = len(hashes)
    for code in range(n):
        prefetch(table, np.int64(hashes[min(code + _AHEAD, n - 1)] & slots) * _ENTRY)
        slot = hashes[code] & slots
        while table[slot, 2]:
            slot = (slot + _ONE) & slots
        table[slot, 0], table[slot, 1] = heads[code], tails[code]
        table[slot, 2] = (np.uint64(offsets[code + 1] - offsets[code] + 1) << _32) | np.uint64(code + 1)


@kernel
def gather_words(words: Bytes, offsets: Integers, order: Integers, out: Bytes, out_offsets: Integers) -> None:
    """Copy words order[0], order[1], ... one after another; `out_offsets` (len(order) + 1,) is filled too."""
    out_offsets[0] = 0
    for i in range(len(order)):
        begin, end, to = offsets[order[i]], offsets[order[i] + 1], out_offsets[i]
        for k in range(end - begin):
            out[to + k] = words[begin + k]
        out_offsets[i + 1] = to + end - begin


def _grown(array: npt.NDArray[Any], size: int, used: int) -> npt.NDArray[Any]:
    grown = np.empty(size, array.dtype)
    grown[:used] = array[:used]
    return grown


def padded(data: bytes | Bytes) -> Bytes:
    """Copy bytes and put `PADDING` more after them, shape (n + PADDING,) uint8."""
    if isinstance(data, bytes):
        return np.frombuffer(data + bytes(PADDING), np.uint8)
    return np.concatenate([data, np.zeros(PADDING, np.uint8)])


def take_words(words: Bytes, offsets: Integers, order: Integers) -> tuple[Bytes, Integers]:
    """Return the bytes and offsets of words order[0], order[1], ...

    Parameters
    ----------
    words, offsets
        Flat bytes (n,) uint8 and offsets (u + 1,) int64.
    order
        Which words, shape (k,) int64.
    """
    lengths = np.diff(offsets)[order]
    out, out_offsets = np.empty(int(lengths.sum()), np.uint8), np.empty(len(order) + 1, np.int64)
    gather_words(words, offsets, order, out, out_offsets)
    return out, out_offsets


class Dictionary:
    """Distinct words with counts, coded 0, 1, ... by first appearance; exact, whatever the hashes do."""

    def __init__(self) -> None:
        self._n = 0
        self._words = np.empty(_FIRST_BYTES, np.uint8)
        self._offsets = np.zeros(_FIRST_TYPES + 1, np.int64)
        self._hashes = np.empty(_FIRST_TYPES, np.uint64)
        self._counts = np.empty(_FIRST_TYPES, np.int64)
        self._table = np.zeros((4 * _FIRST_TYPES, _ENTRY), np.uint64)  # at most half used

    def __len__(self) -> int:
        return self._n

    @property
    def words(self) -> Bytes:
        """All words' bytes one after another, shape (n_bytes,) uint8."""
        return self._words[: self._offsets[self._n]]

    @property
    def offsets(self) -> Integers:
        """Where each word starts in `words`, and where the last one ends, shape (u + 1,) int64."""
        return self._offsets[: self._n + 1]

    @property
    def counts(self) -> Integers:
        """Occurrences of each word, shape (u,) int64."""
        return self._counts[: self._n]

    @property
    def hashes(self) -> Unsigned:
        """Hash of each word, shape (u,) uint64; the same on every machine."""
        return self._hashes[: self._n]

    def encode(
        self, data: Bytes, begins: Integers, ends: Integers, weights: Integers | None = None
    ) -> npt.NDArray[np.int32]:
        """Count words and return their codes; new words are added.

        Parameters
        ----------
        data
            Bytes, shape (n,) uint8, with `PADDING` more after the last word (see `padded`).
        begins, ends
            Word i is data[begins[i] : ends[i]], shape (t,) int64, ascending; shorter than 2**31 bytes.
        weights
            How often each word counts, shape (t,) int64; once by default.

        Returns
        -------
        ndarray
            Codes, shape (t,) int32.

        Raises
        ------
        ParameterError
            If the padding is missing.
        """
        if len(ends) and int(ends[-1]) + PADDING > len(data):
            raise ParameterError(
                f"The last word ends at byte {ends[-1]} of {len(data)}: fewer than {PADDING} follow.",
                "Give padded(data).",
            )
        data = data.view()
        data.flags.writeable = False  # one compiled kernel for what was read and what was made
        codes = np.empty(len(begins), np.int32)
        digest = np.empty((3, len(begins)), np.uint64)
        _digest(data, begins, ends, *digest)
        done = 0
        while done < len(begins):
            step, self._n = _look_up(
                data,
                begins[done:],
                ends[done:],
                None if weights is None else weights[done:],
                *digest[:, done:],
                codes[done:],
                self._table,
                self._words,
                self._offsets,
                self._hashes,
                self._counts,
                self._n,
            )
            done += step
            if done < len(begins):
                self._grow(int(ends[done] - begins[done]))
        return codes

    def _grow(self, length: int) -> None:
        """Make room for at least one more word of `length` bytes."""
        used = int(self._offsets[self._n])
        if used + length + PADDING > len(self._words):
            self._words = _grown(self._words, max(2 * len(self._words), used + length + PADDING), used)
        if self._n == len(self._counts):
            size = 2 * self._n
            self._offsets = _grown(self._offsets, size + 1, self._n + 1)
            self._hashes = _grown(self._hashes, size, self._n)
            self._counts = _grown(self._counts, size, self._n)
            self._fill_table()

    def _fill_table(self) -> None:
        """Make a table that is at most a quarter full, so that most words lie in their first slot."""
        self._table = np.zeros((4 * len(self._counts), _ENTRY), np.uint64)
        digest = np.empty((3, self._n), np.uint64)
        _digest(self._words, self._offsets[: self._n], self._offsets[1 : self._n + 1], *digest)
        _fill(self._table, *digest, self.offsets)
