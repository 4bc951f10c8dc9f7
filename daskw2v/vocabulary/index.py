"""From words to ids: a hash table over flat bytes, of 6 to 12 bytes a word and no object."""

from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.errors import VocabularyError
from daskw2v.jit import inline, kernel

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int32]

_FREE = -1
_BASIS, _PRIME, _29 = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3), np.uint64(29)  # FNV-1a


@inline
def _first_slot(data: Any, begin: Any, end: Any, slots: Any) -> Any:
    hash_ = _BASIS
    for k in range(begin, end):
        hash_ = (hash_ ^ np.uint64(data[k])) * _PRIME
    return np.int64((hash_ ^ (hash_ >> _29)) & np.uint64(len(slots) - 1))


@inline
def _slot_of(word: Any, begin: Any, end: Any, data: Any, offsets: Any, slots: Any) -> Any:
    """Return the slot of the word that is word[begin:end], or the first one that is free for it."""
    slot, length = _first_slot(word, begin, end, slots), end - begin
    while slots[slot] != _FREE:
        first = offsets[slots[slot]]
        if offsets[slots[slot] + 1] - first == length:
            k = 0
            while k < length and word[begin + k] == data[first + k]:
                k += 1
            if k == length:
                break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@kernel
def _fill(data: Bytes, offsets: Offsets, slots: Slots) -> int:
    """Put each word's id into a slot; return the first one whose word stood before, -1 where all are distinct."""
    for i in range(len(offsets) - 1):
        slot = _slot_of(data, offsets[i], offsets[i + 1], data, offsets, slots)
        if slots[slot] != _FREE:
            return i
        slots[slot] = i
    return -1


@kernel
def _find(word: Bytes, data: Bytes, offsets: Offsets, slots: Slots) -> int:
    return int(slots[_slot_of(word, 0, len(word), data, offsets, slots)])


@kernel
def _find_all(words: Bytes, bounds: Offsets, data: Bytes, offsets: Offsets, slots: Slots, found: Slots) -> None:
    for i in range(len(found)):
        found[i] = slots[_slot_of(words, bounds[i], bounds[i + 1], data, offsets, slots)]


class WordIndex:
    """The ids of distinct words.

    Parameters
    ----------
    data, offsets
        Word i is data[offsets[i] : offsets[i + 1]], shapes (n,) uint8 and (V + 1,) int64.

    Raises
    ------
    VocabularyError
        If a word stands twice.
    """

    def __init__(self, data: Bytes, offsets: Offsets) -> None:
        self._data, self._offsets = _read_only(data), _read_only(offsets)
        self._slots = np.full(1 << (3 * len(offsets) // 2).bit_length(), _FREE, np.int32)  # two thirds used at most
        twin = _fill(self._data, self._offsets, self._slots)
        if twin >= 0:
            word = data[offsets[twin] : offsets[twin + 1]].tobytes()
            raise VocabularyError(
                f"The vocabulary holds {word.decode(errors='replace')!r} twice.",
                "It is damaged: take the model from a copy, or train again; give each word once.",
            )

    def find(self, word: bytes) -> int | None:
        """Return a word's id, or None where it is not there."""
        found = _find(np.frombuffer(word, np.uint8), self._data, self._offsets, self._slots)
        return None if found < 0 else int(found)

    def find_all(self, data: Bytes, offsets: Offsets) -> Slots:
        """Return the id of each word of such bytes, -1 where it is not there, shape (n,) int32."""
        found = np.empty(len(offsets) - 1, np.int32)
        _find_all(_read_only(data), _read_only(offsets), self._data, self._offsets, self._slots, found)
        return found


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view as bytes objects give it: one compiled kernel for all that comes."""
    view = array.view()
    view.flags.writeable = False
    return view
