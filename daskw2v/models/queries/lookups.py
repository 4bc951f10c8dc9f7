"""Rows, counts and vectors of words, by the names of gensim's `KeyedVectors`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError, counted
from daskw2v.models.queries.other_names import INSTEAD, Answers
from daskw2v.models.queries.rows import WordRows
from daskw2v.models.stored.arguments import as_nonempty_word_list, as_query_vector
from daskw2v.models.stored.blocks import normalize_queries, normalize_rows
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import Vocabulary, Word


class _Words:
    """A view of the words of a vocabulary, which are decoded one by one.

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
    """The words in order of their ids. They equal a list of the same words, as gensim's list does."""

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | Keys):
            return NotImplemented
        return len(self) == len(other) and all(word == another for word, another in zip(self, other, strict=True))

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
        """Return the row of a word; an integer means the text of its decimal digits.

        Raises
        ------
        ValueError
            If the word is not among the rows from `start` to `stop` - 1.
        """
        row = self._vocabulary.find(word)
        if row is None or row not in range(len(self))[start:stop]:
            raise ValueError(f"{word!r} is not in the list.")
        return row


class KeyNumbers(_Words, Mapping[Word, int]):
    """The row of each word, as a mapping; raises UnknownWordError, a KeyError, for other words."""

    def __getitem__(self, word: Word) -> int:
        return self._vocabulary.id(word)


class Lookups(WordRows, Answers):
    """The row, the count and the vector of a word."""

    @classmethod
    def _remedy(cls, name: str) -> str:
        if name == "wv":
            return "These are the vectors: leave .wv out."
        if name in ("load", "load_model", "load_word2vec_format"):
            return "Give daskw2v.open(url)."
        return f"Give {INSTEAD[name]}." if name in INSTEAD else ""

    @property
    def index_to_key(self) -> Keys:
        """The words in order of their ids, as a sequence that decodes words when they are read.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]]).index_to_key[:2]
        ['king', 'queen']
        """
        return Keys(self.vocabulary)

    @property
    def key_to_index(self) -> KeyNumbers:
        """The id of each word, which is its row.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]]).key_to_index["apple"]
        2
        """
        return KeyNumbers(self.vocabulary)

    def get_index(self, key: Word, default: int | None = None) -> int:
        """Return the id of a word, which is its row.

        Parameters
        ----------
        key
            The word.
        default
            Answer for a word outside the vocabulary; None raises an error.

        Raises
        ------
        UnknownWordError
            If the word is not in the vocabulary, and there is no default.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> vectors.get_index("queen"), vectors.get_index("pear", -1)
        (1, -1)
        """
        id_ = self.vocabulary.find(key)
        if id_ is None:
            return self.vocabulary.id(key) if default is None else default
        return id_

    def has_index_for(self, key: Word) -> bool:
        """Return whether a word has a row; a word without one may have a vector, by a subword network or n-grams.

        Parameters
        ----------
        key
            The word.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> vectors.has_index_for("queen"), vectors.has_index_for("pear")
        (True, False)
        """
        return key in self.vocabulary

    def get_vecattr(self, key: Word, attr: str) -> int:
        """Return an attribute of a word.

        Parameters
        ----------
        key
            The word.
        attr
            `count`: how often it occurs in the text; 0 for all words of a model without counts.

        Raises
        ------
        UnknownWordError
            If the word is not in the vocabulary.
        ParameterError
            If there is no such attribute.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> vectors.get_vecattr("queen", "count")
        0
        """
        if attr != "count":
            raise ParameterError(f"attr={attr!r} is unknown.", "Give count, the only attribute that words have.")
        return int(self.vocabulary.counts[self.vocabulary.id(key)])

    def get_vector(self, word: Word, norm: bool = False) -> Float32Array:
        """Return a copy of a word's vector, shape (D,) float32.

        Parameters
        ----------
        word
            The word.
        norm
            Whether the vector is scaled to length 1.

        Raises
        ------
        UnknownWordError
            If the word is not known.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 4], [2, 2], [-1, 1]])
        >>> vectors.get_vector("king", norm=True).round(2).tolist()
        [0.6000000238418579, 0.800000011920929]
        """
        rows = self._look_up([word])[1]
        return np.asarray((normalize_rows(rows) if norm else rows)[0])

    def get_mean_vector(
        self,
        keys: Sequence[Word | npt.NDArray[Any]],
        weights: npt.ArrayLike | None = None,
        pre_normalize: bool = True,
        post_normalize: bool = False,
        ignore_missing: bool = True,
    ) -> Float32Array:
        """Return the weighted mean of words' vectors, shape (D,) float32, by gensim's defaults.

        Parameters
        ----------
        keys
            Words; or arrays of shape (D,), which are taken as they are.
        weights
            Weight of each key, shape (n,); 1 by default. The weighted sum is divided by the sum of the absolute weights
            of known keys.
        pre_normalize
            Whether words' vectors are scaled to length 1 before.
        post_normalize
            Whether the mean is scaled to length 1.
        ignore_missing
            Whether unknown words are passed over; the mean of none is zeros.

        Raises
        ------
        UnknownWordError
            If a word is not known, and unknown ones are not passed over.
        ParameterError
            If `keys` is empty or no list, there are not as many weights as keys, a weight is not finite, or an array
            does not have D finite numbers.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 4], [2, 2], [-1, 1]])
        >>> vectors.get_mean_vector(["king", "apple", "pear"], pre_normalize=False).tolist()
        [1.0, 2.5]
        """
        keys = as_nonempty_word_list(keys)
        try:
            key_weights = np.ones(len(keys), np.float32) if weights is None else np.asarray(weights, np.float32)
        except (TypeError, ValueError):
            key_weights = np.empty(0, np.float32)  # refused below
        if key_weights.shape != (len(keys),) or not np.isfinite(key_weights).all():
            problem = f"{weights!r} are not the weights of {counted(len(keys), 'key')}."
            raise ParameterError(problem, "Give a finite one for each.")
        are_words = np.array([not isinstance(key, np.ndarray) for key in keys])
        words = [key for key in keys if not isinstance(key, np.ndarray)]
        if not ignore_missing:
            self._look_up(words)
        known, terms = np.ones(len(keys), bool), np.empty((len(keys), self.vector_size), np.float32)
        _, rows, known[are_words] = self._look_up_known(words)
        terms[are_words] = normalize_rows(rows) if pre_normalize else rows
        for i in np.flatnonzero(~are_words).tolist():
            terms[i] = as_query_vector(np.asarray(keys[i]), self.vector_size)
        key_weights = key_weights * known
        mean: Float32Array = key_weights @ terms / (np.abs(key_weights).sum() or 1)
        return np.asarray(normalize_queries(mean[None])[0] if post_normalize else mean)
