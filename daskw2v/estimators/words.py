"""`Word2Vec`: vectors of words and texts."""

import os
from collections import UserList
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np
from distributed import Client

from daskw2v.collections.kinds import TextInputs
from daskw2v.config.resources import Resources
from daskw2v.corpus.stored_tokenizers import is_settled_file
from daskw2v.errors import ParameterError
from daskw2v.estimators.base import Estimator, check_pooling, encode, listed
from daskw2v.progress import Watching
from daskw2v.safe_text import masked
from daskw2v.store.urls import Location
from daskw2v.training.watch.callbacks import Callback
from daskw2v.types import Float32Array


class Word2Vec(Estimator):
    """Vectors of words and texts, as an estimator of scikit-learn or in gensim's way.

    Parameters
    ----------
    sentences
        Text to train on at once, as `fit` takes it.
    pooling
        What `transform` makes of a text's words: their "mean"; or "sif", a mean in which rare words count more (smooth
        inverse frequency, Arora et al. 2017).
    work, client, listener, callbacks
        As in `daskw2v.train`.
    **settings
        Fields of `Params` and `Resources`.

    Attributes
    ----------
    vectors_ : Vectors
        The model, after `fit`; `wv` is the same.

    Raises
    ------
    ParameterError
        If a name is no setting. Values are checked by `fit`.

    Examples
    --------
    >>> texts = ["the king and the queen", "the queen and the land"] * 9
    >>> model = daskw2v.Word2Vec(vector_size=8, min_count=1, listener=None).fit(texts)
    >>> model.transform(["the king", "the queen and the king"]).shape
    (2, 8)
    >>> model.wv.most_similar("king", topn=1)[0][0] in model.wv
    True
    """

    _own = (*Estimator._own, "pooling")

    def __init__(
        self,
        sentences: TextInputs = None,
        *,
        pooling: str = "mean",
        work: Location | None = None,
        client: Client | None = None,
        listener: Watching = "show",
        callbacks: Sequence[Callback] = (),
        **settings: Any,
    ) -> None:
        super().__init__(
            settings, pooling=pooling, work=work, client=client, listener=listener, callbacks=callbacks
        )  # fmt: skip
        if sentences is not None:
            self.fit(sentences)

    def fit(self, X: TextInputs, y: Any = None) -> Self:
        """Train on text.

        Parameters
        ----------
        X
            What `daskw2v.train` takes; but strings in a list or array are texts, as in scikit-learn. Files in a list
            are `pathlib.Path` objects.
        y
            Ignored.

        Raises
        ------
        Daskw2vError
            As `daskw2v.train` does; ParameterError for settings out of range, and for names of files in a list.

        Examples
        --------
        >>> model = daskw2v.Word2Vec(vector_size=8, min_count=1, sample=0, listener=None)
        >>> sorted(model.fit(["the king and the queen"] * 9).wv)
        ['and', 'king', 'queen', 'the']
        """
        check_pooling(self.pooling)
        return super().fit(X, y)

    def _opened(self, X: Any, resources: Resources, *parts: Any) -> AbstractContextManager[TextInputs]:
        X = X.tolist() if isinstance(X, np.ndarray) and X.ndim == 1 else X
        if not (isinstance(X, list | tuple) and X and isinstance(X[0], str)):
            return nullcontext(X)
        if "://" in X[0] or os.path.exists(X[0]):
            raise ParameterError(
                f"X is a list of names of files, such as {masked(X[0])!r}; strings in a list are texts here.",
                "Give the names to daskw2v.train(names), or pathlib.Path objects.",
            )
        return nullcontext(UserList(X))  # which is no list of names to `train`

    def transform(self, X: Any) -> Float32Array:
        """Return a vector for each text, shape (n, D); zeros for a text of unknown words.

        Parameters
        ----------
        X
            Texts, which are split as the text of the training, or lists of tokens: a list, an array, a column of a
            table, or a table with the column `column`.

        Raises
        ------
        NotFittedError
            If it was not fitted.
        ParameterError
            If X is one text, or holds anything else.

        Examples
        --------
        >>> model = daskw2v.Word2Vec(vector_size=8, min_count=1, listener=None).fit("text.txt")
        >>> model.transform(["the queen", "nothing known"]).any(axis=1).tolist()
        [True, False]
        """
        vectors = self.vectors_
        texts = listed(X, self.column, "texts")
        is_stored = is_settled_file(vectors.metadata.get("params", {}).get("tokenizer"))
        return encode(vectors, texts, self.pooling, None if is_stored else self.tokenizer)

    def fit_transform(self, X: Any, y: Any = None) -> Float32Array:
        """Train on texts, and return their vectors.

        Examples
        --------
        >>> texts = ["the king and the queen", "the queen and the land"] * 9
        >>> daskw2v.Word2Vec(vector_size=8, min_count=1, listener=None).fit_transform(texts).shape
        (18, 8)
        """
        texts = list(X) if isinstance(X, Iterator) else X
        return self.fit(texts).transform(texts)
