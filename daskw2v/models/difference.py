"""What differs between two versions: Params, words, corpus."""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.models.store import read_vocabulary
from daskw2v.models.versions import Version, Versions
from daskw2v.vocabulary.index import WordIndex
from daskw2v.vocabulary.vocabulary import Vocabulary

Counted = list[tuple[str, int]]


class Difference(NamedTuple):
    """What is different in a later version.

    Parameters
    ----------
    params
        The Params that differ, each with its earlier and its later value.
    entered
        Words that the earlier version lacks, with their counts in the later one, most frequent first.
    left
        Words that the later version lacks, with their counts in the earlier one, most frequent first.
    kept
        How many words both have.
    tokens
        Tokens of the earlier and of the later corpus.
    """

    params: dict[str, tuple[Any, Any]]
    entered: Counted
    left: Counted
    kept: int
    tokens: tuple[int | None, int | None]


def differences(versions: Versions, earlier: Version, later: Version) -> Difference:
    """Compare two versions; both vocabularies are held in memory."""
    old, new = (read_vocabulary(versions.models / version.name) for version in (earlier, later))
    ours, theirs = (version.manifest.get("params", {}) for version in (earlier, later))
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    entered, left = _lacking(new, old), _lacking(old, new)
    tokens = tuple(version.manifest.get("corpus", {}).get("tokens") for version in (earlier, later))
    return Difference(
        {name: (ours.get(name), theirs.get(name)) for name in names},
        entered, left, len(new) - len(entered), (tokens[0], tokens[1]),
    )  # fmt: skip


def _lacking(asked: Vocabulary, known: Vocabulary) -> Counted:
    """Return the words of one vocabulary that another lacks, with their counts."""
    found = WordIndex(known.data, known.offsets).find_all(asked.data, asked.offsets)
    return [(asked.word(id_), int(asked.counts[id_])) for id_ in np.flatnonzero(found < 0).tolist()]
