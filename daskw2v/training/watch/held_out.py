"""Held-out text: positions that are never trained on, whose loss shows whether the model still learns.

Positions are drawn: a piece of each stretch of the text, at a random offset. So they are the same on any cluster.
Where `retrain` starts from a base, new text alone is held out, as the base was trained on the old text. The trained
text is an excerpt of the corpus, in which a new sentence begins where text was held out: no window reaches across. The
words of held-out text are counted, too.

The loss is computed by the objective's own kernel, run on a processor at learning rate 0 with one thread, always with
the same windows and negatives, over a sample of the held-out text. A task gets only the rows that these reach.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future

from daskw2v.cluster.waiting import wait_for_all
from daskw2v.config.params import Params
from daskw2v.errors import ParameterError
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.base import Rate
from daskw2v.objectives.registry import find_objective
from daskw2v.objectives.settings import TrainsPrefixes
from daskw2v.sampling.excerpt import Range, complement_ranges, draw_pieces, make_excerpt
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut_range
from daskw2v.shards.layout import Corpus
from daskw2v.store.storage import Store
from daskw2v.training.devices import SomeRows, Threads, find_device, read_piece
from daskw2v.training.devices.settings import CPU
from daskw2v.training.loop.strategy import ModelRows
from daskw2v.training.start.initial_rows import get_prepared
from daskw2v.training.watch.measurements import HistoryEntry, Measurements
from daskw2v.training.watch.stopping_settings import HELD_OUT_LOSS
from daskw2v.types import Float32Array, Int64Array

_MIN_STRETCH, _MAX_PIECES = 1 << 16, 1024  # positions of a stretch; pieces of long text
_MAX_SAMPLE = 1 << 17  # positions: one worker holds the rows that the sample reaches
_DEVICE = "cpu"


class SplitText(NamedTuple):
    """The trained text of a corpus, and the sample of its held-out text; None where no text is held out."""

    trained: Corpus
    held_out: Corpus | None

    def save(self, work: Store) -> None:
        """Write the manifests of both texts to a work directory; none where no text is held out."""
        if self.held_out is not None:
            self.trained.save(work)
            self.held_out.save(work)


def split_text(corpus: Corpus, params: Params, new: Sequence[Range] | None = None) -> SplitText:
    """Return the trained text, and a sample of the held-out text, of a corpus.

    The share `held_out` of the corpus is held out; of its `new` ranges of positions where `new` is not None, as the
    base was trained on the rest.
    """
    if not params.held_out:
        return SplitText(corpus, None)
    ranges = [(0, corpus.n_tokens)] if new is None else new
    length = max(_MIN_STRETCH, -(-sum(stop - start for start, stop in ranges) // _MAX_PIECES))
    pieces = draw_pieces(ranges, params.held_out, length, stream(params.seed, Purpose.HELD_OUT))
    return SplitText(
        make_excerpt(corpus, complement_ranges(pieces, corpus.n_tokens)), make_excerpt(corpus, _sample_pieces(pieces))
    )


def _sample_pieces(pieces: Sequence[Range]) -> list[Range]:
    """Return the same share of each piece, from its start on, so that all have at most _MAX_SAMPLE positions."""
    share = min(1.0, _MAX_SAMPLE / max(1, sum(stop - start for start, stop in pieces)))
    return [(start, start + int((stop - start) * share)) for start, stop in pieces]


def check_held_out(params: Params) -> None:
    """Raise a ParameterError if the loss on held-out text cannot be measured, or the text cannot be held out."""
    if not params.held_out:
        return
    objective = find_objective(params.objective.name)
    if objective.measured_by is None and _DEVICE not in objective.trainers:
        raise ParameterError(
            f"held_out={params.held_out}: objective={params.objective.name!r} has no kernel for text on a "
            "processor, which would measure the loss.",
            "Leave held_out out.",
        )
    base = params.flat().get("base_matrix")
    if base is not None:
        raise ParameterError(
            f"held_out={params.held_out} with base_matrix={base!r}: the matrix holds pairs of all the "
            "text that it was made of.",
            "Leave one of the two out.",
        )


class HeldOutText:
    """Measures the loss on the held-out text of a run.

    Parameters
    ----------
    client
        The cluster.
    run
        The run, whose objective computes the loss.
    sample
        The sample of the held-out text.
    """

    def __init__(self, client: Client, run: Run, sample: Corpus) -> None:
        measured = find_objective(run.params.objective.name).measured_by
        params = run.params if measured is None else run.params.replace(objective=measured.name)
        if isinstance(params.objective, TrainsPrefixes):
            params = params.replace(prefix_sizes=())  # the loss of complete vectors
        self._client, self._session = client, uuid.uuid4().hex[:8]
        self._run = replace(run, corpus=sample.name, params=params, device=_DEVICE, base=None, features=None)
        self._reached: Future | None = None

    def measure(self, entry: HistoryEntry, rows: ModelRows | None, measurements: Measurements) -> None:
        """Submit the measurement of the loss after a round; the result is added to the history's entry of the round.

        `rows` are the tables after the round; None where the strategy has none.
        """
        if rows is None:
            measurements.report(f"round {entry['round']}: no loss on held-out text, as the strategy gives no rows")
            return
        submit, key = self._client.submit, f"{self._session}-{entry['round']}"
        if self._reached is None:
            self._reached = submit(_find_reached, self._run, key=f"held-out-{self._session}", retries=2)
        picked = {
            table: [
                submit(_pick_rows, parts.pick, part, n, self._reached, table, key=f"pick-{key}-{table}-{n}", priority=1)
                for n, part in enumerate(parts.parts)
            ]
            for table, parts in rows.items()
        }
        if any(parts.join is None for parts in rows.values()):  # files, which the next round replaces
            wait_for_all(self._client, [future for futures in picked.values() for future in futures])
        future = submit(_measure_loss, self._run, self._reached, picked, key=f"held-out-loss-{key}", retries=1)
        measurements.add(future, entry, HELD_OUT_LOSS, "The loss on held-out text", _describe)


def _describe(loss: float | None) -> str:
    """Return the loss on held-out text as a message."""
    return f"loss on held-out text {'undefined, as it has no pair' if loss is None else f'{loss:.4f}'}"


def _pieces(run: Run) -> Iterator[partial[Any]]:
    """Yield, for each piece of the sample, a function without arguments that returns its `TextPiece`."""
    positions = find_device(_DEVICE).replica_trainer.positions
    for start, stop in cut_range(0, Corpus.load(run.work, run.corpus).n_tokens, positions):
        yield partial(read_piece, run, 0, start, stop, Rate(0.0, 0.0, 0))


def _table_lengths(run: Run) -> dict[str, int]:
    """Return the number of rows of each table."""
    return find_objective(run.params.objective.name).tables(run.params, run.vocabulary.size)


def _find_reached(run: Run) -> dict[str, Int64Array]:
    """Task: return the indices of the rows that measuring may read, by table, ascending."""
    reached = find_objective(run.params.objective.name).reached
    marks = {table: np.full(rows, reached is None) for table, rows in _table_lengths(run).items()}
    if reached is not None:
        for read in _pieces(run):
            piece = read()
            reached(get_prepared(run), piece.segment, piece.first, piece.last, piece.epoch, marks)
    return {table: np.flatnonzero(marked) for table, marked in marks.items()}


def _pick_rows(
    pick: Any, part: Any, number: int, reached: Mapping[str, Int64Array], table: str
) -> tuple[Int64Array, Float32Array]:
    """Task: return the reached rows of a part of a table, by its number and `pick`, as `TableParts.pick` does."""
    indices, rows = pick(part, number, reached[table])
    return indices, np.ascontiguousarray(rows)


def _measure_loss(
    run: Run, reached: Mapping[str, Int64Array], picked: Mapping[str, Sequence[tuple[Int64Array, Float32Array]]]
) -> float | None:
    """Task: return the mean loss of a pair of the sample; None if the sample has no pair.

    Parameters
    ----------
    run
        The run.
    reached
        Indices of the rows of each table that the sample reaches.
    picked
        By table, the results of `_pick_rows` for all parts.
    """
    tables = dict[str, list[SomeRows]]()
    for table, length in _table_lengths(run).items():
        values = np.empty((len(reached[table]), run.params.vector_size), np.float32)
        for indices, rows in picked[table]:
            values[indices] = rows
        tables[table] = [SomeRows(length, reached[table].astype(np.int32), values)]
    objective = find_objective(run.params.objective.name)
    work = objective, run.params, get_prepared(run), dict, tables, Threads(1, CPU())
    trainer = find_device(_DEVICE).replica_trainer(*work)
    totals = trainer.train(_pieces(run))
    return totals.loss / totals.examples if totals.examples else None
