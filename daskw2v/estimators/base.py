"""The base of all estimators: settings as attributes, training, and vectors of samples."""

import importlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Self

import numpy as np
from dask.tokenize import normalize_token
from distributed import Client

from daskw2v.collections.kinds import FRAMES, TextInputs, is_one_of
from daskw2v.config.choice import is_axis
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import Settings, declared_fields, default_of
from daskw2v.errors import NotFittedError, ParameterError
from daskw2v.models.queries.encoding import DEFAULT_SIF
from daskw2v.models.queries.other_names import INSTEAD, Answers
from daskw2v.models.queries.vectors import Vectors
from daskw2v.progress import Watching
from daskw2v.safe_text import masked
from daskw2v.store.urls import Location
from daskw2v.training.pipeline import train
from daskw2v.training.request import split, unknown_keyword
from daskw2v.training.watch.callbacks import Callback
from daskw2v.types import Float32Array

_FIRST = ("sentences", "corpus_file", "input", "inputs", "text", "texts", "X")
_OPEN = "Give daskw2v.open(url), which opens what wv.save(url) wrote."
_INSTEAD = {
    "load": _OPEN,
    "load_model": _OPEN,
    "train": "Give fit(text); to train on from vectors: fit with base_vectors=model.wv.",
    "build_vocab": "Give fit(text), which counts words first.",
    "predict": "Give transform(X) to a classifier.",
}
_POOLINGS = ("mean", "sif")


class Estimator(Answers):
    """The base of all estimators: settings as attributes, and training."""

    _own: ClassVar[tuple[str, ...]] = ("work", "client", "listener", "callbacks")
    _parts: ClassVar[tuple[type[Settings], ...]] = ()  # classes of settings beside Params and Resources
    _params: ClassVar[Params] = Params()  # defaults

    vectors_: Vectors

    def __init__(
        self,
        *,
        work: Location | None = None,
        client: Client | None = None,
        listener: Watching = "show",
        callbacks: Sequence[Callback] = (),
        **settings: Any,
    ) -> None:
        self._check_names(settings)
        vars(self).update({**self._defaults(), **settings})
        self.work, self.client, self.listener, self.callbacks = work, client, listener, callbacks

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Return the settings of a new estimator; those of choices, such as `negative`, are left to their choices."""
        parts: tuple[type[Settings], ...] = (Resources, Params, *cls._parts)
        return {
            f.name: getattr(cls._params, f.name) if part is Params and not is_axis(f) else default_of(f)
            for part in parts
            for f in declared_fields(part)
        }

    @classmethod
    def _names(cls) -> list[str]:
        """Return the names of all settings, those of choices too."""
        parts: tuple[type[Settings], ...] = (*cls._parts, Params, Resources)
        return list(dict.fromkeys([*cls._own, *(name for part in parts for name in part.names())]))

    @classmethod
    def _check_names(cls, settings: Mapping[str, Any]) -> None:
        names, call = cls._names(), cls.__name__
        for name in settings:
            if name not in names:
                error = unknown_keyword(call, name, names)
                if name in _FIRST:
                    error = type(error)(error.problem, f"Give it to fit: {call}().fit({name}).")
                raise error

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all settings by name; those of choices, such as `negative`, if they were passed.

        Examples
        --------
        >>> daskw2v.Word2Vec(window=3).get_params()["window"]
        3
        >>> "negative" in daskw2v.Word2Vec().get_params()
        False
        """
        held = vars(self)
        return {name: held[name] for name in sorted(self._names()) if name in held}

    def set_params(self, **params: Any) -> Self:
        """Change settings, as the next `fit` has them.

        Raises
        ------
        ParameterError
            If a name is no setting.

        Examples
        --------
        >>> model = daskw2v.Word2Vec(window=3).set_params(window=2, epochs=1)
        >>> model
        Word2Vec(epochs=1, window=2)
        """
        self._check_names(params)
        vars(self).update(params)
        return self

    def __sklearn_clone__(self) -> Self:
        """Return an estimator that is not fitted; a client and callbacks are shared, not copied."""
        return type(self)(**self.get_params())

    def __sklearn_tags__(self) -> Any:
        tags: Any = importlib.import_module("sklearn.utils")
        return tags.Tags(
            estimator_type=None,
            target_tags=tags.TargetTags(required=False),
            transformer_tags=tags.TransformerTags(preserves_dtype=[]),
            input_tags=tags.InputTags(two_d_array=False, string=True),
        )

    def __dask_tokenize__(self) -> Any:
        """Return the values that identify the estimator among Dask's keys."""
        return normalize_token((type(self).__qualname__, self.get_params(), vars(self).get("vectors_")))

    def __repr__(self) -> str:
        secret = {f.name for f in declared_fields(Resources) if not f.repr}
        usual = {**dict.fromkeys(self._own), "listener": "show", "callbacks": (), "pooling": "mean", **self._defaults()}
        shown = (
            f"{name}={'...' if name in secret else masked(repr(value))}"
            for name, value in self.get_params().items()
            if name not in usual or not (value is usual[name] or value == usual[name])
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def _remedy(cls, name: str) -> str:
        if name in _INSTEAD:
            return _INSTEAD[name]
        is_known = not name.startswith("_") and hasattr(Vectors, name)
        attribute = name if is_known else INSTEAD.get(name)
        return "" if attribute is None else f"The vectors have it: give wv.{attribute}."

    def __getattr__(self, name: str) -> Any:
        if name in ("vectors_", "wv"):
            raise _not_fitted(type(self).__name__)
        return self._missing_attribute(name)

    def __getitem__(self, word: Any) -> Any:
        raise TypeError(f"{type(self).__name__!r} object is not subscriptable. The vectors are: give wv[word].")

    @property
    def wv(self) -> Vectors:
        """The vectors, as gensim calls them; `vectors_` is the same.

        Examples
        --------
        >>> texts = ["the king and the queen"] * 9
        >>> model = daskw2v.Word2Vec(texts, vector_size=8, min_count=1, sample=0, listener=None)
        >>> len(model.wv), model.wv is model.vectors_
        (4, True)
        """
        return self.vectors_

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train a model.

        Parameters
        ----------
        X
            Text, events or a graph, as the class says.
        y
            Ignored.

        Raises
        ------
        Daskw2vError
            As `daskw2v.train` does; ParameterError for settings out of range.

        Examples
        --------
        >>> model = daskw2v.Node2Vec(vector_size=8, length=20, listener=None)
        >>> model.fit("edges.txt").wv.most_similar(3, topn=1)[0][0] in model.wv
        True
        """
        settings = {name: value for name, value in self.get_params().items() if name not in self._own}
        *parts, of_params, of_resources = split(type(self).__name__, settings, *self._parts, Params, Resources)
        if "seed" not in of_params:  # one seed for all
            of_params["seed"] = next(part["seed"] for part in parts if "seed" in part)
        params, resources = Params(**of_params), Resources(**of_resources)
        own = [cls(**part) for cls, part in zip(self._parts, parts, strict=True)]
        with self._opened(X, resources, *own) as inputs:
            call = {name: getattr(self, name) for name in Estimator._own}
            self.vectors_ = train(inputs, params=params, resources=resources, **call)
        return self

    @abstractmethod
    def _opened(self, X: Any, resources: Resources, *parts: Any) -> AbstractContextManager[TextInputs]:
        """Return the inputs of `train` for the time of a block."""

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, Any]:
        """Return a name for each dimension: word2vec0, word2vec1 and so on.

        Examples
        --------
        >>> texts = ["the king and the queen"] * 9
        >>> model = daskw2v.Word2Vec(texts, vector_size=3, min_count=1, sample=0, listener=None)
        >>> model.get_feature_names_out().tolist()
        ['word2vec0', 'word2vec1', 'word2vec2']
        """
        title = type(self).__name__.lower()
        return np.asarray([f"{title}{i}" for i in range(self.vectors_.vector_size)], object)


def check_pooling(pooling: str) -> None:
    """Refuse an unknown pooling."""
    if pooling not in _POOLINGS:
        raise ParameterError(f"pooling={pooling!r} is unknown.", f"Give {' or '.join(_POOLINGS)}.")


def listed(X: Any, column: str, what: str) -> list[Any]:
    """Return the samples of X, or of a column of a table.

    Raises
    ------
    ParameterError
        If X is one text, or has no samples.
    """
    samples: Any = X
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        raise ParameterError(f"X is a {type(X).__name__}.", f"Give {what} in a list.")
    if is_one_of(X, FRAMES):
        samples = samples[column]
    return samples.tolist() if isinstance(samples, np.ndarray) else list(samples)


def encode(vectors: Vectors, texts: list[Any], pooling: str, tokenizer: Any) -> Float32Array:
    """Return the vector of each text or list of words, shape (n, D).

    Parameters
    ----------
    vectors
        The model.
    texts
        Texts, or lists of words.
    pooling
        mean or sif.
    tokenizer
        How to split texts; None for the model's.
    """
    check_pooling(pooling)
    return vectors.encode(texts, sif=DEFAULT_SIF if pooling == "sif" else None, tokenizer=tokenizer)


def _not_fitted(title: str) -> Exception:
    """Return scikit-learn's error where it is installed, else ours: both are a ValueError and an AttributeError."""
    error = NotFittedError(f"This {title} is not fitted.", "Call fit first.")
    try:
        theirs: type[Exception] = importlib.import_module("sklearn.exceptions").NotFittedError
    except ImportError:
        return error
    return theirs(str(error))
