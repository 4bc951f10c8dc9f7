"""The task that trains: one replica's work of one round, a pure function of the model's blocks and the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.devices import find_device
from daskw2v.objectives import find_objective
from daskw2v.objectives.base import FloatArray
from daskw2v.params import Params
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.rng import Purpose, stream
from daskw2v.sampling.segments import cut, keep_thresholds
from daskw2v.shards.layout import Corpus
from daskw2v.storage import Store
from daskw2v.strategies.blocks import Block
from daskw2v.strategies.schedule import Work
from daskw2v.vocabulary.count import StoredVocabulary


@dataclass(frozen=True)
class Run:
    """What all tasks of a run share; small, since it travels with each of them.

    Parameters
    ----------
    work
        The work directory, which every worker sees.
    corpus, vocabulary
        Name of the corpus in it, and the vocabulary.
    params
        The experiment.
    device, threads
        What a training task runs on, and with how many threads.
    """

    work: Store
    corpus: str
    vocabulary: StoredVocabulary
    params: Params
    device: str
    threads: int


class Totals(NamedTuple):
    """What a piece of training did: corpus words of the vocabulary, pairs, and the pairs' summed loss."""

    words: int
    pairs: int
    loss: float
    finite: bool


class _Text(NamedTuple):
    reader: SegmentReader
    length: int
    keep: npt.NDArray[np.uint64]
    prepared: object


@lru_cache(maxsize=2)
def _text(work: Store, corpus_name: str, vocabulary: StoredVocabulary, params: Params) -> _Text:
    """Open what a run reads. Only a cache: a worker that lacks it makes it again."""
    corpus = Corpus.load(work, corpus_name)
    counts = vocabulary.load().counts
    return _Text(
        SegmentReader(work, corpus, vocabulary),
        corpus.n_tokens,
        keep_thresholds(counts, params.sample),
        find_objective(params.objective).prepare(params, counts),
    )


def train_replica(run: Run, work: Work, blocks: Sequence[Block], *rows: FloatArray) -> tuple[list[FloatArray], Totals]:
    """Task: train one replica from the model given by its blocks; return its blocks, and what was done."""
    params = run.params
    text = _text(run.work, run.corpus, run.vocabulary, params)
    tables: dict[str, list[FloatArray]] = {}
    for block, part in zip(blocks, rows, strict=True):
        tables.setdefault(block.table, []).append(part)
    replica = find_device(run.device)(find_objective(params.objective), params, text.prepared, tables, run.threads)
    words, pairs, loss = 0, 0, 0.0
    for epoch, start, stop, rate in work.pieces(text.length):
        key = stream(params.seed, Purpose.SUBSAMPLE, epoch)
        for a, b in cut(start, stop):
            segment, known = text.reader.read(a, b, params.window, text.keep, key)
            first, last = segment.centers(a, b)
            n, value = replica.train(segment, first, last, rate, epoch)
            words, pairs, loss = words + known, pairs + n, loss + value
    trained = [part for parts in replica.take().values() for part in parts]
    finite = all(bool(np.isfinite(np.vdot(part, part))) for part in trained)  # NaN, infinity, or soon to be
    return trained, Totals(words, pairs, loss, finite)
