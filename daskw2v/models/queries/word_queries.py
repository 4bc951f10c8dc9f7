"""The words nearest to words and vectors, by the names of gensim's `KeyedVectors`, and `nearest` for many at once.

An integer stands for the word that is its digits, so that ids of items can be passed as they are.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.models.queries.rows import WordRows
from daskw2v.models.stored.arguments import (
    Weighted,
    as_nonempty_word_list,
    as_positive_int,
    as_query_vector,
    as_query_vectors,
    as_texts,
    weigh_words,
)
from daskw2v.models.stored.blocks import Ranking, compare_blocks, cut, normalize_queries, normalize_rows
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Word

Search = Callable[[Float32Array, int, int | None], tuple[Int64Array, Float32Array]]
AnalogyMethod = Literal["3cosadd", "3cosmul"]

QUERIES = 1 << 10  # queries compared with a block of words at once
COSMUL_EPSILON = 1e-3  # Levy and Goldberg (2014)
GENSIM_EPSILON = 1e-6  # as in gensim
_NONE = np.empty(0, np.int64)


class WordQueries(WordRows):
    """The words nearest to words and vectors."""

    def _nearest(
        self, queries: Float32Array, topn: int, restrict_vocab: int | None = None
    ) -> tuple[Int64Array, Float32Array]:
        """Return ids and cosines of the words nearest to n vectors, both of shape (n, topn) or narrower, best first."""
        limit = self._count_searched(restrict_vocab)
        groups = [normalize_queries(queries[rows]) for rows in cut(len(queries), QUERIES)]
        rankings = [Ranking(len(units), topn) for units in groups]
        blocks = self.blocks_for(min(len(queries), QUERIES), limit)
        by_threads = len(queries) == 1 and self.in_memory and self._exceeds_block(limit)
        for block, scores in compare_blocks(blocks, groups, by_threads=by_threads):
            for block_scores, ranking in zip(scores, rankings, strict=True):
                ranking.add(block_scores, block.ids)
        ids = np.empty((len(queries), min(topn, limit)), np.int64)
        cosines = np.empty(ids.shape, np.float32)
        for rows, ranking in zip(cut(len(queries), QUERIES), rankings, strict=True):
            ids[rows], cosines[rows] = ranking.best()
        return ids, cosines

    def _count_searched(self, restrict_vocab: int | None) -> int:
        """Return the number of words to search: `restrict_vocab`, at most all; None stands for all."""
        if restrict_vocab is None:
            return len(self)
        return min(len(self), as_positive_int("restrict_vocab", restrict_vocab))

    def nearest(
        self, queries: Word | Sequence[Word] | npt.ArrayLike, topn: int = 10, restrict_vocab: int | None = None
    ) -> tuple[Int64Array, Float32Array]:
        """Find the words nearest to each of many words or vectors by cosine, in one pass over the model.

        Parameters
        ----------
        queries
            A text or n texts, which are words; or a vector of shape (D,), or n of them, shape (n, D). Numbers are
            vectors, so ids of items are passed as texts.
        topn
            Number of words to find for each; all if the model has fewer. A word is not its own neighbour.
        restrict_vocab
            Search only this many of the most frequent words.

        Returns
        -------
        ids, cosines
            Both of shape (topn,) for one query or (n, topn) for several, best first: int64 and float32.

        Raises
        ------
        UnknownWordError
            If a word is not known.
        ParameterError
            If vectors do not have D dimensions or are not finite, or a number is below 1.
        StoreError
            If a word's vector is not finite.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> ids, cosines = vectors.nearest(["king", "apple"], topn=1)
        >>> [vectors.index_to_key[i] for i in ids[:, 0]], cosines.shape
        (['queen', 'queen'], (2, 1))
        >>> vectors.nearest([[1, 1], [0, 1]], topn=2)[0].tolist()
        [[1, 0], [1, 2]]
        """
        return self._search_words(self._nearest, queries, topn, restrict_vocab)

    def _search_words(
        self, search: Search, queries: Any, topn: int, restrict_vocab: int | None
    ) -> tuple[Int64Array, Float32Array]:
        """Return ids and cosines that a search returns for words or vectors, without the query words themselves.

        Parameters
        ----------
        search
            Function (vectors, topn, restrict_vocab) that returns ids and cosines, as `_nearest` does.
        queries, topn, restrict_vocab
            As in `nearest`.
        """
        topn = as_positive_int("topn", topn)
        words = as_texts(queries)
        if words is None:
            vectors = as_query_vectors(queries, self.vector_size)
            ids, cosines = search(np.atleast_2d(vectors), topn, restrict_vocab)
            return (ids, cosines) if vectors.ndim == 2 else (ids[0], cosines[0])
        query_ids, rows = self._look_up(words)
        limit = self._count_searched(restrict_vocab)
        ids, cosines = search(normalize_rows(rows), topn + 1, restrict_vocab)
        width = min(topn, limit - bool(((query_ids >= 0) & (query_ids < limit)).any()))
        columns = np.argsort(ids == query_ids[:, None], axis=1, kind="stable")[:, :width]
        ids, cosines = np.take_along_axis(ids, columns, axis=1), np.take_along_axis(cosines, columns, axis=1)
        return (ids[0], cosines[0]) if isinstance(queries, str) else (ids, cosines)

    def most_similar(
        self,
        positive: Weighted | Sequence[Weighted] = (),
        negative: Weighted | Sequence[Weighted] = (),
        topn: int = 10,
        restrict_vocab: int | None = None,
    ) -> list[tuple[str, float]]:
        """Find the words nearest to the weighted mean of words' unit vectors, without the words of the mean.

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
            If there is no word, an argument is neither a word nor a vector, or a number is below 1.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> [(word, round(cosine, 3)) for word, cosine in vectors.most_similar("king")]
        [('queen', 0.894), ('apple', -0.447)]
        >>> vectors.most_similar(["king", ("apple", 0.5)], restrict_vocab=2)[0][0]
        'queen'
        """
        terms = [*weigh_words(positive, 1.0), *weigh_words(negative, -1.0)]
        if not terms:
            raise ParameterError("No word to compare with.", "Give at least one word.")
        ids, rows = self._look_up_keys([key for key, _ in terms], scale_arrays=False)
        mean = np.array([weight for _, weight in terms], np.float32) @ rows
        neighbours, cosines = self._nearest(mean[None], as_positive_int("topn", topn) + len(ids), restrict_vocab)
        return self._name_results(neighbours[0], cosines[0], ids, topn)

    def most_similar_cosmul(
        self,
        positive: Word | Sequence[Word | npt.NDArray[Any]] | npt.NDArray[Any],
        negative: Word | Sequence[Word | npt.NDArray[Any]] | npt.NDArray[Any] = (),
        topn: int = 10,
        restrict_vocab: int | None = None,
    ) -> list[tuple[str, float]]:
        """Find the words with the highest product of cosines with words, divided by the product with negative words.

        Each cosine is mapped to 0..1, and 0.000001 is added to the divisor, as in gensim: 3CosMul of Levy and Goldberg
        (2014), for any number of words. `analogy` has the constant of the paper.

        Parameters
        ----------
        positive, negative
            Words, or arrays of shape (D,), which exclude no word. All count the same.
        topn
            Number of words to find.
        restrict_vocab
            Search only this many of the most frequent words; gensim searches all.

        Returns
        -------
        neighbours
            Words and their scores, best first, without the words themselves.

        Raises
        ------
        UnknownWordError
            If a word is not known.
        ParameterError
            If there is no positive word, an argument is neither a word nor a vector, or a number is below 1.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> words = ["king", "queen", "man", "woman", "apple"]
        >>> vectors = Vectors(words, [[3, 1, 0], [3, 0, 1], [1, 1, 0], [1, 0, 1], [-1, 1, 1]])
        >>> vectors.most_similar_cosmul(["king", "woman"], ["man"], topn=1)[0][0]
        'queen'
        """
        topn = as_positive_int("topn", topn)
        near, far = (list(weigh_words(keys, 1.0)) for keys in (positive, negative))
        if not near:
            raise ParameterError("No positive word to compare with.", "Give at least one word.")
        if any(weight != 1 for _, weight in (*near, *far)):
            raise ParameterError("A product of cosines has no weights.", "Give words alone, or use most_similar.")
        ids, units = self._look_up_keys([key for key, _ in (*near, *far)], scale_arrays=True)
        best, scores = self._multiply_cosines(units, len(near), GENSIM_EPSILON, topn + len(ids), restrict_vocab)
        return self._name_results(best, scores, ids, topn)

    def similar_by_word(self, word: Word, topn: int = 10, restrict_vocab: int | None = None) -> list[tuple[str, float]]:
        """Find the words nearest to a word; all else is as in `most_similar`.

        Parameters
        ----------
        word
            The word.
        topn, restrict_vocab
            As in `most_similar`.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> vectors.similar_by_word("king", topn=1)[0][0]
        'queen'
        """
        return self.most_similar([word], topn=topn, restrict_vocab=restrict_vocab)

    def similar_by_vector(
        self, vector: npt.ArrayLike, topn: int = 10, restrict_vocab: int | None = None
    ) -> list[tuple[str, float]]:
        """Find the words nearest to a vector; all else is as in `most_similar`.

        Parameters
        ----------
        vector
            The vector, shape (D,).
        topn, restrict_vocab
            As in `most_similar`.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> vectors.similar_by_vector([1, 0.9], topn=1)[0][0]
        'queen'
        """
        query = as_query_vector(vector, self.vector_size)
        neighbours, cosines = self._nearest(query[None], as_positive_int("topn", topn), restrict_vocab)
        return self._name_results(neighbours[0], cosines[0], _NONE, topn)

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

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> words = ["king", "queen", "man", "woman", "apple"]
        >>> vectors = Vectors(words, [[3, 1, 0], [3, 0, 1], [1, 1, 0], [1, 0, 1], [-1, 1, 1]])
        >>> vectors.analogy("man", "king", "woman")[0][0]
        'queen'
        """
        if method == "3cosadd":
            return self.most_similar([b, c], [a], topn)
        if method != "3cosmul":
            raise ParameterError(f"method={method!r} is unknown.", "Give 3cosadd or 3cosmul.")
        ids, rows = self._look_up([b, c, a])
        candidates = as_positive_int("topn", topn) + len(ids)
        best, scores = self._multiply_cosines(normalize_rows(rows), 2, COSMUL_EPSILON, candidates)
        return self._name_results(best, scores, ids, topn)

    def doesnt_match(self, words: Sequence[Word]) -> Word:
        """Return the word, as passed, whose cosine with the mean of all unit vectors is the smallest.

        Parameters
        ----------
        words
            The words.

        Raises
        ------
        UnknownWordError
            If a word is not known; gensim passes over it.
        ParameterError
            If the list is empty, or not a list.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> vectors.doesnt_match(["king", "queen", "apple"])
        'apple'
        """
        words = as_nonempty_word_list(words)
        units = normalize_rows(self._look_up(words)[1])
        return words[int(np.argmin(units @ units.mean(axis=0)))]

    def _look_up_keys(
        self, keys: Sequence[Word | npt.NDArray[Any]], *, scale_arrays: bool
    ) -> tuple[Int64Array, Float32Array]:
        """Return the ids of the words among n keys, without arrays, and a row for each key, shape (n, D).

        Words have their unit vectors; arrays are scaled to length 1 if `scale_arrays`.
        """
        ids, rows = self._look_up([key for key in keys if not isinstance(key, np.ndarray)])
        units = iter(normalize_rows(rows))

        def row_of(key: Word | npt.NDArray[Any]) -> Float32Array:
            if not isinstance(key, np.ndarray):
                return next(units)
            row = as_query_vector(key, self.vector_size)
            return np.asarray(normalize_queries(row[None])[0]) if scale_arrays else row

        return ids, np.stack([row_of(key) for key in keys])

    def _multiply_cosines(
        self, units: Float32Array, n_positive: int, epsilon: float, topn: int, restrict_vocab: int | None = None
    ) -> tuple[Int64Array, Float32Array]:
        """Return ids and scores of the words with the highest scores, shape (topn,) or shorter, best first.

        The score is the product of (1 + cosine) / 2 over the first `n_positive` of `units`, shape (n, D), divided by
        epsilon plus the same product over the other units.
        """
        ranking = Ranking(1, topn)
        for block in self.blocks_for(len(units), self._count_searched(restrict_vocab)):
            shifted = (1 + block.cosines(units)) / 2
            scores = shifted[:n_positive].prod(axis=0) / (shifted[n_positive:].prod(axis=0) + epsilon)
            ranking.add(scores[None], block.ids)
        best, scores = ranking.best()
        return best[0], scores[0]

    def _name_results(
        self, ids: Int64Array, scores: Float32Array, excluded: Int64Array, topn: int
    ) -> list[tuple[str, float]]:
        """Return the words and scores of the first `topn` ids that are not excluded."""
        included = ~np.isin(ids, excluded)
        pairs = zip(ids[included][:topn].tolist(), scores[included][:topn].tolist(), strict=True)
        return [(self.vocabulary.word(i), score) for i, score in pairs]
