"""Questions about words: neighbours, analogies, similarities. The names are those of gensim's `KeyedVectors`.

An integer stands for the word that is its digits, so that ids of items can be asked for as they are.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.models.blocks import VectorBlock
from daskw2v.models.keys import KeyNumbers, Keys
from daskw2v.models.queries import Weighted, at_least_one, check_method, query_vector, some_words, weighted
from daskw2v.models.ranking import Ranking
from daskw2v.models.units import lengths, scaled, unit
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary, Word

AnalogyMethod = Literal["3cosadd", "3cosmul"]

COSMUL_EPSILON = 1e-3  # Levy and Goldberg (2014)
_NONE = np.empty(0, np.int64)


class WordQueries(ABC):
    """Answers about words, from what looks them up, finds the nearest ones and reads all of them."""

    vocabulary: Vocabulary

    @property
    @abstractmethod
    def vector_size(self) -> int:
        """Dimensions of a vector."""

    @abstractmethod
    def nearest(
        self, vectors: npt.ArrayLike, topn: int = 10, restrict_vocab: int | None = None
    ) -> tuple[Int64Array, Float32Array]:
        """Find the words nearest to vectors: their ids and cosines, best first."""

    @abstractmethod
    def blocks_for(self, n_queries: int, limit: int | None = None) -> Iterator[VectorBlock]:
        """Read the vectors of the ids below `limit` in blocks that `n_queries` vectors are compared with at once."""

    @abstractmethod
    def _look_up(self, words: Sequence[Word]) -> tuple[Int64Array, Float32Array]:
        """Return ids, shape (n,), -1 for words of the subword network, and vectors, shape (n, D)."""

    @property
    def index_to_key(self) -> Keys:
        """The words in order of their ids: a list that makes texts of those that are asked for."""
        return Keys(self.vocabulary)

    @property
    def key_to_index(self) -> KeyNumbers:
        """The id of each word, which is its row."""
        return KeyNumbers(self.vocabulary)

    def get_vector(self, word: Word, norm: bool = False) -> Float32Array:
        """Return a copy of a word's vector, shape (D,); with `norm`, scaled to length 1.

        Raises
        ------
        UnknownWordError
            If the word is not known.
        """
        rows = self._look_up([word])[1]
        return np.asarray((scaled(rows) if norm else rows)[0])

    def most_similar(
        self,
        positive: Weighted | Sequence[Weighted] = (),
        negative: Weighted | Sequence[Weighted] = (),
        topn: int = 10,
        restrict_vocab: int | None = None,
    ) -> list[tuple[str, float]]:
        """Find the words nearest to the weighted mean of words' unit vectors, without these words.

        Parameters
        ----------
        positive, negative
            Words with weight 1 and -1, or pairs of a word and its weight, whose sign is not changed. Arrays of shape
            (D,) stand for words: they are not scaled to length 1, and exclude no word.
        topn
            Number of words to find.
        restrict_vocab
            Search only this many of the most frequent words.

        Returns
        -------
        neighbours
            Words and their cosines, best first.

        Raises
        ------
        UnknownWordError
            If a word is not known.
        ParameterError
            If no word is given, an argument is neither a word nor a vector, or a number is below 1.
        """
        given = [*weighted(positive, 1.0), *weighted(negative, -1.0)]
        if not given:
            raise ParameterError("No word to compare with.", "Give at least one word.")
        ids, rows = self._look_up([key for key, _ in given if not isinstance(key, np.ndarray)])
        units = iter(scaled(rows))
        keys = [query_vector(k, self.vector_size) if isinstance(k, np.ndarray) else next(units) for k, _ in given]
        mean = np.array([weight for _, weight in given], np.float32) @ np.stack(keys)
        found, cosines = self.nearest(mean, at_least_one("topn", topn) + len(ids), restrict_vocab)
        return self._named(found, cosines, ids, topn)

    def neighbours_of(
        self, words: Sequence[Word], topn: int
    ) -> tuple[Int64Array, Int64Array, Int64Array, Float32Array]:
        """Find the words nearest to each of some words, without itself.

        Returns
        -------
        places, ranks, ids, cosines
            Of each pair the word's place in `words`, the rank from 1 on, the neighbour's id, and the cosine. They are
            in order of places, best first.

        Raises
        ------
        UnknownWordError
            If a word is not known.
        """
        own, rows = self._look_up(words)
        found, cosines = self.nearest(scaled(rows), topn + 1)
        others = found != own[:, None]
        ranks = np.cumsum(others, axis=1)
        kept = others & (ranks <= topn)
        return np.nonzero(kept)[0], ranks[kept], found[kept], cosines[kept]

    def similar_by_word(self, word: Word, topn: int = 10, restrict_vocab: int | None = None) -> list[tuple[str, float]]:
        """Find the words nearest to a word; arguments, answer and errors are those of `most_similar`."""
        return self.most_similar([word], topn=topn, restrict_vocab=restrict_vocab)

    def similar_by_vector(
        self, vector: npt.ArrayLike, topn: int = 10, restrict_vocab: int | None = None
    ) -> list[tuple[str, float]]:
        """Find the words nearest to a vector of shape (D,); all else is as in `most_similar`."""
        found, cosines = self.nearest(query_vector(vector, self.vector_size), topn, restrict_vocab)
        return self._named(found, cosines, _NONE, topn)

    def similarity(self, a: Word, b: Word) -> float:
        """Return the cosine of two words' vectors.

        Raises
        ------
        UnknownWordError
            If a word is not known.
        """
        first, second = scaled(self._look_up([a, b])[1])
        return float(first @ second)

    def distance(self, a: Word, b: Word) -> float:
        """Return 1 - the cosine of two words' vectors; raises as `similarity` does."""
        return 1 - self.similarity(a, b)

    def n_similarity(self, first: Sequence[Word], second: Sequence[Word]) -> float:
        """Return the cosine of the means of two lists of words' vectors, which are not scaled to length 1 before.

        Raises
        ------
        UnknownWordError
            If a word is not known; gensim passes over it.
        ParameterError
            If a list is empty, or no list.
        """
        means = [self._look_up(some_words(words))[1].mean(axis=0) for words in (first, second)]
        a, b = unit(np.stack(means))
        return float(a @ b)

    def rank(self, a: Word, b: Word) -> int:
        """Return the place of `b` among the words nearest to `a`, without `a`: 1 for the nearest.

        Raises
        ------
        UnknownWordError
            If a word is not known.
        """
        ids, rows = self._look_up([a, b])
        units = scaled(rows[:1])
        (cosine,) = VectorBlock(ids[1:], rows[1:], lengths(rows[1:])).cosines(units)[0]
        nearer = (block.ids[block.cosines(units)[0] > cosine] for block in self.blocks_for(1))
        return 1 + sum(int(np.count_nonzero(found != ids[0])) for found in nearer)

    def analogy(
        self, a: Word, b: Word, c: Word, topn: int = 1, method: AnalogyMethod = "3cosadd"
    ) -> list[tuple[str, float]]:
        """Find the word that is to `c` as `b` is to `a`. These three are excluded.

        Parameters
        ----------
        a, b, c
            Three words, such as man, king, woman.
        topn
            Number of words to find.
        method
            `3cosadd` ranks x by the cosine with b - a + c; `3cosmul` by cos(x, b) cos(x, c) /
            (cos(x, a) + 0.001), each cosine mapped to 0..1.

        Returns
        -------
        answers
            Words and their scores, best first.

        Raises
        ------
        UnknownWordError
            If a word is not known.
        ParameterError
            If the method is unknown, or `topn` is below 1.
        """
        if method == "3cosadd":
            return self.most_similar([b, c], [a], topn)
        check_method(method)
        ids, rows = self._look_up([a, b, c])
        units, ranking = scaled(rows), Ranking(1, at_least_one("topn", topn) + len(ids))
        for block in self.blocks_for(len(ids)):
            near_a, near_b, near_c = (1 + block.cosines(units)) / 2
            ranking.add((near_b * near_c / (near_a + COSMUL_EPSILON))[None], block.ids)
        found, scores = ranking.best()
        return self._named(found[0], scores[0], ids, topn)

    def doesnt_match(self, words: Sequence[Word]) -> Word:
        """Return the word, as given, that is farthest from the mean of all.

        Raises
        ------
        UnknownWordError
            If a word is not known.
        ParameterError
            If the list is empty, or not a list.
        """
        words = some_words(words)
        units = scaled(self._look_up(words)[1])
        return words[int(np.argmin(units @ units.mean(axis=0)))]

    def _named(self, ids: Int64Array, scores: Float32Array, without: Int64Array, topn: int) -> list[tuple[str, float]]:
        keep = ~np.isin(ids, without)
        pairs = zip(ids[keep][:topn].tolist(), scores[keep][:topn].tolist(), strict=True)
        return [(self.vocabulary.word(i), score) for i, score in pairs]
