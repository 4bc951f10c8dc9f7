"""Novelty of text to a version: the share of unknown words, and the distance of word frequencies."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from distributed import Client

from daskw2v.cluster.tasks import run_tasks
from daskw2v.shards.layout import Corpus, read_places, read_words
from daskw2v.types import Int32Array, Int64Array
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.vocabulary import Vocabulary


class Novelty(NamedTuple):
    """How far text differs from the text of a version.

    Parameters
    ----------
    unknown
        Share of its tokens whose word the version does not know.
    shift
        Total variation distance between its word frequencies and those of the version's text, 0..1. All words that
        the version does not know count as one word.
    """

    unknown: float
    shift: float


def measure_novelty(
    client: Client, corpus: Corpus, blocks: Collection[str], stored: StoredVocabulary, words: Vocabulary,
    known: Vocabulary,
) -> Novelty | None:  # fmt: skip
    """Return the novelty of some blocks to a version; None if they have no tokens.

    Only the dictionaries of the blocks' shards are read, one task for each shard.

    Parameters
    ----------
    client
        The cluster.
    corpus, blocks
        The corpus, and the keys of its blocks to measure.
    stored, words
        The vocabulary of the corpus, in the store and in memory.
    known
        The vocabulary of the version.
    """
    paths = dict.fromkeys(shard.path for shard in corpus.shards if shard.block in blocks)
    counted = np.zeros(len(words) + 1, np.int64)  # the last entry counts words outside the vocabulary
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


def _count(vocabulary: StoredVocabulary, path: str) -> tuple[Int32Array, Int64Array]:
    """Task: return the ids of a shard's words, -1 outside the vocabulary, and their counts."""
    ids, places = vocabulary.read_map(path), read_places(vocabulary.store, path)
    *_, counts = read_words(vocabulary.store, path, 0, len(places))
    return ids, counts[places]
