"""From words to codes: an exact, growing hash table over bytes, without a Python object for each word.

Words are looked up in batches: first the digests of a batch are computed (first 8 bytes, last 8 bytes, hash), then the
table is searched. Words that are in the first slot of their hash are found without a branch.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.kernels.bytes import load8, prefetch_entry, store8
from daskw2v.kernels.jit import inline, kernel
from daskw2v.types import Int32Array, Int64Array, UInt8Array, UInt64Array

PADDING = 8  # bytes that must follow the last word, so that 8 bytes can be loaded anywhere
_BATCH = 512  # words digested before they are looked up; their digests stay in the L1 cache
_ENTRY = 4  # numbers in a table entry: head, tail, (length + 1) << 32 | code + 1 (0: free), occurrences
ENTRY_BYTES = 8 * _ENTRY
_FIRST_TYPES = 1 << 15
_FIRST_BYTES = 1 << 19
# Odd constants with well mixed bits (the fractional parts of the golden ratio, sqrt 2 and sqrt 3).
_LENGTH, _STEP, _LAST = map(np.uint64, (0x9E3779B97F4A7C15, 0x6A09E667F3BCC909, 0xBB67AE8584CAA73B))
_29, _32 = np.uint64(29), np.uint64(32)
_ONE, _CODE = np.uint64(1), np.uint64(0xFFFFFFFF)


@inline
def _mix(hash_: Any, word: Any) -> Any:
    """Return the hash of a sequence of numbers, uint64, from the hash before its last number, `word`."""
    hash_ = (hash_ ^ word) * _STEP
    return hash_ ^ (hash_ >> _32)


class _Memory(NamedTuple):
    """The arrays of a dictionary.

    Parameters
    ----------
    table
        The hash table, at most half full, shape (slots, _ENTRY).
    words, offsets, hashes
        Bytes of the words in the order of their codes; offset of each word in these bytes; hash of each word.
    """

    table: UInt64Array
    words: UInt8Array
    offsets: Int64Array
    hashes: UInt64Array


class _Digests(NamedTuple):
    """The first 8 bytes of each word, its last 8 bytes if it is longer than 8 (else 0), and its hash."""

    heads: UInt64Array
    tails: UInt64Array
    hashes: UInt64Array


@kernel
def _digest(data: UInt8Array, begins: Int64Array, ends: Int64Array, digests: Any, table: UInt64Array) -> None:
    """Fill in the digest of each word data[begins[i] : ends[i]]; prefetch the entry of the word's first slot.

    Head, tail and length determine a word of up to 16 bytes. No branch depends on a length below that: it would be
    mispredicted, which costs more than everything else.
    """
    heads, tails, hashes = digests
    slots = np.uint64(len(table) - 1)
    for i in range(len(begins)):
        begin, end = begins[i], ends[i]
        length = end - begin
        half = np.uint64(4 * (8 - min(length, 8)))
        head = (load8(data, begin) << half) << half
        tail = load8(data, max(begin, end - 8)) & np.uint64(-np.int64(length > 8))
        hash_ = _mix(_mix(np.uint64(length) * _LENGTH, head), tail)
        if length > 16:
            for k in range(begin + 8, end - 8, 8):
                hash_ = _mix(hash_, load8(data, k))
        hash_ *= _LAST
        hash_ ^= hash_ >> _29
        heads[i], tails[i], hashes[i] = head, tail, hash_
        prefetch_entry(table, np.int64(hash_ & slots) * _ENTRY)


@inline
def _same_middle(a: UInt8Array, i: int, b: UInt8Array, j: int, length: int) -> bool:
    """Return whether a[i : i + length] equals b[j : j + length], for words of more than 16 bytes with equal digests."""
    same = True
    for k in range(8, length - 8, 8):
        same &= load8(a, i + k) == load8(b, j + k)
    return same


@kernel
def _look_up(
    begins: Int64Array, ends: Int64Array, digests: Any, codes: Int32Array, missed: Int64Array, table: UInt64Array
) -> int:
    """Look up words of up to 16 bytes in the first slots of their hashes; return the number of words not found.

    Parameters
    ----------
    begins, ends
        Bounds of the n words in the text, shape (n,).
    digests
        Heads, tails and hashes of the words, as `_digest` fills them in, shape (n,) uint64 each.
    codes
        Filled with the code of each word that is found; the word's count in the table grows by 1. Others are undefined.
    missed
        Filled with the indices of the words that are not found, also of all longer words.
    table
        The hash table.
    """
    heads, tails, hashes = digests
    slots, n_missed = np.uint64(len(table) - 1), np.uint64(0)
    for i in range(len(begins)):
        slot, length = hashes[i] & slots, ends[i] - begins[i]
        entry = table[slot, 2]
        difference = (table[slot, 0] ^ heads[i]) | (table[slot, 1] ^ tails[i])
        difference |= (entry >> _32) ^ np.uint64(length + 1)
        is_found = np.uint64((difference == 0) & (length <= 16))
        table[slot, 3] += is_found
        codes[i] = np.int64(entry & _CODE) - 1
        missed[n_missed] = i
        n_missed += _ONE - is_found
    return int(n_missed)


@kernel
def _find_or_insert(
    data: UInt8Array, begin: int, length: int, head: Any, tail: Any, hash_: Any, n_types: int, memory: Any
) -> Any:
    """Return the slot of the word data[begin : begin + length]; insert a new word with code `n_types` and count 0.

    `head`, `tail` and `hash_` are the word's digest.
    """
    table, words, offsets, hashes = memory
    slots, key = np.uint64(len(table) - 1), np.uint64(length + 1) << _32
    slot = hash_ & slots
    while True:
        entry = table[slot, 2]
        difference = (table[slot, 0] ^ head) | (table[slot, 1] ^ tail) | ((entry ^ key) >> _32)
        if difference == 0:
            start = offsets[(entry & _CODE) - _ONE]
            if length <= 16 or _same_middle(data, begin, words, start, length):
                return slot
        elif entry == 0:
            table[slot, 0], table[slot, 1], table[slot, 2] = head, tail, key | np.uint64(n_types + 1)
            start = offsets[n_types]
            for k in range(0, length, 8):  # may write too far; the next word overwrites that
                store8(words, start + k, load8(data, begin + k))
            offsets[n_types + 1] = start + length
            hashes[n_types] = hash_
            return slot
        slot = (slot + _ONE) & slots


@kernel
def _encode(
    data: UInt8Array, begins: Int64Array, ends: Int64Array, codes: Int32Array, memory: Any, n_types: int
) -> tuple[int, int]:
    """Count words and fill in their codes, batch by batch, while the dictionary has room for a batch of new words.

    Parameters
    ----------
    data, begins, ends, codes
        Word i is data[begins[i] : ends[i]]; its code is filled in.
    memory, n_types
        The dictionary, and the number of its words.

    Returns
    -------
    tuple
        Number of words that have codes now, and number of words in the dictionary.
    """
    done, n = 0, len(begins)
    heads, tails, hashes = np.empty(_BATCH, np.uint64), np.empty(_BATCH, np.uint64), np.empty(_BATCH, np.uint64)
    digests = _Digests(heads, tails, hashes)
    missed = np.empty(_BATCH, np.int64)
    while done < n and n_types + _BATCH <= len(memory.hashes):
        stop = min(done + _BATCH, n)
        a, b, c = begins[done:stop], ends[done:stop], codes[done:stop]
        _digest(data, a, b, digests, memory.table)
        for m in range(_look_up(a, b, digests, c, missed, memory.table)):
            i = missed[m]
            slot = _find_or_insert(data, a[i], b[i] - a[i], heads[i], tails[i], hashes[i], n_types, memory)
            c[i] = np.int64(memory.table[slot, 2] & _CODE) - 1
            n_types = max(n_types, c[i] + 1)
            memory.table[slot, 3] += _ONE
        done = stop
    return done, n_types


@kernel
def _add_counts(codes: Int32Array, more: Int64Array, hashes: UInt64Array, table: UInt64Array) -> None:
    """Add more[i] to the count of the word with code codes[i]; `hashes` are the hashes of all words, by code."""
    slots = np.uint64(len(table) - 1)
    for i in range(len(codes)):
        slot = hashes[codes[i]] & slots
        while np.int64(table[slot, 2] & _CODE) - 1 != codes[i]:
            slot = (slot + _ONE) & slots
        table[slot, 3] += np.uint64(more[i])


@kernel
def _move_entries(old: UInt64Array, hashes: UInt64Array, table: UInt64Array) -> None:
    """Insert all entries of the table `old` into an empty table; `hashes` are the hashes of all words, by code."""
    slots = np.uint64(len(table) - 1)
    for i in range(len(old)):
        if old[i, 2]:
            slot = hashes[(old[i, 2] & _CODE) - _ONE] & slots
            while table[slot, 2]:
                slot = (slot + _ONE) & slots
            table[slot] = old[i]


@kernel
def _read_counts(table: UInt64Array, counts: Int64Array) -> None:
    """Fill in the count of each code."""
    for i in range(len(table)):
        if table[i, 2]:
            counts[(table[i, 2] & _CODE) - _ONE] = table[i, 3]


def _grow_array(array: npt.NDArray[Any], size: int, used: int) -> npt.NDArray[Any]:
    """Return a new array of `size` numbers whose first `used` numbers are those of `array`; the rest is undefined."""
    grown = np.empty(size, array.dtype)
    grown[:used] = array[:used]
    return grown


def padded(data: bytes | UInt8Array) -> UInt8Array:
    """Return a copy of n bytes with `PADDING` zeros behind them, shape (n + PADDING,) uint8."""
    if isinstance(data, bytes):
        return np.frombuffer(data + bytes(PADDING), np.uint8)
    return np.concatenate([data, np.zeros(PADDING, np.uint8)])


def capacity_for(n_types: int) -> int:
    """Return the number of words, a power of two above `n_types`, that a dictionary of `n_types` words has room for.

    Its hash table has two slots for each.
    """
    return 1 << (max(n_types, _FIRST_TYPES) + _BATCH - 1).bit_length()


class Dictionary:
    """Distinct words with counts, and with codes 0, 1, ... by first appearance; exact in spite of hash collisions.

    Parameters
    ----------
    n_types
        Number of words to make room for; the dictionary grows if more words are added.
    """

    def __init__(self, n_types: int = 0) -> None:
        size = capacity_for(n_types)
        self._n = 0
        self._memory = _Memory(
            np.zeros((2 * size, _ENTRY), np.uint64),
            np.empty(_FIRST_BYTES, np.uint8),
            np.zeros(size + 1, np.int64),
            np.empty(size, np.uint64),
        )

    def __len__(self) -> int:
        return self._n

    @property
    def words(self) -> UInt8Array:
        """Bytes of all words, concatenated in the order of codes, shape (n_bytes,) uint8."""
        return self._memory.words[: self.offsets[-1]]

    @property
    def offsets(self) -> Int64Array:
        """Bounds of the u words in `words`, shape (u + 1,) int64."""
        return self._memory.offsets[: self._n + 1]

    @property
    def hashes(self) -> UInt64Array:
        """Hash of each word, shape (u,) uint64, equal on all machines."""
        return self._memory.hashes[: self._n]

    def counts(self) -> Int64Array:
        """Return the number of occurrences of each word, shape (u,) int64."""
        counts = np.empty(self._n, np.int64)
        _read_counts(self._memory.table, counts)
        return counts

    def encode(
        self, data: UInt8Array, begins: Int64Array, ends: Int64Array, weights: Int64Array | None = None
    ) -> Int32Array:
        """Count t words and return their codes; new words get codes, too.

        Parameters
        ----------
        data
            Bytes, shape (n,) uint8, with at least `PADDING` bytes behind the last word (see `padded`).
        begins, ends
            Word i is data[begins[i] : ends[i]], shape (t,) int64, ascending; shorter than 2**31 bytes.
        weights
            Number of occurrences that each word counts for, shape (t,) int64; None for 1.

        Returns
        -------
        ndarray
            Codes, shape (t,) int32.

        Raises
        ------
        ParameterError
            If the padding is missing.
        """
        codes = np.empty(len(begins), np.int32)
        if not len(begins):
            return codes
        if int(ends[-1]) + PADDING > len(data):
            raise ParameterError(
                f"The last word ends at byte {ends[-1]} of {len(data)}; fewer than {PADDING} bytes follow.",
                "Give padded(data).",
            )
        data = data.view()
        data.flags.writeable = False  # so that one compiled kernel serves writeable and read-only arrays
        self._reserve(int(ends[-1] - begins[0]))
        done, self._n = _encode(data, begins, ends, codes, self._memory, self._n)
        while done < len(begins):
            self._grow()
            step, self._n = _encode(data, begins[done:], ends[done:], codes[done:], self._memory, self._n)
            done += step
        if weights is not None:
            _add_counts(codes, weights - 1, self._memory.hashes, self._memory.table)
        return codes

    def _reserve(self, n_bytes: int) -> None:
        """Make room for new words of `n_bytes` bytes together."""
        used, words = len(self.words), self._memory.words
        min_size = used + n_bytes + PADDING
        if min_size > len(words):
            self._memory = self._memory._replace(words=_grow_array(words, max(2 * len(words), min_size), used))

    def _grow(self) -> None:
        """Make room for twice as many words."""
        old, words, offsets, hashes = self._memory
        size, table = 2 * len(hashes), np.zeros((2 * len(old), _ENTRY), np.uint64)
        offsets, hashes = _grow_array(offsets, size + 1, self._n + 1), _grow_array(hashes, size, self._n)
        self._memory = _Memory(table, words, offsets, hashes)
        _move_entries(old, self.hashes, self._memory.table)
