"""Vectors of words and items that a model has not seen: of words from their letters, of items from their features.

N-grams can be fitted to any model.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Self

import numpy as np

from daskw2v.config.params import Params
from daskw2v.errors import ParameterError, UnknownWordError
from daskw2v.features.keys import FeatureKeys, HashedNGrams
from daskw2v.features.words import WordFeatures, sum_features, total_weights
from daskw2v.models.queries.reader import RowReader
from daskw2v.models.stored.arguments import at_least_one
from daskw2v.models.stored.blocks import cut, scaled
from daskw2v.models.stored.quantization import CodedRows
from daskw2v.models.stored.tables import StoredRows
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.store.storage import Store
from daskw2v.types import BoolArray, Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary, Word, as_text, is_word

_SURE = 200  # count from which on a word has its full weight
_WORDS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class FeatureVectors:
    """The rows of features, and vectors that are composed of them alone.

    Parameters
    ----------
    keys
        The meaning of each row.
    rows
        The rows, shape (F, D) float32: in memory, quantized in memory, or in a store.
    """

    keys: FeatureKeys
    rows: Float32Array | CodedRows | StoredRows

    @classmethod
    def of_buckets(cls, ngrams: HashedNGrams, rows: Float32Array) -> Self:
        """Return the vectors of n-grams of a row for each bucket, shape (bucket, D) float32; zero rows are left out."""
        trained = rows.any(axis=1)
        keys = FeatureKeys(ngrams=ngrams, buckets=np.flatnonzero(trained).astype(np.int32))
        return cls(keys, rows if trained.all() else rows[trained])

    @property
    def vector_size(self) -> int:
        """Dimensions of a vector."""
        return int(self.rows.shape[1])

    @property
    def spells(self) -> bool:
        """True if words have n-grams."""
        return self.keys.ngrams.maxn > 0

    def kept(self, ngrams: Int64Array) -> "FeatureVectors":
        """Return the rows of the table and of the n-grams with these indices of buckets, in memory."""
        first = self.keys.first_ngram
        rows = np.concatenate([np.arange(first), first + ngrams])
        return FeatureVectors(self.keys.kept(ngrams), np.ascontiguousarray(self.rows[rows]))

    def prefix(self, columns: int) -> "FeatureVectors":
        """Return the vectors of the first columns of the rows, in memory."""
        return FeatureVectors(self.keys, np.ascontiguousarray(self.rows[:][:, :columns]))

    def vectors(self, words: Sequence[str]) -> Float32Array:
        """Return the means of words' n-grams, shape (n, D) float32.

        N-grams without a row count as zeros; in a pruned model they are left out of the mean.

        Raises
        ------
        UnknownWordError
            If a word has no n-gram with a row.
        """
        return self._composed(self.keys.of_words(words), words, "n-gram")

    def knows(self, words: Sequence[str]) -> BoolArray:
        """Return which words have an n-gram with a row, shape (n,)."""
        return np.asarray(np.diff(self.keys.of_words(words).known().offsets) > 0)

    def of(self, items: Sequence[Mapping[str, Any]]) -> Float32Array:
        """Return the means of items' features, shape (n, D) float32; raises as `Vectors.of_features`."""
        return self._composed(self.keys.of_values(items), list(map(str, items)), "feature")

    def _composed(self, found: WordFeatures, names: Sequence[str], kind: str) -> Float32Array:
        for name, n in zip(names, np.diff(found.known().offsets), strict=True):
            if not n:
                raise UnknownWordError(
                    f"{name!r} has no {kind} that the model was trained on.",
                    "Ask for another one, or catch this error.",
                )
        return (
            sum_features(found, lambda rows: np.asarray(self.rows[rows]), self.vector_size)
            / total_weights(found)[:, None]
        )


class UnseenWords(RowReader):
    """Vectors of words in the vocabulary and outside of it."""

    subwords: Subwords | None
    features: FeatureVectors | None
    _rows: Float32Array | StoredRows
    _version: Store | None
    _outputs: Store | None

    def _look_up(self, words: Sequence[Word]) -> tuple[Int64Array, Float32Array]:
        """Return ids, shape (n,), -1 for words outside the vocabulary, and vectors, shape (n, D)."""
        ids = self._ids(words)
        known, rows = ids >= 0, np.empty((len(ids), self.vector_size), np.float32)
        rows[known] = self.rows(ids[known])
        if self._speller is not None and not known.all():
            rows[~known] = self._speller.vectors(
                [as_text(word) for word, id_ in zip(words, ids, strict=True) if id_ < 0]
            )
        return ids, rows

    def _look_up_known(self, words: Sequence[Word]) -> tuple[Int64Array, Float32Array, BoolArray]:
        """Return ids, vectors (zeros for words without one), and which words have a vector, shape (n,)."""
        ids = np.array([-1 if (id_ := self.vocabulary.find(word)) is None else id_ for word in words], np.int64)
        known, rows = ids >= 0, np.zeros((len(ids), self.vector_size), np.float32)
        rows[known] = self.rows(ids[known])
        others = np.flatnonzero(~known)
        if self._speller is not None and len(others):
            texts = [as_text(words[i]) for i in others.tolist()]
            spelled = others[self._speller.knows(texts)]
            rows[spelled] = self._speller.vectors([as_text(words[i]) for i in spelled.tolist()])
            known[spelled] = True
        return ids, rows, known

    @property
    def _speller(self) -> Subwords | FeatureVectors | None:
        """The rows of n-grams or the network that vectors of unseen words come from; None without either."""
        return self.features if self.features is not None and self.features.spells else self.subwords

    def with_ngrams(self, minn: int = 3, maxn: int = 6, bucket: int = 2_000_000, features: int | None = None) -> Self:
        """Return the model with rows of n-grams that are fitted to its vectors: unseen words have vectors then.

        Any model can have n-grams, also one that was imported. Vectors of its words stay. Fitting takes some seconds
        and six times the memory of the rows of n-grams.

        Parameters
        ----------
        minn, maxn, bucket
            As in `Params`.
        features
            Number of n-grams that have rows, the n-grams of the most words; all by default. A small number of them is
            better fitted alone than left by `prune`.

        Raises
        ------
        ParameterError
            If a number is below 1 or out of the range of `Params`, `minn` is above `maxn`, no word has an n-gram of
            that length, or the model has a table of features.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["walk", "walks", "sing"], [[3, 1], [3, 2], [-1, 1]]).with_ngrams(bucket=1000)
        >>> vectors.most_similar("walking", topn=1)[0][0] in ("walk", "walks")
        True
        """
        limits = (at_least_one("minn", minn), at_least_one("maxn", maxn), at_least_one("bucket", bucket))
        Params(minn=minn, maxn=maxn, bucket=bucket)  # refuses numbers that are too large
        if minn > maxn:
            raise ParameterError(f"minn={minn} is above maxn={maxn}: no n-gram is as long.", "Give a smaller minn.")
        if self.features is not None and self.features.keys.columns:
            raise ParameterError("N-grams would replace the model's table of features.", "Train it with maxn too.")
        parts = ((ids, self.rows(ids)) for ids in self.slices())
        most = None if features is None else at_least_one("features", features)
        fitted = fit_ngrams(self.vocabulary, parts, self.vector_size, HashedNGrams(*limits), most)
        return self._with(fitted)

    def prune(self, features: int) -> Self:
        """Return the model with the rows of the most frequent n-grams alone, as fastText's small models have them.

        Vectors of its words stay. Those of new words are the means of the n-grams that are left. `export` as ftz writes
        codes of these, a small file; the rows of a model of fastText's, .bin, are as many as before.

        Parameters
        ----------
        features
            Rows that are kept, among them all rows of a table of features.

        Raises
        ------
        ParameterError
            If it is below 1, or the model has no features.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["walk", "walks", "sing"], [[3, 1], [3, 2], [-1, 1]]).with_ngrams(bucket=1000)
        >>> small = vectors.prune(5)
        >>> len(small.features.rows), (small["walk"] == vectors["walk"]).all().item()
        (5, True)
        """
        if self.features is None:
            raise ParameterError(
                "The model has no features to leave out.", "Train it with maxn=6, or fit n-grams by `with_ngrams`."
            )
        ngrams = at_least_one("features", features) - self.features.keys.first_ngram
        kept = most_frequent(self.features.keys, self.vocabulary)[: max(0, ngrams)]
        return self._with(self.features.kept(kept))

    def of_features(self, items: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Float32Array:
        r"""Return the vector of an item that the text lacks, shape (D,), or the vectors of n items, shape (n, D).

        The vector is the mean of the rows of the item's features. `most_similar` and `nearest` take it.

        Parameters
        ----------
        items
            A mapping of columns of `Params.features` to values: a category, a list of them, or a number; or n of them.
            Categories that no word of the text has are left out.

        Raises
        ------
        ParameterError
            If the model has no table of features or it has no such column, or a value is of another kind.
        UnknownWordError
            If an item has no feature that the model was trained on.

        Examples
        --------
        >>> import daskw2v
        >>> with open("brands.csv", "w") as file:
        ...     _ = file.write("item,brand\ntea,Assam\nmilk,Alp\n")
        >>> vectors = daskw2v.train(
        ...     [["tea", "milk"]] * 50, features="brands.csv", vector_size=4, min_count=1, sample=0, listener=None
        ... )
        >>> vectors.of_features({"brand": "Assam"}).shape
        (4,)
        """
        if self.features is None or not self.features.keys.columns:
            raise ParameterError("The model was trained without a table of features.", "Train it with features=URL.")
        one = isinstance(items, Mapping)
        listed: Any = items
        if isinstance(listed, str | bytes) or not isinstance(listed, Iterable):
            raise ParameterError(f"{items!r} is no mapping of columns to values.", "Give a dict, or a list of them.")
        mappings: list[Any] = [items] if one else list(listed)
        for item in mappings:
            if not isinstance(item, Mapping):
                raise ParameterError(f"{item!r} is no mapping of columns to values.", "Give a dict for each item.")
        rows = self.features.of(mappings)
        return np.asarray(rows[0]) if one else rows

    def _with(self, features: FeatureVectors) -> Self:
        """Return the model with other features; rows of mapped files stay in them."""
        made: Self = replace(self, vectors=self._rows, features=features)  # type: ignore[type-var]
        vars(made).update(_version=self._version, _outputs=self._outputs)
        return made

    def _ids(self, words: Sequence[Word]) -> Int64Array:
        return np.array([self._id(word) for word in words], np.int64)

    def _id(self, word: Word) -> int:
        spelled = self._speller is not None and is_word(word) and word != ""
        return -1 if spelled and word not in self.vocabulary else self.vocabulary.id(word)


def fit_ngrams(
    vocabulary: Vocabulary,
    pieces: Iterable[tuple[slice, Float32Array]],
    columns: int,
    ngrams: HashedNGrams,
    most: int | None = None,
) -> FeatureVectors:
    """Return rows of n-grams whose means approximate the directions of words' vectors.

    Each row is the mean of all directions and a fitted difference from it. The weight of a word in the fit is the
    square root of its count / _SURE, at most 1. The most frequent n-grams come first, as in a model that is trained
    with n-grams.

    Parameters
    ----------
    vocabulary
        The words.
    pieces
        Ranges of their ids, and the vectors, shape (n, D).
    columns
        D.
    ngrams
        Which n-grams.
    most
        Number of n-grams with rows, the n-grams of the most words; all by default.

    Raises
    ------
    ParameterError
        If no word has an n-gram of that length.
    """
    # These modules load Numba, which queries do not load
    fitting, kernel = map(import_module, ("daskw2v.features.fitting", "daskw2v.features.ngram_kernel"))
    units = np.empty((len(vocabulary), columns), np.float32)
    for ids, vectors in pieces:
        units[ids] = scaled(vectors)
    offsets, buckets = kernel.ngrams_in(vocabulary.data, vocabulary.offsets, *ngrams)
    if not len(buckets):
        raise ParameterError(f"No word has an n-gram of {ngrams.minn} characters.", "Give a smaller minn.")
    used, positions = np.unique(buckets, return_inverse=True)
    order = np.argsort(-np.bincount(positions), kind="stable")[:most]
    often = np.bincount(positions, np.repeat(_weights_of(vocabulary), np.diff(offsets)))
    order = order[np.argsort(-often[order], kind="stable")]
    rank = np.full(len(used), -1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    ones, none = np.ones(len(vocabulary), np.float32), np.zeros(0, np.float32)
    features = WordFeatures(offsets, rank[positions], none, ones).known()
    counts = vocabulary.counts
    sure = np.sqrt(np.minimum(1.0, counts / _SURE)).astype(np.float32) if counts.any() else ones
    mean = units.mean(axis=0)
    units -= mean
    fitted = fitting.fit_rows(features, len(order), units, sure)
    fitted *= np.float32(np.sqrt(np.maximum(1, np.diff(features.offsets))).mean())  # sums by roots become means
    fitted += mean
    keys = FeatureKeys(ngrams=ngrams, buckets=used[order].astype(np.int32), pruned=len(order) < len(used))
    return FeatureVectors(keys, fitted)


def most_frequent(keys: FeatureKeys, vocabulary: Vocabulary) -> Int64Array:
    """Return the indices of the buckets of `keys`, the most frequent in the text first, shape (n,) int64."""
    kernel = import_module("daskw2v.features.ngram_kernel")
    often, totals = _weights_of(vocabulary), np.zeros(len(keys))
    for ids in cut(len(vocabulary), _WORDS_AT_ONCE):
        bounds = vocabulary.offsets[ids.start : ids.stop + 1]
        starts, buckets = kernel.ngrams_in(vocabulary.data, bounds, *keys.ngrams)
        rows, counts = keys.rows_of(buckets), np.repeat(often[ids], np.diff(starts))
        totals += np.bincount(rows[rows >= 0], counts[rows >= 0], len(keys))
    return np.argsort(-totals[keys.first_ngram :], kind="stable")


def _weights_of(vocabulary: Vocabulary) -> Int64Array:
    """Return the counts of words, shape (V,) int64; ones if no word has a count."""
    return vocabulary.counts if vocabulary.counts.any() else np.ones(len(vocabulary), np.int64)
