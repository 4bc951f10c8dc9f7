"""The words of a model as gensim names them: a list of keys, and a mapping from keys to their rows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

import numpy as np

from daskw2v.vocabulary.vocabulary import Vocabulary


class _Words:
    """A view of a vocabulary: texts are made of words that are asked for.

    Parameters
    ----------
    vocabulary
        The words.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def __len__(self) -> int:
        return len(self._vocabulary)

    def __iter__(self) -> Iterator[str]:
        return iter(self._vocabulary)

    def __contains__(self, word: object) -> bool:
        return word in self._vocabulary

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._vocabulary!r})"


class Keys(_Words, Sequence[str]):
    """The words in order of their ids."""

    @overload
    def __getitem__(self, key: int) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> list[str]: ...
    def __getitem__(self, key: int | slice) -> str | list[str]:
        numbers = range(len(self))[key]
        if isinstance(numbers, int | np.integer):
            return self._vocabulary.word(int(numbers))
        if numbers.step == 1:
            return self._vocabulary.between(numbers.start, numbers.stop)
        return [self._vocabulary.word(number) for number in numbers]

    def index(self, word: str, start: int = 0, stop: int | None = None) -> int:
        """Return the row of a word, found as queries find it.

        Raises
        ------
        ValueError
            If the word is not among the rows from `start` to `stop` - 1.
        """
        found = self._vocabulary.find(word)
        if found is None or found not in range(len(self))[start:stop]:
            raise ValueError(f"{word!r} is not in the list.")
        return found


class KeyNumbers(_Words, Mapping[str, int]):
    """The row of each word; raises UnknownWordError, a KeyError, for other words."""

    def __getitem__(self, word: str) -> int:
        return self._vocabulary.id(word)
