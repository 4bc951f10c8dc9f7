"""Word vectors to query: neighbours, similarity, analogies."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.models.store import read_table, read_vocabulary, resolve
from daskw2v.storage import Location
from daskw2v.vocabulary.vocabulary import Vocabulary

Floats = npt.NDArray[np.float32]
Weighted = str | tuple[str, float]
AnalogyMethod = Literal["3cosadd", "3cosmul"]

COSMUL_EPSILON = 1e-3  # Levy and Goldberg (2014)
_SCORES = 1 << 22  # scores held at once: 16 MB, and twice that for their order


@dataclass(frozen=True, eq=False, repr=False)
class Vectors:
    """Words and their vectors.

    Parameters
    ----------
    vocabulary
        The V words.
    vectors
        Their vectors, shape (V, D) float32; kept as given, never copied or normalised.
    metadata
        What is known of their origin: a model's manifest.
    url
        Where they were read from.

    Raises
    ------
    ParameterError
        If `vectors` is not a float32 matrix with a row for each word.
    """

    vocabulary: Vocabulary
    vectors: Floats
    metadata: Mapping[str, Any] = field(default_factory=dict)
    url: str | None = None

    def __post_init__(self) -> None:
        shape, dtype = np.shape(self.vectors), getattr(self.vectors, "dtype", None)
        if dtype != np.float32 or len(shape) != 2 or shape[0] != len(self.vocabulary):
            raise ParameterError(
                f"Vectors of shape {shape} and type {dtype} for {len(self.vocabulary)} words.",
                "Give a float32 matrix with one row for each word.",
            )

    @classmethod
    def open(cls, url: Location, storage_options: Mapping[str, Any] | None = None) -> Self:
        """Read a trained model.

        Parameters
        ----------
        url
            A work directory or its `models` folder (their latest version is read), or one version.
        storage_options
            Options for fsspec.

        Raises
        ------
        StoreError
            If there is no finished model, it is damaged, or a newer daskw2v wrote it.
        VocabularyError
            If its vocabulary is damaged.
        """
        store = resolve(url, storage_options)
        return cls(read_vocabulary(store), read_table(store, "input"), store.read_manifest() or {}, store.url)

    def __repr__(self) -> str:
        return f"Vectors({len(self)} words x {self.vector_size}, url={self.url!r})"

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __contains__(self, word: object) -> bool:
        return word in self.vocabulary

    def __getitem__(self, words: str | Sequence[str]) -> Floats:
        """Return a word's vector, shape (D,), or those of n words, shape (n, D).

        Raises
        ------
        UnknownWordError
            If a word is not known.
        """
        ids = self.vocabulary.id(words) if isinstance(words, str) else self._ids(words)
        return np.asarray(self.vectors[ids])

    @property
    def vector_size(self) -> int:
        """Dimensions of a vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def norms(self) -> Floats:
        """Length of each vector, shape (V,) float32; 1 for a zero vector, so that its cosines are 0."""
        squares = np.einsum("ij,ij->i", self.vectors, self.vectors, dtype=np.float64)
        norms: Floats = np.sqrt(squares).astype(np.float32)
        norms[norms == 0] = 1
        return norms

    def units(self, ids: npt.ArrayLike) -> Floats:
        """Return the vectors of `ids`, scaled to length 1, shape (n, D)."""
        rows = np.asarray(ids, np.int64)
        units: Floats = self.vectors[rows] / self.norms[rows, None]
        return units

    def cosines(self, units: Floats, start: int = 0, stop: int | None = None) -> Floats:
        """Return the cosines of unit vectors with the words start:stop, shape (n, stop - start)."""
        scores: Floats = units @ self.vectors[start:stop].T
        scores /= self.norms[start:stop]
        return scores

    def nearest(
        self, vectors: npt.ArrayLike, topn: int = 10, restrict_vocab: int | None = None
    ) -> tuple[npt.NDArray[np.int64], Floats]:
        """Find the words nearest to vectors by cosine: exactly, a block of words at a time.

        Parameters
        ----------
        vectors
            One vector of shape (D,), or n of them, shape (n, D).
        topn
            Words to find; all where there are fewer.
        restrict_vocab
            Look only among the first (most frequent) so many words.

        Returns
        -------
        ids, cosines
            Both of shape (topn,) or (n, topn), best first.

        Raises
        ------
        ParameterError
            If the vectors' shape does not fit or they are not finite, or a number is below 1.
        """
        queries = np.asarray(vectors, np.float32)
        single, queries = queries.ndim == 1, np.atleast_2d(queries)
        if queries.ndim != 2 or queries.shape[1] != self.vector_size or not np.isfinite(queries).all():
            raise ParameterError(
                f"Vectors of shape {queries.shape} to compare with {self.vector_size} dimensions.",
                "Give finite vectors of as many dimensions.",
            )
        topn, limit = _at_least_one("topn", topn), self._limit(restrict_vocab)
        ids = np.empty((len(queries), min(topn, limit)), np.int64)
        cosines = np.empty(ids.shape, np.float32)
        for rows in _blocks(len(queries), 1024):
            ids[rows], cosines[rows] = self._nearest(_unit(queries[rows]), ids.shape[1], limit)
        return (ids[0], cosines[0]) if single else (ids, cosines)

    def _nearest(self, units: Floats, topn: int, limit: int) -> tuple[npt.NDArray[np.int64], Floats]:
        ids, best = np.empty((len(units), 0), np.int64), np.empty((len(units), 0), np.float32)
        for block in _blocks(limit, max(1, _SCORES // len(units))):
            scores = self.cosines(units, block.start, block.stop)
            found = _largest(scores, topn)
            ids = np.concatenate([ids, found + block.start], axis=1)
            best = np.concatenate([best, np.take_along_axis(scores, found, axis=1)], axis=1)
            keep = _largest(best, topn)
            ids, best = np.take_along_axis(ids, keep, axis=1), np.take_along_axis(best, keep, axis=1)
        order = np.lexsort((ids, -best), axis=1)  # equal cosines: the more frequent word first
        return np.take_along_axis(ids, order, axis=1), np.take_along_axis(best, order, axis=1)

    def most_similar(
        self,
        positive: Weighted | Sequence[Weighted],
        negative: Weighted | Sequence[Weighted] = (),
        topn: int = 10,
        restrict_vocab: int | None = None,
    ) -> list[tuple[str, float]]:
        """Find the words nearest to the mean of unit vectors, themselves left out.

        Parameters
        ----------
        positive, negative
            Words that count with weight 1 and -1, or pairs of a word and its weight, which is taken as it is.
        topn
            Words to find.
        restrict_vocab
            Look only among the first (most frequent) so many words.

        Returns
        -------
        neighbours
            Words and their cosines, best first.

        Raises
        ------
        UnknownWordError
            If a word is not known.
        ParameterError
            If no word is given, or a number is below 1.
        """
        weighted = [*_weighted(positive, 1.0), *_weighted(negative, -1.0)]
        if not weighted:
            raise ParameterError("No word to compare with.", "Give at least one word.")
        ids = self._ids([word for word, _ in weighted])
        mean = np.array([weight for _, weight in weighted], np.float32) @ self.units(ids)
        found, cosines = self.nearest(mean, _at_least_one("topn", topn) + len(ids), restrict_vocab)
        return self._named(found, cosines, ids, topn)

    def similarity(self, a: str, b: str) -> float:
        """Return the cosine of two words' vectors.

        Raises
        ------
        UnknownWordError
            If a word is not known.
        """
        first, second = self.units(self._ids([a, b]))
        return float(first @ second)

    def analogy(
        self, a: str, b: str, c: str, topn: int = 1, method: AnalogyMethod = "3cosadd"
    ) -> list[tuple[str, float]]:
        """Find the word that is to `c` as `b` is to `a`; these three are left out.

        Parameters
        ----------
        a, b, c
            Three words, such as man, king, woman.
        topn
            Words to find.
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
        ids = self._ids([a, b, c])
        near_a, near_b, near_c = (1 + self.cosines(self.units(ids))) / 2
        scores = near_b * near_c / (near_a + COSMUL_EPSILON)
        found = _largest(scores[None], min(_at_least_one("topn", topn) + 3, len(self)))[0]
        found = found[np.lexsort((found, -scores[found]))]
        return self._named(found, scores[found], ids, topn)

    def doesnt_match(self, words: Sequence[str]) -> str:
        """Return the word that is farthest from the mean of all.

        Raises
        ------
        UnknownWordError
            If a word is not known.
        ParameterError
            If there is no word.
        """
        if not words:
            raise ParameterError("No words to compare.", "Give at least one word.")
        units = self.units(self._ids(words))
        return words[int(np.argmin(units @ units.mean(axis=0)))]

    def _ids(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        return np.array([self.vocabulary.id(word) for word in words], np.int64)

    def _limit(self, restrict_vocab: int | None) -> int:
        if restrict_vocab is None:
            return len(self)
        return min(len(self), _at_least_one("restrict_vocab", restrict_vocab))

    def _named(
        self, ids: npt.NDArray[np.int64], scores: Floats, without: npt.NDArray[np.int64], topn: int
    ) -> list[tuple[str, float]]:
        words, keep = self.vocabulary.words, ~np.isin(ids, without)
        pairs = zip(ids[keep][:topn].tolist(), scores[keep][:topn].tolist(), strict=True)
        return [(words[i], score) for i, score in pairs]


def check_method(method: str) -> None:
    """Refuse an unknown way to answer analogies.

    Raises
    ------
    ParameterError
        If the method is not 3cosadd or 3cosmul.
    """
    if method not in ("3cosadd", "3cosmul"):
        raise ParameterError(f"method={method!r} is unknown.", "Give 3cosadd or 3cosmul.")


def _weighted(words: Weighted | Sequence[Weighted], weight: float) -> Iterator[tuple[str, float]]:
    if isinstance(words, str):
        words = [words]
    elif isinstance(words, tuple) and len(words) == 2 and not isinstance(words[1], str | tuple):
        words = [words]  # one word with its weight
    for word in words:
        yield (word, weight) if isinstance(word, str) else word


def _unit(vectors: Floats) -> Floats:
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)


def _largest(scores: Floats, n: int) -> npt.NDArray[np.int64]:
    """Return where the n largest scores of each row stand, in any order; all if there are no more."""
    columns = scores.shape[1]
    if n >= columns:
        return np.broadcast_to(np.arange(columns), scores.shape)
    return np.argpartition(scores, columns - n, axis=1)[:, columns - n :]


def _blocks(length: int, step: int) -> Iterator[slice]:
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def _at_least_one(name: str, value: int) -> int:
    if value < 1:
        raise ParameterError(f"{name}={value!r} is below 1.", f"Give a {name} of at least 1.")
    return value
