"""Distances and similarities of words, by the names of gensim's `KeyedVectors`."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.models.queries.rows import WordRows
from daskw2v.models.stored.arguments import as_nonempty_word_list, as_query_vector, as_query_vectors, as_word_list
from daskw2v.models.stored.blocks import VectorBlock, normalize_queries, normalize_rows, row_lengths
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Word


class Distances(WordRows):
    """Cosines and distances of words, and the words within a distance."""

    def similarity(self, a: Word, b: Word) -> float:
        """Return the cosine of two words' vectors.

        Parameters
        ----------
        a, b
            The words.

        Raises
        ------
        UnknownWordError
            If a word is not known.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> round(vectors.similarity("king", "queen"), 3)
        0.894
        """
        first, second = normalize_rows(self._look_up([a, b])[1])
        return float(first @ second)

    def distance(self, a: Word, b: Word) -> float:
        """Return 1 - the cosine of two words' vectors.

        Parameters
        ----------
        a, b
            The words.

        Raises
        ------
        UnknownWordError
            If a word is not known.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> round(vectors.distance("king", "queen"), 3)
        0.106
        """
        return 1 - self.similarity(a, b)

    def distances(self, word_or_vector: Word | npt.NDArray[Any], other_words: Sequence[Word] = ()) -> Float32Array:
        """Return the distances, 1 - cosine, from a word or vector to words, shape (n,) float32.

        Parameters
        ----------
        word_or_vector
            A word, or an array of shape (D,).
        other_words
            The n words; all of the vocabulary by default, in order of ids.

        Raises
        ------
        UnknownWordError
            If a word is not known.
        ParameterError
            If the vector does not have D dimensions, or is not finite; or `other_words` is no list.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> [round(distance, 3) for distance in vectors.distances("queen", ["king", "apple"]).tolist()]
        [0.106, 1.0]
        """
        if isinstance(word_or_vector, np.ndarray):
            query = normalize_queries(as_query_vector(word_or_vector, self.vector_size)[None])
        else:
            query = normalize_rows(self._look_up([word_or_vector])[1])
        listed = as_word_list(other_words)
        if listed:
            rows = self._look_up(listed)[1]
            cosines: Float32Array = VectorBlock(np.arange(len(rows)), rows, row_lengths(rows)).cosines(query)[0]
            return np.subtract(1, cosines)
        distances = np.empty(len(self.vocabulary), np.float32)
        for block in self.blocks_for(1):
            distances[block.ids] = 1 - block.cosines(query)[0]
        return distances

    @staticmethod
    def cosine_similarities(vector_1: npt.ArrayLike, vectors_all: npt.ArrayLike) -> Float32Array:
        """Return the cosines of a vector with n vectors, shape (n,) float32; 0 for a zero vector.

        Parameters
        ----------
        vector_1
            The vector, shape (D,).
        vectors_all
            The n vectors, shape (n, D).

        Raises
        ------
        ParameterError
            If their dimensions differ, they are not finite numbers, or `vector_1` is no single vector.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> Vectors.cosine_similarities([1, 0], [[2, 0], [0, 3], [-1, 0]]).tolist()
        [1.0, 0.0, -1.0]
        """
        size = int(np.shape(vector_1)[-1]) if np.ndim(vector_1) else 0
        query, rows = as_query_vector(vector_1, size), np.atleast_2d(as_query_vectors(vectors_all, size))
        cosines: Float32Array = normalize_queries(rows) @ normalize_queries(query[None])[0]
        return cosines

    def n_similarity(self, first: Sequence[Word], second: Sequence[Word]) -> float:
        """Return the cosine of the means of two lists of words' vectors, which are not scaled to length 1 before.

        Parameters
        ----------
        first, second
            The lists.

        Raises
        ------
        UnknownWordError
            If a word is not known; gensim passes over it.
        ParameterError
            If a list is empty, or no list.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> round(vectors.n_similarity(["king", "queen"], ["apple"]), 3)
        -0.243
        """
        means = [self._look_up(as_nonempty_word_list(words))[1].mean(axis=0) for words in (first, second)]
        a, b = normalize_queries(np.stack(means))
        return float(a @ b)

    def closer_than(self, key1: Word, key2: Word) -> list[str]:
        """Return the words that are nearer to `key1` than `key2` is, in order of ids.

        Parameters
        ----------
        key1
            The word that distances are measured from; it is not returned.
        key2
            The word whose distance is the limit.

        Raises
        ------
        UnknownWordError
            If a word is not known.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> vectors.closer_than("king", "apple")
        ['queen']
        """
        return [self.vocabulary.word(i) for ids in self._closer_ids(key1, key2) for i in ids.tolist()]

    def rank(self, key1: Word, key2: Word) -> int:
        """Return the rank of `key2` among the words nearest to `key1`, itself excluded: 1 for the nearest.

        Parameters
        ----------
        key1
            The word that distances are measured from.
        key2
            The word that is ranked.

        Raises
        ------
        UnknownWordError
            If a word is not known.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> vectors.rank("king", "apple")
        2
        """
        return 1 + sum(len(ids) for ids in self._closer_ids(key1, key2))

    def _closer_ids(self, key1: Word, key2: Word) -> Iterator[Int64Array]:
        """Yield the ids of the words that are nearer to `key1` than `key2` is, block by block, without `key1`."""
        ids, rows = self._look_up([key1, key2])
        units = normalize_rows(rows[:1])
        (cosine,) = VectorBlock(ids[1:], rows[1:], row_lengths(rows[1:])).cosines(units)[0]
        for block in self.blocks_for(1):
            nearer = block.ids[block.cosines(units)[0] > cosine]
            yield nearer[nearer != ids[0]]
