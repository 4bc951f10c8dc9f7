"""The most probable word between others, by the output table of a model."""

from collections.abc import Sequence

import numpy as np

from daskw2v.errors import ParameterError, StoreError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.arguments import at_least_one, some_words
from daskw2v.vocabulary.vocabulary import Word


def predict_output_word(vectors: Vectors, words: Sequence[Word], topn: int) -> list[tuple[str, float]]:
    """Return the most probable words and their probabilities; arguments and errors are as in the method."""
    topn, context = at_least_one("topn", topn), vectors[some_words(words)].sum(axis=0, dtype=np.float64)
    output = vectors.output_rows()
    if output is None:
        raise ParameterError(
            f"{vectors!r} has no output table with a row for each word.",
            "Open a version that was trained by negative sampling.",
        )
    if vectors.metadata.get("params", {}).get("cbow_mean", True):
        context /= len(words)
    scores = np.concatenate([output[ids] @ context for ids in vectors.slices()])
    if not np.isfinite(scores).all():
        raise StoreError(f"The output table of {vectors!r} is not finite.", "Take it from a copy, or train again.")
    likely = np.exp(scores - scores.max())
    likely /= likely.sum()
    best = np.argsort(-likely, kind="stable")[:topn].tolist()
    return [(vectors.vocabulary.word(id_), float(likely[id_])) for id_ in best]
