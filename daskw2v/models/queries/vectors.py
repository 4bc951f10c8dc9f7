"""Word vectors: the class `Vectors`, whose methods are in modules by purpose.

`rows` has the fields, and how rows are read and words looked up; `word_queries` the nearest words; `distances` cosines
of words; `lookups` gensim's names of words and rows; `unseen` n-grams and features; `frames` tables of pandas, polars,
Arrow and Dask; `outputs` folders, files and the output table; `shortcuts` functions of modules that are loaded then.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.models.queries.distances import Distances
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.queries.frames import Frames
from daskw2v.models.queries.lookups import Lookups
from daskw2v.models.queries.outputs import Outputs
from daskw2v.models.queries.shortcuts import Shortcuts
from daskw2v.models.queries.unseen import UnseenWords
from daskw2v.models.stored.arguments import as_positive_int, as_word_list
from daskw2v.models.versions.resolving import read_resolved
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.urls import Location
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import Word, is_word


class Vectors(Frames, Distances, Lookups, UnseenWords, Outputs, Shortcuts):
    """Words and their vectors.

    Parameters
    ----------
    vocabulary
        The V words, as a `Vocabulary` or a list. Integers stand for their digits, here and in queries.
    vectors
        Their vectors, shape (V, D) float32, in memory or in a store. They are neither copied nor normalised; other
        numbers, also in lists, become float32. If `open` mapped them as several pieces, they become one array
        when this is read; queries read the pieces.
    metadata
        The model's manifest: how it was trained.
    url
        URL that they were read from.
    subwords
        Network that computes vectors of words outside the vocabulary; None if there is none.
    features
        Rows of n-grams and of a table's features, from which unseen words and items are composed; None without any.
    stable_ids
        Stable id of each word, shape (V,) int64: the same in all versions, while row numbers change with counts. None
        for models without, such as imported ones.

    Raises
    ------
    ParameterError
        If `vectors` is not a matrix of numbers that float32 can hold, with a row for each word; if a word is neither
        a text nor an integer; if `subwords`, `features` or `stable_ids` do not fit; or `url` holds a secret.
    VocabularyError
        If a word occurs twice.

    Examples
    --------
    >>> from daskw2v import Vectors
    >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
    >>> vectors["king"].tolist(), "pear" in vectors
    ([3.0, 1.0], False)
    """

    @classmethod
    def open(
        cls,
        url: Location,
        storage_options: Mapping[str, Any] | None = None,
        in_memory: bool | None = None,
        store_timeout: float = TIMEOUT,
        version: str | None = None,
    ) -> Self:
        """Read a trained model.

        Parameters
        ----------
        url
            A work directory or its `models` folder (the served version is read), or one version.
        storage_options
            Options for fsspec.
        in_memory
            Whether all vectors are in memory; by default, if they take less than half of what is available. Files of
            a local disk are mapped: processes share their pages, and a file may be deleted, but not changed. Others
            are read. If vectors are not in memory, each query reads what it needs, about 64 MB at a time.
        store_timeout
            Seconds to wait for each answer of the store, as in `Resources`.
        version
            Name or tag of a version of the work directory, instead of the served one.

        Raises
        ------
        StoreError
            If there is no finished model, it is damaged, or a newer daskw2v wrote it.
        VocabularyError
            If its vocabulary is damaged.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> Vectors(["king", "queen"], [[3, 1], [2, 2]]).save("memory://open")
        >>> Vectors.open("memory://open")
        Vectors(2 words x 2, url='memory://open')
        """
        return read_resolved(partial(cls._read, in_memory=in_memory), url, storage_options, store_timeout, version)

    def __repr__(self) -> str:
        return f"Vectors({len(self)} words x {self.vector_size}, url={self.url!r})"

    def __iter__(self) -> Iterator[str]:
        """Yield the words in order of their ids, as `index_to_key`."""
        return iter(self.vocabulary)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self.index_to_key)

    def __contains__(self, word: object) -> bool:
        return word in self.vocabulary

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return all vectors, shape (V, D), for `numpy.asarray`: `vectors` itself where it is in memory."""
        return np.array(self.vectors, dtype, copy=copy)

    def __getitem__(self, words: Word | Sequence[Word]) -> Float32Array:
        """Return a copy of a word's vector, shape (D,), or of the vectors of n words, shape (n, D).

        Raises
        ------
        UnknownWordError
            If a word is not known.
        ParameterError
            If `words` is neither a word nor a list of them.
        """
        if is_word(words):
            return np.asarray(self._look_up([words])[1][0])
        return self._look_up(as_word_list(words))[1]

    def _with_rows(
        self, rows: Float32Array, metadata: Mapping[str, Any], network: Subwords | None, features: FeatureVectors | None
    ) -> "Vectors":
        """Return a model in memory with the same words, and other rows, metadata, network and features.

        It has no output table.
        """
        model = Vectors(self.vocabulary, rows, metadata, self.url, network, self.stable_ids, features)
        vars(model)["_version"] = self._version
        return model

    def prefix(self, columns: int) -> "Vectors":
        """Return the first columns of the vectors as a model of its own, in memory.

        Prefixes of a model that was trained with `prefix_sizes` are nearly as good as smaller models.

        Parameters
        ----------
        columns
            Number of columns, at most `vector_size`.

        Raises
        ------
        ParameterError
            If it is below 1 or above `vector_size`, or a subword network computes vectors of all columns.
        StoreError
            If a vector is not finite.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> Vectors(["king", "queen"], [[3, 1, 5], [2, 2, 6]]).prefix(2)
        Vectors(2 words x 2, url=None)
        """
        columns = as_positive_int("columns", columns)
        if columns > self.vector_size:
            raise ParameterError(
                f"columns={columns} is more than the {self.vector_size} that the vectors have.", "Give fewer."
            )
        if self.subwords is not None:
            problem = f"columns={columns}: the model's subword network computes vectors of {self.vector_size} columns."
            raise ParameterError(problem, "Take a prefix of a model without a network.")
        rows = np.empty((len(self), columns), np.float32)
        for ids in self.slices():
            rows[ids] = self.rows(ids)[:, :columns]
        metadata, params = self.metadata, self.metadata.get("params", {})
        if params:
            smaller_sizes = [size for size in params.get("prefix_sizes", ()) if size < columns]
            metadata = {**metadata, "params": {**params, "vector_size": columns, "prefix_sizes": smaller_sizes}}
        features = None if self.features is None else self.features.prefix(columns)
        model = self._with_rows(rows, metadata, None, features)
        vars(model)["_outputs"] = self._outputs
        return model

    def items(self) -> Iterator[tuple[str, Float32Array]]:
        """Yield each word and its vector, shape (D,), in order of ids.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 4], [2, 2], [-1, 1]])
        >>> {word: row.tolist() for word, row in vectors.items()}
        {'king': [3.0, 4.0], 'queen': [2.0, 2.0], 'apple': [-1.0, 1.0]}
        """
        for rows in self.slices():
            yield from zip(self.vocabulary.between(rows.start, rows.stop), self.rows(rows), strict=True)
