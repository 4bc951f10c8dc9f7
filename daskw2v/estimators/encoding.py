"""Vectors of texts, for `transform`."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from daskw2v.collections.kinds import FRAMES, is_one_of
from daskw2v.errors import ParameterError
from daskw2v.models.queries.encoding import USUAL
from daskw2v.models.queries.vectors import Vectors
from daskw2v.types import Float32Array

_POOLINGS = ("mean", "sif")


def check_pooling(pooling: str) -> None:
    """Refuse a pooling that is none."""
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
    return vectors.encode(texts, sif=USUAL if pooling == "sif" else None, tokenizer=tokenizer)
