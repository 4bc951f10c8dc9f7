"""A summary of a run's table of features: the words that it covers, its columns, and changes since the base model."""

from collections.abc import Sequence

import numpy as np

from daskw2v.errors import counted
from daskw2v.features.keys import FeatureColumn
from daskw2v.features.words import WordFeatures


def summary_of(features: WordFeatures, columns: Sequence[FeatureColumn], base: Sequence[FeatureColumn]) -> str:
    """Return the summary as a sentence.

    Parameters
    ----------
    features
        The features of the vocabulary's words.
    columns, base
        The columns of the table, and those of the base model; empty without one.
    """
    covered = np.count_nonzero(np.diff(features.offsets))
    parts = [
        f"the table has {covered:,} of {counted(features.n_words, 'word')}",
        *(f"{column.name}: {_size(column)}" for column in columns if column.size),
    ]
    now, before = ({column.name: column for column in some if column.size} for some in (columns, base))
    parts += [f"{name} is no longer there" for name in before if name not in now]
    parts += [
        f"{name} had {_size(column)} before, and starts anew"
        for name, column in before.items()
        if name in now and bool(column.knots) != bool(now[name].knots)
    ]
    return "; ".join(parts)


def _size(column: FeatureColumn) -> str:
    return ("numbers, " if column.knots else "categories, ") + counted(column.size, "row")
