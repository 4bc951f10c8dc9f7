"""Vectors of words and items that are not in a model: of words from their letters, of items from their features."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from daskw2v.config.params import Params
from daskw2v.errors import ParameterError
from daskw2v.features.keys import HashedNGrams
from daskw2v.models.queries.features import FeatureVectors, fit_ngrams, rank_ngrams
from daskw2v.models.queries.rows import WordRows
from daskw2v.models.stored.arguments import as_positive_int
from daskw2v.types import Float32Array


class UnseenWords(WordRows):
    """Vectors of new words and items: n-grams of any model, fewer of them, and features of items."""

    def with_ngrams(self, minn: int = 3, maxn: int = 6, bucket: int = 2_000_000, features: int | None = None) -> Self:
        """Return the model with rows of n-grams that are fitted to its vectors: unseen words have vectors then.

        Any model can have n-grams, also one that was imported. Vectors of its words stay. Fitting takes some seconds
        and six times the memory of the rows of n-grams.

        Parameters
        ----------
        minn, maxn, bucket
            As in `Params`.
        features
            Number of n-grams that have rows, the n-grams of the most words; all by default. A small number is better
            fitted alone than selected by `prune`.

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
        limits = (as_positive_int("minn", minn), as_positive_int("maxn", maxn), as_positive_int("bucket", bucket))
        Params(minn=minn, maxn=maxn, bucket=bucket)  # refuses numbers that are too large
        if minn > maxn:
            raise ParameterError(f"minn={minn} is above maxn={maxn}: no n-gram is as long.", "Give a smaller minn.")
        if self.features is not None and self.features.keys.columns:
            raise ParameterError("N-grams would replace the model's table of features.", "Train it with maxn too.")
        blocks = ((ids, self.rows(ids)) for ids in self.slices())
        max_ngrams = None if features is None else as_positive_int("features", features)
        fitted = fit_ngrams(self.vocabulary, blocks, self.vector_size, HashedNGrams(*limits), max_ngrams)
        return self._with_features(fitted)

    def prune(self, features: int) -> Self:
        """Return the model with the rows of the most frequent n-grams alone, as fastText's small models have them.

        Vectors of its words stay. Those of new words are the means of the remaining n-grams. `export` as ftz writes
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
            problem = "The model has no features to leave out."
            raise ParameterError(problem, "Train it with maxn=6, or fit n-grams by `with_ngrams`.")
        ngrams = as_positive_int("features", features) - self.features.keys.first_ngram
        selected = rank_ngrams(self.features.keys, self.vocabulary)[: max(0, ngrams)]
        return self._with_features(self.features.select_ngrams(selected))

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
        several = isinstance(items, Iterable) and not isinstance(items, str | bytes | Mapping)
        listed: list[Any] = list(items) if several else [items]
        for item in listed:
            if not isinstance(item, Mapping):
                raise ParameterError(f"{item!r} is no mapping of columns to values.", "Give a dict, or a list of them.")
        rows = self.features.item_vectors(listed)
        return rows if several else np.asarray(rows[0])

    def _with_features(self, features: FeatureVectors) -> Self:
        """Return the model with other features; its rows are shared, also if they are mapped files."""
        model: Self = replace(self, vectors=self._rows, features=features)
        vars(model).update(_version=self._version, _outputs=self._outputs)
        return model
