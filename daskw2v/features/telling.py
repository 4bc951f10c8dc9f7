"""What a run says of its table of features: how many words it tells of, its columns, and what a base had otherwise."""

from collections.abc import Sequence

import numpy as np

from daskw2v.errors import counted
from daskw2v.features.keys import FeatureColumn
from daskw2v.features.words import WordFeatures


def told(found: WordFeatures, columns: Sequence[FeatureColumn], before: Sequence[FeatureColumn]) -> str:
    """Return a sentence.

    Parameters
    ----------
    found
        What the table says of words.
    columns, before
        Its columns, and those of the model that training starts from; none without one.
    """
    known = np.count_nonzero(np.diff(found.offsets))
    said = [
        f"the table tells of {known:,} of {counted(found.n_words, 'word')}",
        *(f"{column.name}: {_size(column)}" for column in columns if column.size),
    ]
    now, then = ({column.name: column for column in some if column.size} for some in (columns, before))
    gone = [name for name in then if name not in now]
    others = [name for name in then if name in now and bool(then[name].knots) != bool(now[name].knots)]
    said += [f"{name} is no longer there" for name in gone]
    said += [f"{name} had {_size(then[name])} before, and begins anew" for name in others]
    return "; ".join(said)


def _size(column: FeatureColumn) -> str:
    return ("numbers, " if column.knots else "categories, ") + counted(column.size, "row")
