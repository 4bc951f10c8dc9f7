"""Smooth inverse frequency: rare words count more in the mean of a sentence's words (Arora et al. 2017).

The source is "A Simple but Tough-to-Beat Baseline for Sentence Embeddings", section 3, algorithm 1, line 2: a word of
probability p counts a / (a + p). Its line 4 removes the common direction of a set of sentences, which an export of
words does not have.
"""

from typing import Any

import numpy as np

from daskw2v.config.settings import number
from daskw2v.errors import InputError, ParameterError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.types import Float32Array

USUAL = 1e-3  # a, as the paper has it
_RANGE = number(0, open_low=True)


def check_sif(a: Any) -> None:
    """Check the constant `a`.

    Raises
    ------
    ParameterError
        If it is not a finite number above 0.
    """
    if not _RANGE.check(a):
        raise ParameterError(f"sif={a!r} is not {_RANGE.bound}.", f"Give {USUAL:g}, or leave it out.")


def sif_weights(vectors: Vectors, a: float) -> Float32Array:
    """Return what each word counts, shape (V,); its probability is its share of the counts of all words.

    Raises
    ------
    InputError
        If no word has a count.
    """
    counts = vectors.vocabulary.counts
    total = int(counts.sum())
    if not total:
        raise InputError(
            f"sif={a:g}: the words of {vectors.url or 'these vectors'} have no counts.",
            "Leave sif out, or export a model that was trained by daskw2v.",
        )
    return (a / (a + counts / total)).astype(np.float32)
