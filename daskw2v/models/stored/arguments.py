"""Checks the arguments of queries: words, weights, numbers and vectors."""

from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.config.settings import is_number
from daskw2v.errors import ParameterError
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import Word, is_word

Vector = npt.NDArray[Any]  # of D dimensions, in place of a word
Weighted = Word | Vector | tuple[Word | Vector, float]


def as_word_list(words: Any) -> list[Word]:
    """Return the elements of an iterable, unchecked, as a list; raise ParameterError for texts and non-iterables."""
    if isinstance(words, str | bytes) or not isinstance(words, Iterable):
        raise ParameterError(f"{words!r} is not a list of words.", "Give words in a list, such as ['king', 'queen'].")
    return list(words)


def as_nonempty_word_list(words: Any) -> list[Word]:
    """Return words as `as_word_list` does; raise ParameterError also for an empty list."""
    listed = as_word_list(words)
    if not listed:
        raise ParameterError("No words to compare.", "Give at least one word.")
    return listed


def weigh_words(words: Any, weight: float) -> Iterator[tuple[Word | Vector, float]]:
    """Yield one or more words or arrays, each with its own weight or `weight`; raise ParameterError for all else."""
    for word in [words] if _is_single(words) else as_word_list(words):
        yield (word, weight) if is_word(word) or _is_vector(word) else _as_pair(word)


def _is_single(words: Any) -> bool:
    """Return whether an argument is one word or vector, with or without its weight."""
    if isinstance(words, tuple):  # (1, 2) are two words, as to gensim
        return len(words) == 2 and isinstance(words[1], Real) and not all(is_number(word, Integral) for word in words)
    return is_word(words) or (_is_vector(words) and words.ndim < 2)


def _is_vector(word: Any) -> bool:
    """Return whether an argument is an array of real numbers, of any shape."""
    return isinstance(word, np.ndarray) and word.dtype.kind in "fiu"


def _as_pair(word: Any) -> tuple[Word | Vector, float]:
    """Return a pair of a word or vector and its weight; raise ParameterError for anything else."""
    is_pair = isinstance(word, tuple | list) and len(word) == 2 and (is_word(word[0]) or _is_vector(word[0]))
    if not (is_pair and is_number(word[1], Real) and np.isfinite(float(word[1]))):
        remedy = "Give words, or pairs of a word and a finite number, such as ('king', 0.5)."
        problem = f"{word!r} is neither a word nor a word with its weight."
        raise ParameterError(problem, f"{remedy} An array of numbers may stand for a word.")
    return word[0], float(word[1])


def as_texts(queries: Any) -> list[str] | None:
    """Return a text, or a list of texts, as a list; None for anything else, such as numbers."""
    if isinstance(queries, str):
        return [queries]
    are_numbers = isinstance(queries, np.ndarray) and queries.dtype.kind in "fiub"
    if are_numbers or isinstance(queries, bytes) or not isinstance(queries, Iterable):
        return None
    listed = list(queries)
    return listed if all(isinstance(query, str) for query in listed) else None


def as_positive_int(name: str, value: Any) -> int:
    """Return the argument `name` if it is an integer >= 1; raise ParameterError for anything else."""
    if not is_number(value, Integral) or value < 1:
        raise ParameterError(f"{name}={value!r} is not an integer >= 1.", f"Give a {name} of at least 1.")
    return int(value)


def as_query_vectors(vectors: npt.ArrayLike, size: int) -> Float32Array:
    """Return a vector, (size,), or n vectors, (n, size), as finite float32; raise ParameterError for anything else."""
    try:
        numbers = np.asarray(vectors)
    except ValueError:  # rows of several lengths
        numbers = np.asarray(None)
    if numbers.dtype.kind not in "fiu":
        problem = f"The query is not a vector of {size} dimensions: {str(vectors)[:60]}."
        raise ParameterError(problem, f"Give one vector of {size} numbers, or several of them.")
    with np.errstate(over="ignore"):
        queries = numbers.astype(np.float32)
    if queries.ndim not in (1, 2) or queries.shape[-1] != size:
        problem = f"The query has the shape {queries.shape}, but the model has {size} dimensions."
        raise ParameterError(problem, "Give vectors of as many dimensions.")
    if not np.isfinite(queries).all():
        raise ParameterError("The query contains NaN, infinity, or numbers beyond float32.", "Give finite vectors.")
    return queries


def as_query_vector(vector: npt.ArrayLike, size: int) -> Float32Array:
    """Return a vector, shape (size,), as finite float32; raise ParameterError for anything else."""
    query = as_query_vectors(vector, size)
    if query.ndim != 1:
        problem = f"The query has the shape {query.shape}, and is not one vector of {size} dimensions."
        raise ParameterError(problem, "Give one vector; `nearest` takes several.")
    return query
