"""The task that trains: one replica's work of one round, a pure function of the model's blocks and the text."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.cluster import this_worker
from daskw2v.devices import Piece, Threads, find_device, gpu_memory_watched
from daskw2v.objectives import find_objective
from daskw2v.objectives.base import FloatArray, Rate, is_finite
from daskw2v.params import Params
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.rng import Purpose, stream
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut, keep_thresholds
from daskw2v.shards.layout import Corpus
from daskw2v.shared import share
from daskw2v.storage import Store
from daskw2v.strategies.base import Clock, Totals
from daskw2v.strategies.blocks import Block
from daskw2v.strategies.schedule import Work
from daskw2v.vocabulary.count import StoredVocabulary


class _Text(NamedTuple):
    reader: SegmentReader
    length: int
    keep: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int64]
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
        counts,
        find_objective(params.objective).prepare(params, counts),
    )


@gpu_memory_watched()
def train_replica(
    run: Run, threads: Threads, work: Work, blocks: Sequence[Block], *rows: FloatArray
) -> tuple[list[FloatArray], Totals]:
    """Task: train one replica from the model given by its blocks; return its blocks, and what was done."""
    clock = Clock()
    params, objective = run.params, find_objective(run.params.objective)
    text = _text(run.work, run.corpus, run.vocabulary, params)
    tables: dict[str, list[FloatArray]] = {}
    for block, part in zip(blocks, rows, strict=True):
        tables.setdefault(block.table, []).append(part)
    of_device, words = find_device(run.device).replica, list[int]()
    replica = of_device(objective, params, text.prepared, partial(_touched, run), tables, threads)
    pairs, loss = replica.train(_loads(params, text, work, of_device.positions, words))
    trained = [share(part) for parts in replica.take().values() for part in parts]
    finite = all(map(is_finite, trained))
    return trained, Totals(pairs, loss, finite, sum(words), this_worker(), *clock.read())


@lru_cache(maxsize=2)
def _touched(run: Run) -> dict[str, npt.NDArray[np.float64]]:
    """Return how likely a window touches each row. Only a cache, as `_text` is."""
    text, of = _text(run.work, run.corpus, run.vocabulary, run.params), find_objective(run.params.objective).touched
    assert of is not None  # all objectives have it that train windows
    return of(text.prepared, text.counts)


def _loads(params: Params, text: _Text, work: Work, length: int, words: list[int]) -> Iterator[Callable[[], Piece]]:
    """Yield what loads each piece of the work, of some length, in order; loading one appends its corpus words."""
    for epoch, start, stop, rate in work.pieces(text.length):
        key = stream(params.seed, Purpose.SUBSAMPLE, epoch)
        for a, b in cut(start, stop, length):

            def load(a: int = a, b: int = b, key: np.uint64 = key, rate: Rate = rate, epoch: int = epoch) -> Piece:
                segment, known = text.reader.read(a, b, params.window, text.keep, key)
                words.append(known)
                return Piece(segment, *segment.centers(a, b), rate, epoch)

            yield load
