"""The words of a model as gensim names them: a list of keys, and a mapping from keys to their rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, overload

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.models.stored.arguments import word_list
from daskw2v.vocabulary.vocabulary import Vocabulary, Word, is_word


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

    def index(self, word: Word, start: int = 0, stop: int | None = None) -> int:
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


class KeyNumbers(_Words, Mapping[Word, int]):
    """The row of each word; raises UnknownWordError, a KeyError, for other words."""

    def __getitem__(self, word: Word) -> int:
        return self._vocabulary.id(word)


class WordsField:
    """The field `vocabulary` of a class: a list of words becomes a vocabulary without counts."""

    def __set__(self, owner: Any, words: Vocabulary | Iterable[Word]) -> None:
        vars(owner)["vocabulary"] = words if isinstance(words, Vocabulary) else _vocabulary_of(words)

    def __get__(self, owner: Any, kind: type) -> Vocabulary:
        if owner is None:
            raise AttributeError  # the field has no default
        found: Vocabulary = vars(owner)["vocabulary"]
        return found


def _vocabulary_of(words: Iterable[Word]) -> Vocabulary:
    if isinstance(words, Set):
        raise ParameterError("A set of words has no order.", "Give words in a list, in the order of their rows.")
    listed = word_list(words)
    for word in listed:
        if not is_word(word):
            raise ParameterError(f"{word!r} is not a word.", "Give texts or integers, in the order of their rows.")
    return Vocabulary.from_words(listed, [0] * len(listed))
