"""The base of all estimators: settings as attributes, training, and vectors of samples."""

import importlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Self

import numpy as np
from dask.tokenize import normalize_token
from distributed import Client

from daskw2v.collections.kinds import DASK_TABLES, FRAMES, TextInputs, is_one_of
from daskw2v.config.choice import is_axis
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import Settings, declared_fields, get_default
from daskw2v.errors import NotFittedError, ParameterError
from daskw2v.models.queries.encoding import DEFAULT_SIF
from daskw2v.models.queries.other_names import INSTEAD, Answers
from daskw2v.models.queries.vectors import Vectors
from daskw2v.progress import Watching
from daskw2v.safe_text import masked
from daskw2v.store.urls import Location
from daskw2v.training.pipeline import train
from daskw2v.training.preparation.request import split_keywords, unknown_keyword
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
        """Return the defaults of all fields by name, without settings of choices and groups, such as `negative`."""
        parts: tuple[type[Settings], ...] = (Resources, Params, *cls._parts)
        return {
            f.name: getattr(cls._params, f.name) if part is Params and not is_axis(f) else get_default(f)
            for part in parts
            for f in declared_fields(part)
        }

    @classmethod
    def _names(cls) -> list[str]:
        """Return the names of all settings, with the settings of choices and groups."""
        parts: tuple[type[Settings], ...] = (*cls._parts, Params, Resources)
        return list(dict.fromkeys([*cls._own, *(name for part in parts for name in part.names())]))

    @classmethod
    def _check_names(cls, settings: Mapping[str, Any]) -> None:
        """Raise a ParameterError for names that are no settings."""
        names, call = cls._names(), cls.__name__
        for name in settings:
            if name not in names:
                error = unknown_keyword(call, name, names)
                if name in _FIRST:
                    error = type(error)(error.problem, f"Give it to fit: {call}().fit({name}).")
                raise error

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all settings by name; those of choices and groups, such as `negative` or `maxn`, only if passed.

        `deep` is ignored.

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
        """Change settings, which the next `fit` uses; return the estimator.

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
        defaults = {**dict.fromkeys(self._own), **self._defaults()}
        defaults |= {"listener": "show", "callbacks": (), "pooling": "mean"}
        changed = (
            f"{name}={'...' if name in secret else masked(repr(value))}"
            for name, value in self.get_params().items()
            if name not in defaults or not (value is defaults[name] or value == defaults[name])
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    @classmethod
    def _remedy(cls, name: str) -> str:
        """Return a sentence on what to use instead of an attribute that does not exist; "" if nothing is known."""
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
        """Train a model; return the estimator.

        Parameters
        ----------
        X
            Text, events or a graph, depending on the class.
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
        classes = *self._parts, Params, Resources
        *parts, for_params, for_resources = split_keywords(type(self).__name__, settings, *classes)
        if "seed" not in for_params:  # one seed for all
            for_params["seed"] = next(part["seed"] for part in parts if "seed" in part)
        params, resources = Params(**for_params), Resources(**for_resources)
        input_settings = [cls(**part) for cls, part in zip(self._parts, parts, strict=True)]
        with self._open_inputs(X, resources, *input_settings) as inputs:
            call = {name: getattr(self, name) for name in Estimator._own}
            self.vectors_ = train(inputs, params=params, resources=resources, **call)
        return self

    @abstractmethod
    def _open_inputs(self, X: Any, resources: Resources, *parts: Any) -> AbstractContextManager[TextInputs]:
        """Return a context manager with the inputs of `train` for X; `parts` are objects of the classes `_parts`."""

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, Any]:
        """Return a name for each dimension of the fitted model: the class in lower case and a number, as word2vec0.

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
    """Raise a ParameterError if a pooling is neither "mean" nor "sif"."""
    if pooling not in _POOLINGS:
        raise ParameterError(f"pooling={pooling!r} is unknown.", f"Give {' or '.join(_POOLINGS)}.")


def list_samples(X: Any, column: str, samples_name: str) -> list[Any]:
    """Return the samples of X, or of the column of this name if X is a table of pandas, polars or Dask, as a list.

    Raises
    ------
    ParameterError
        If X is one text, a mapping, or cannot be iterated over; the message calls samples `samples_name`.
    """
    samples: Any = X
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        raise ParameterError(f"X is a {type(X).__name__}.", f"Give {samples_name} in a list.")
    if is_one_of(X, FRAMES | DASK_TABLES):
        samples = samples[column]
    return samples.tolist() if isinstance(samples, np.ndarray) else list(samples)


def encode(vectors: Vectors, texts: list[Any], pooling: str, tokenizer: Any) -> Float32Array:
    """Return the mean vector of each text or list of words, shape (n, D) float32; zeros if no word is known.

    Parameters
    ----------
    vectors
        The model.
    texts
        n texts, or lists of words.
    pooling
        "mean", or "sif" for a mean in which rare words count more.
    tokenizer
        The tokenizer that splits texts; None for the model's.
    """
    check_pooling(pooling)
    return vectors.encode(texts, sif=DEFAULT_SIF if pooling == "sif" else None, tokenizer=tokenizer)


def _not_fitted(title: str) -> Exception:
    """Return the error of an estimator that is not fitted: scikit-learn's where it is installed, else daskw2v's."""
    error = NotFittedError(f"This {title} is not fitted.", "Call fit first.")
    try:
        sklearn_error: type[Exception] = importlib.import_module("sklearn.exceptions").NotFittedError
    except ImportError:
        return error
    return sklearn_error(str(error))
