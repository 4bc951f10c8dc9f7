"""Novelty of text to a version: the share of unknown words, and the distance of word frequencies."""

from typing import NamedTuple

import numpy as np
from distributed import Client

from daskw2v.cluster.tasks import run_tasks
from daskw2v.shards.layout import Corpus, Shard, open_codes, read_places, read_words
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
    client: Client, text: Corpus, stored: StoredVocabulary, words: Vocabulary, known: Vocabulary
) -> Novelty | None:
    """Return the novelty of text to a version; None if it has no tokens.

    Of whole shards only the dictionaries are read, one task for each shard.

    Parameters
    ----------
    client
        The cluster.
    text
        An excerpt of a corpus.
    stored, words
        The vocabulary of that corpus, in the store and in memory.
    known
        The vocabulary of the version.
    """
    jobs = {(shard.path, shard.first, shard.n_tokens): (stored, shard) for shard in text.shards}
    counted = np.zeros(len(words) + 1, np.int64)  # the last entry counts words outside the vocabulary
    for _, (ids, counts) in run_tasks(client, "novelty", _count, jobs):
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


def _count(vocabulary: StoredVocabulary, shard: Shard) -> tuple[Int32Array, Int64Array]:
    """Task: return the ids of a shard's words, -1 outside the vocabulary, and their counts."""
    store, path = vocabulary.store, shard.path
    ids, places = vocabulary.read_map(path), read_places(store, path)
    codes = open_codes(store, shard)
    if shard.n_tokens < len(codes):
        return ids, np.bincount(codes[shard.first : shard.first + shard.n_tokens], minlength=len(ids))
    *_, counts = read_words(store, path, 0, len(places))
    return ids, counts[places]
