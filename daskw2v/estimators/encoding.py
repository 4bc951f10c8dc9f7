"""Vectors of texts, for `transform`."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from daskw2v.collections.kinds import FRAMES, is_one_of
from daskw2v.corpus.pieces import RawText
from daskw2v.corpus.tokenizers import make_tokenizer
from daskw2v.errors import ParameterError
from daskw2v.models.phrases import Phrases
from daskw2v.models.sif import USUAL, sif_weights
from daskw2v.models.vectors import Vectors
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import as_text

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
    sif = USUAL if pooling == "sif" else None
    if hasattr(vectors, "encode"):
        found: Float32Array = vectors.encode(texts, sif=sif, tokenizer=tokenizer)
        return found
    weights = np.ones(len(vectors), np.float32) if sif is None else sif_weights(vectors, sif)
    phrases = Phrases.open(vectors.url) if vectors.metadata.get("phrases") and vectors.url else Phrases()
    means = np.zeros((len(texts), vectors.vector_size), np.float32)
    for mean, text in zip(means, texts, strict=True):
        words = phrases.apply(_split(vectors, text, tokenizer)) if isinstance(text, str) else map(as_text, text)
        known = [word for word in words if word in vectors or vectors._speller is not None]
        if known:
            ids, rows = vectors._look_up(known)
            mean[:] = (rows * np.where(ids < 0, 1, weights[ids])[:, None]).mean(axis=0)
    return means


def _split(vectors: Vectors, text: str, tokenizer: Any) -> list[str]:
    if tokenizer is None:
        raise ParameterError(f"The texts of {vectors} were split by a tokenizer.json.", "Give lists of its tokens.")
    pieces = make_tokenizer(tokenizer)(text.encode())
    if isinstance(pieces, RawText):
        return [token.decode() for token in bytes(max(b, 32) for b in pieces.data).split()]
    content = pieces.data.tobytes()
    return [content[start:stop].decode() for start, stop in pairwise(pieces.offsets.tolist())]
