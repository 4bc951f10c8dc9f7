"""`Word2Vec`, `Item2Vec` and `Node2Vec`: vectors of words and texts, of items in events, and of a graph's nodes."""

import os
from collections import UserList
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from distributed import Client

from daskw2v.cluster.connecting import refuse_remote_workers
from daskw2v.collections.kinds import ARROW_TABLES, DASK_FRAMES, FRAMES, TextInputs, are_names, is_one_of
from daskw2v.config.resources import Resources
from daskw2v.corpus.inputs import Inputs
from daskw2v.corpus.stored_tokenizers import is_settled_file
from daskw2v.errors import ParameterError
from daskw2v.estimators.base import Estimator, check_pooling, encode, list_samples
from daskw2v.extras import Extra
from daskw2v.progress import Watching
from daskw2v.safe_text import masked
from daskw2v.sequences.settings import EdgeList, Sessions, Walks
from daskw2v.sequences.sources import Events, Graph
from daskw2v.store.urls import Location
from daskw2v.training.watch.callbacks import Callback
from daskw2v.types import Float32Array

pa = Extra("pyarrow", "arrow")
pq = Extra("pyarrow.parquet", "arrow")


class Word2Vec(Estimator):
    """Vectors of words and texts, as an estimator of scikit-learn or in gensim's way.

    Parameters
    ----------
    sentences
        Text to train on at once, as `fit` takes it.
    pooling
        How `transform` combines the vectors of a text's words: "mean"; or "sif", a mean in which rare words count more
        (smooth inverse frequency, Arora et al. 2017).
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
        super().__init__(work=work, client=client, listener=listener, callbacks=callbacks, **settings)
        self.pooling = pooling
        if sentences is not None:
            self.fit(sentences)

    def fit(self, X: TextInputs, y: Any = None) -> Self:
        """Train on text.

        Parameters
        ----------
        X
            Inputs of `daskw2v.train`; but strings in a list or array are texts, as in scikit-learn. Files in a list are
            `pathlib.Path` objects.
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

    def _open_inputs(self, X: Any, resources: Resources, *parts: Any) -> AbstractContextManager[TextInputs]:
        X = X.tolist() if isinstance(X, np.ndarray) and X.ndim == 1 else X
        if not (isinstance(X, list | tuple) and X and isinstance(X[0], str)):
            return nullcontext(X)
        if "://" in X[0] or os.path.exists(X[0]):
            problem = f"X is a list of names of files, such as {masked(X[0])!r}; strings in a list are texts here."
            raise ParameterError(problem, "Give the names to daskw2v.train(names), or pathlib.Path objects.")
        return nullcontext(UserList(X))  # which `train` takes as texts, not as names of files

    def transform(self, X: Any) -> Float32Array:
        """Return the mean vector of each text's known words, shape (n, D), weighted if `pooling` is "sif".

        A text without a known word has zeros.

        Parameters
        ----------
        X
            Texts, which are split as the text of the training, or lists of tokens: a list, an array, a column of a
            table, or a table of pandas or polars with the column `column`.

        Raises
        ------
        NotFittedError
            If the estimator was not fitted.
        ParameterError
            If X is one text or a mapping, or its samples are neither texts nor lists.

        Examples
        --------
        >>> model = daskw2v.Word2Vec(vector_size=8, min_count=1, listener=None).fit("text.txt")
        >>> model.transform(["the queen", "nothing known"]).any(axis=1).tolist()
        [True, False]
        """
        vectors = self.vectors_
        texts = list_samples(X, self.column, "texts")
        is_stored = is_settled_file(vectors.metadata.get("params", {}).get("tokenizer"))
        return encode(vectors, texts, self.pooling, None if is_stored else self.tokenizer)

    def fit_transform(self, X: Any, y: Any = None) -> Float32Array:
        """Train on texts, and return their vectors, as `fit` and `transform` do.

        Examples
        --------
        >>> texts = ["the king and the queen", "the queen and the land"] * 9
        >>> daskw2v.Word2Vec(vector_size=8, min_count=1, listener=None).fit_transform(texts).shape
        (18, 8)
        """
        texts = list(X) if isinstance(X, Iterator) else X
        return self.fit(texts).transform(texts)


class Item2Vec(Estimator):
    """Vectors of items, and of sessions of items, from events (`daskw2v.items`).

    Parameters
    ----------
    pooling
        As in `Word2Vec`.
    work, client, listener, callbacks
        As in `daskw2v.train`.
    **settings
        Fields of `Sessions`, such as `user="customer"` and `gap="30 min"`, and of `Params` and `Resources`. Defaults
        are those of `Events.params`.

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
    >>> model = daskw2v.Item2Vec(vector_size=8, min_count=1, listener=None).fit("events.csv")
    >>> model.transform([["i1", "i2"], ["i4"]]).shape
    (2, 8)
    """

    _own = (*Estimator._own, "pooling")
    _parts = (Sessions,)
    _params = Events.params

    def __init__(
        self,
        *,
        pooling: str = "mean",
        work: Location | None = None,
        client: Client | None = None,
        listener: Watching = "show",
        callbacks: Sequence[Callback] = (),
        **settings: Any,
    ) -> None:
        super().__init__(work=work, client=client, listener=listener, callbacks=callbacks, **settings)
        self.pooling = pooling

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on events.

        Parameters
        ----------
        X
            Names of Parquet or CSV files, as `daskw2v.items` takes them; or a table of pandas, polars, Arrow or Dask
            with the columns `user`, `item` and `time`.
        y
            Ignored.

        Raises
        ------
        Daskw2vError
            As `daskw2v.items` does.

        Examples
        --------
        >>> model = daskw2v.Item2Vec(vector_size=8, min_count=1, listener=None)
        >>> sorted(model.fit("events.csv").wv)
        ['i0', 'i1', 'i2', 'i3', 'i4']
        """
        check_pooling(self.pooling)
        return super().fit(X, y)

    @contextmanager
    def _open_inputs(self, X: Any, resources: Resources, *parts: Any) -> Iterator[TextInputs]:
        with _open_files(X, self.client, resources, f"columns {self.user}, {self.item} and {self.time}") as files:
            yield Events(files, *parts)

    def transform(self, X: Any) -> Float32Array:
        """Return the mean vector of each session's known items, shape (n, D); zeros for sessions without known items.

        Parameters
        ----------
        X
            Lists of items, one for each session: a list, or a table of pandas or polars with them in the column `item`.

        Raises
        ------
        NotFittedError
            If the estimator was not fitted.
        ParameterError
            If X is one text or a mapping, or contains items instead of lists of items.

        Examples
        --------
        >>> model = daskw2v.Item2Vec(vector_size=8, min_count=1, listener=None).fit("events.csv")
        >>> model.transform([["i1", "i2"], ["unknown"]]).any(axis=1).tolist()
        [True, False]
        """
        vectors, sessions = self.vectors_, list_samples(X, self.item, "lists of items")
        if any(isinstance(session, str) for session in sessions):
            raise ParameterError("X is a list of items.", "Give a list of them for each session: [['a', 'b'], ['c']].")
        return encode(vectors, sessions, self.pooling, None)


class Node2Vec(Estimator):
    """Vectors of a graph's nodes, from edges (`daskw2v.walks`).

    Parameters
    ----------
    work, client, listener, callbacks
        As in `daskw2v.train`.
    **settings
        Fields of `Walks`, such as `p`, `q`, `length` and `number`, of `EdgeList`, such as `directed` and `weight`, and
        of `Params` and `Resources`. Defaults are those of `Graph.params`; `seed` is that of walks and training.

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
    >>> model = daskw2v.Node2Vec(vector_size=8, length=20, q=0.5, listener=None).fit("edges.txt")
    >>> model.transform([3, 4]).shape
    (2, 8)
    """

    _parts = (EdgeList, Walks)
    _params = Graph.params

    @contextmanager
    def _open_inputs(self, X: Any, resources: Resources, *parts: Any) -> Iterator[TextInputs]:
        with _open_files(X, self.client, resources, f"columns {self.source} and {self.target}") as files:
            yield Graph(files, *parts)

    def transform(self, X: Any) -> Float32Array:
        """Return the vectors of nodes, shape (n, D).

        Parameters
        ----------
        X
            A list of nodes, or a table of pandas or polars with the nodes in the column `source`.

        Raises
        ------
        NotFittedError
            If the estimator was not fitted.
        UnknownWordError
            If a node is not known.

        Examples
        --------
        >>> model = daskw2v.Node2Vec(vector_size=8, length=20, listener=None).fit("edges.txt")
        >>> (model.transform([3, 4])[0] == model.wv[3]).all().item()
        True
        """
        return self.vectors_[list_samples(X, self.source, "nodes")]


@contextmanager
def _open_files(X: Any, client: Client | None, resources: Resources, columns: str) -> Iterator[Inputs]:
    """Yield X if it is names of files, or the name of a temporary folder with a file of the table X.

    Raises
    ------
    ParameterError
        If X is neither a table nor names of files; the message says which `columns` a table has.
    ClusterError
        If workers may not be able to read the folder.
    """
    if are_names(X):
        yield X
        return
    if not is_one_of(X, FRAMES | ARROW_TABLES | DASK_FRAMES):
        raise ParameterError(
            f"X is a {type(X).__name__}, neither a table nor names of files.",
            f"Give a table with the {columns}, such as pandas.DataFrame(rows, columns=[...]); of a graph of networkx: "
            "networkx.to_pandas_edgelist(graph).",
        )
    problem = "X is a table, which is written to a temporary folder of this machine"
    refuse_remote_workers(client, resources, problem, "Write it to Parquet where workers read it, and give its name.")
    with TemporaryDirectory(prefix="daskw2v-") as folder:
        if is_one_of(X, DASK_FRAMES):
            X.to_parquet(folder)
        else:
            pq.write_table(pa.table(X), f"{folder}/rows.parquet")
        yield folder
