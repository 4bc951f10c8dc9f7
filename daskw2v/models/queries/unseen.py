"""Vectors of words and items that a model has not seen: of words from their letters, of items from their features."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from daskw2v.config.params import Params
from daskw2v.errors import ParameterError
from daskw2v.features.keys import NGrams
from daskw2v.models.queries.composed import FeatureVectors
from daskw2v.models.queries.reader import RowReader
from daskw2v.models.queries.spelling import fit_ngrams, most_frequent
from daskw2v.models.stored.arguments import at_least_one
from daskw2v.models.stored.rows import StoredRows
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.store.storage import Store
from daskw2v.types import BoolArray, Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Word, as_text, is_word


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
        """Return what `_look_up` does, zeros for words without a vector, and which have one, shape (n,)."""
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

        Any model can have them, also one that was imported. Vectors of its words stay. It takes some seconds and six
        times the memory of the rows of n-grams.

        Parameters
        ----------
        minn, maxn, bucket
            As in `Params`.
        features
            Number of n-grams that have rows, those of the most words; all by default. Few of them are better fitted
            alone than left by `prune`.

        Raises
        ------
        ParameterError
            If a number is below 1 or beyond those of `Params`, `minn` is above `maxn`, no word has an n-gram of that
            length, or the model has a table of features.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["walk", "walks", "sing"], [[3, 1], [3, 2], [-1, 1]]).with_ngrams(bucket=1000)
        >>> vectors.most_similar("walking", topn=1)[0][0] in ("walk", "walks")
        True
        """
        given = (at_least_one("minn", minn), at_least_one("maxn", maxn), at_least_one("bucket", bucket))
        Params(minn=minn, maxn=maxn, bucket=bucket)  # refuses what is too large
        if minn > maxn:
            raise ParameterError(f"minn={minn} is above maxn={maxn}: no n-gram is as long.", "Give a smaller minn.")
        if self.features is not None and self.features.keys.columns:
            raise ParameterError("N-grams would replace the model's table of features.", "Train it with maxn too.")
        parts = ((ids, self.rows(ids)) for ids in self.slices())
        most = None if features is None else at_least_one("features", features)
        fitted = fit_ngrams(self.vocabulary, parts, self.vector_size, NGrams(*given), most)
        return self._with(fitted)

    def prune(self, features: int) -> Self:
        """Return the model with the rows of the most frequent n-grams alone, as fastText's small models have them.

        Vectors of its words stay. Those of new words are the means of the n-grams that are left. `export` as ftz writes
        codes of these, a small file; the rows of a model of fastText's, .bin, are as many as before.

        Parameters
        ----------
        features
            Rows that are kept, those of a table of features among them, which all stay.

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
        r"""Return the vector of an item that the text does not have, shape (D,), or those of n items, shape (n, D).

        It is the mean of the rows of its features. `most_similar` and `nearest` take it.

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
        given: list[Any] = [items] if one else list(listed)
        for item in given:
            if not isinstance(item, Mapping):
                raise ParameterError(f"{item!r} is no mapping of columns to values.", "Give a dict for each item.")
        rows = self.features.of(given)
        return np.asarray(rows[0]) if one else rows

    def _with(self, features: FeatureVectors) -> Self:
        """Return the model with other features; rows in files that are mapped stay there."""
        found: Self = replace(self, vectors=self._rows, features=features)  # type: ignore[type-var]
        vars(found).update(_version=self._version, _outputs=self._outputs)
        return found

    def _ids(self, words: Sequence[Word]) -> Int64Array:
        return np.array([self._id(word) for word in words], np.int64)

    def _id(self, word: Word) -> int:
        spelled = self._speller is not None and is_word(word) and word != ""
        return -1 if spelled and word not in self.vocabulary else self.vocabulary.id(word)
