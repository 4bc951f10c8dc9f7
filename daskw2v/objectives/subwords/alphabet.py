"""The characters that a network knows, and words as arrays of their numbers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Self

import numpy as np
import numpy.typing as npt

from daskw2v.fields import PickledFields
from daskw2v.types import Int32Array

LENGTH = 24  # numbers of a word, markers included
MOST = 256  # characters known

UNKNOWN, BEGIN, END = 1, 2, 3  # 0 is padding
_FIRST = 4  # number of the first character


@dataclass(frozen=True)
class Alphabet(PickledFields):
    """Characters and their numbers.

    A character is a Unicode code point. Combining marks are characters of their own, unless the tokenizer composes
    them. A word is a marker of its begin, its characters, a marker of its end, and zeros. The middle of a word that is
    too long is left out.

    Parameters
    ----------
    characters
        Those known, in order of their numbers.
    length
        Numbers of each word.
    """

    characters: str
    length: int = LENGTH

    @classmethod
    def of(cls, words: Iterable[str], most: int = MOST) -> Self:
        """Return an alphabet of the `most` characters that occur in the most words.

        Each word counts once, whatever its frequency: the network learns from each word alike.
        """
        found = Counter(chain.from_iterable(map(set, words)))
        ranked = sorted(found, key=lambda character: (-found[character], character))
        return cls("".join(ranked[:most]))

    def __len__(self) -> int:
        """Count the numbers besides padding: 1 to this one."""
        return _FIRST - 1 + len(self.characters)

    @cached_property
    def _codes(self) -> tuple[npt.NDArray[np.uint32], Int32Array]:
        """Code points in order, and the number of each; the last is beyond all."""
        codes = _code_points(self.characters)
        order = np.argsort(codes)
        return np.append(codes[order], np.uint32(0xFFFFFFFF)), np.append(order + _FIRST, UNKNOWN).astype(np.int32)

    def encode(self, words: Sequence[str]) -> Int32Array:
        """Return the numbers of each word's characters, shape (n, length) int32: 0 behind its end, 1 for unknown."""
        room = self.length - 2
        head, tail = room - room // 2, room // 2
        shown = [word if len(word) <= room else word[:head] + word[len(word) - tail :] for word in words]
        lengths = np.fromiter(map(len, shown), np.int64, len(shown))
        codes, numbers = self._codes
        text = _code_points("".join(shown))
        places = np.searchsorted(codes, text)
        encoded = np.zeros((len(shown), self.length), np.int32)
        encoded[:, 0] = BEGIN
        within = np.arange(1, self.length - 1) <= lengths[:, None]
        encoded[:, 1:-1][within] = np.where(codes[places] == text, numbers[places], UNKNOWN)
        encoded[np.arange(len(shown)), lengths + 1] = END
        return encoded


def _code_points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
