"""How strange new text is to a version: how many of its words it does not know, how far their frequencies are."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from distributed import Client

from daskw2v.shards.layout import Corpus, read_places, read_words
from daskw2v.shards.tasks import run_tasks
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.vocabulary import Vocabulary


class Novelty(NamedTuple):
    """How strange text is.

    Parameters
    ----------
    unknown
        Share of its words that the version does not know.
    shift
        Total variation distance between the frequencies of words in it and in the version's text, 0..1. Words that the
        version does not know count as one.
    """

    unknown: float
    shift: float


def measure_novelty(
    client: Client, corpus: Corpus, blocks: Collection[str], stored: StoredVocabulary, words: Vocabulary,
    known: Vocabulary,
) -> Novelty | None:  # fmt: skip
    """Return how strange some text is to a version; None of no text. Only dictionaries are read, a shard a task.

    Parameters
    ----------
    client
        The cluster.
    corpus, blocks
        The text: those blocks of a corpus, by their keys.
    stored, words
        The vocabulary of the corpus, where it lies and as it was read.
    known
        The version's.
    """
    paths = dict.fromkeys(shard.path for shard in corpus.shards if shard.block in blocks)
    counted = np.zeros(len(words) + 1, np.int64)  # the last one: words of no vocabulary
    for _, (ids, counts) in run_tasks(client, "novelty", _count, {path: (stored, path) for path in paths}):
        np.add.at(counted, ids, counts)
    total = int(counted.sum())
    if not total:
        return None
    rows = known.find_all(words)
    found, before = counted[:-1][rows >= 0], known.counts / max(1, int(known.counts.sum()))
    now = np.zeros(len(known))
    now[rows[rows >= 0]] = found / total
    unknown = 1 - int(found.sum()) / total
    return Novelty(unknown, float(np.abs(now - before).sum() + unknown) / 2)


def _count(vocabulary: StoredVocabulary, path: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Task: return the ids of a shard's words, -1 outside the vocabulary, and how often each occurs."""
    ids, places = vocabulary.read_map(path), read_places(vocabulary.store, path)
    *_, counts = read_words(vocabulary.store, path, 0, len(places))
    return ids, counts[places]
