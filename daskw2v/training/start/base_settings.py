"""Settings of the vectors that training starts from: a version of the work directory, or other vectors."""

from dataclasses import dataclass
from typing import Any

from daskw2v.config.choice import Group
from daskw2v.config.params import Params
from daskw2v.config.settings import TEXT, URL, VECTORS, number, setting


@dataclass(frozen=True, kw_only=True)
class StartVectors(Group):
    """Vectors that words begin with, of a model that is called the base."""

    axis = "start"

    frozen_words: str | None = setting(
        None,
        "words whose vectors do not move, of those that the base knows: known, for all of them, or the URL of a list, "
        "one a line",
        URL,
        stage="train",
        honoured_by=("objective", "strategy", "device"),
    )
    anchor: float = setting(
        0.0,
        "weight of the base's row in the final row of each word it knows; 0 ignores it",
        number(0, 1),
        stage="train",
    )


@dataclass(frozen=True, kw_only=True)
class BaseModel(StartVectors):
    """Trains on from a version in the same work directory: words of the version begin with its rows.

    Parameters
    ----------
    version
        Name of the version.
    frozen_words
        Words of the version whose vectors do not change: "known", for all of them, or the URL of a list of words.
    anchor
        Weight of the version's row in the final row of each word of the version, 0 to 1.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> from daskw2v import BaseModel, Params
    >>> Params(start=BaseModel("v0001", anchor=0.1)) == Params(base_model="v0001", anchor=0.1)
    True
    """

    version: str | None = setting(
        None,
        "version in the same work directory to train on from: words it knows begin with its rows",
        TEXT,
        stage="train",
        key=True,
        flat="base_model",
    )


@dataclass(frozen=True, kw_only=True)
class BaseVectors(StartVectors):
    """Trains on from vectors that are no version of the work directory.

    Parameters
    ----------
    vectors
        A file (word2vec, fastText, safetensors), a model, a work directory, `Vectors` or gensim's KeyedVectors.
    frozen_words, anchor
        As in `BaseModel`.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> from daskw2v import BaseVectors, Params
    >>> params = Params(start=BaseVectors("base.bin", frozen_words="known"))
    >>> params == Params(base_vectors="base.bin", frozen_words="known")
    True
    """

    vectors: str | Any = setting(
        None,
        "vectors that words begin with: a file (word2vec, fastText, safetensors), a model, or a work directory",
        VECTORS,
        stage="train",
        key=True,
        flat="base_vectors",
    )


CLASSES = (BaseModel, BaseVectors)


def get_anchor(params: Params) -> float:
    """Return the weight of the base's rows in the final rows, 0 to 1; 0 where there is no base."""
    base = StartVectors.find(params)
    return 0.0 if base is None else base.anchor


def get_frozen_words(params: Params) -> str | None:
    """Return the setting `frozen_words`: "known", or the location of a list; None where no word is frozen."""
    base = StartVectors.find(params)
    return None if base is None else base.frozen_words
