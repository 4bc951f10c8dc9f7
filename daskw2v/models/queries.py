"""Checks the arguments of queries: words, weights, numbers and vectors."""

from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.config.settings import is_number
from daskw2v.errors import ParameterError
from daskw2v.types import Float32Array

Weighted = str | tuple[str, float]


def check_method(method: str) -> None:
    """Refuse an unknown method for analogies.

    Raises
    ------
    ParameterError
        If the method is not 3cosadd or 3cosmul.
    """
    if method not in ("3cosadd", "3cosmul"):
        raise ParameterError(f"method={method!r} is unknown.", "Give 3cosadd or 3cosmul.")


def word_list(words: Any) -> list[str]:
    """Return words as a list; raise ParameterError for a single word or anything else."""
    if isinstance(words, str | bytes) or not isinstance(words, Iterable):
        raise ParameterError(f"{words!r} is not a list of words.", "Give words in a list, such as ['king', 'queen'].")
    return list(words)


def weighted(words: Any, weight: float) -> Iterator[tuple[str, float]]:
    """Yield words and their weights, `weight` by default; raise ParameterError for anything else."""
    if isinstance(words, str) or (isinstance(words, tuple) and len(words) == 2 and isinstance(words[1], Real)):
        words = [words]  # one word, with or without its weight
    for word in word_list(words):
        yield (word, weight) if isinstance(word, str) else _pair(word)


def _pair(word: Any) -> tuple[str, float]:
    is_pair = isinstance(word, tuple | list) and len(word) == 2 and isinstance(word[0], str)
    if not (is_pair and is_number(word[1], Real) and np.isfinite(float(word[1]))):
        raise ParameterError(
            f"{word!r} is neither a word nor a word with its weight.",
            "Give words, or pairs of a word and a finite number, such as ('king', 0.5).",
        )
    return word[0], float(word[1])


def at_least_one(name: str, value: Any) -> int:
    """Return an argument that is an integer >= 1; raise ParameterError for anything else."""
    if not is_number(value, Integral) or value < 1:
        raise ParameterError(f"{name}={value!r} is not an integer >= 1.", f"Give a {name} of at least 1.")
    return int(value)


def query_vectors(vectors: npt.ArrayLike, size: int) -> Float32Array:
    """Return one vector, shape (size,), or several, (n, size), as float32; raise ParameterError for anything else."""
    try:
        given = np.asarray(vectors)
    except ValueError:  # rows of several lengths
        given = np.asarray(None)
    if given.dtype.kind not in "fiu":
        raise ParameterError(
            f"The query is not a vector of {size} dimensions: {str(vectors)[:60]}.",
            f"Give one vector of {size} numbers, or several of them.",
        )
    with np.errstate(over="ignore"):
        queries = given.astype(np.float32)
    if queries.ndim not in (1, 2) or queries.shape[-1] != size:
        raise ParameterError(
            f"The query has the shape {queries.shape}, but the model has {size} dimensions.",
            "Give vectors of as many dimensions.",
        )
    if not np.isfinite(queries).all():
        raise ParameterError(
            "The query contains NaN, infinity, or numbers beyond float32.",
            "Give finite vectors.",
        )
    return queries
