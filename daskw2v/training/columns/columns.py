"""Strategy `columns`: each worker owns rows of both tables and updates only these.

In a step all words train the same `gather_every` columns of the word-context matrix: first the input rows, with the
output rows fixed, then the output rows. A row depends on no other row of its table, so nothing has to be merged, and
any number of workers gives the same bits. Between the two phases, each worker gathers the updated rows of the others.
Li et al. (2019) sum gradients instead.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from distributed import Client, Future

from daskw2v.cluster.waiting import gather
from daskw2v.config.resources import Resources
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.context_matrix import ContextMatrix, build_matrix
from daskw2v.sampling.run import Run
from daskw2v.sampling.settings import SampledContexts
from daskw2v.store.storage import Store
from daskw2v.training.columns.losses import WordLosses
from daskw2v.training.columns.model import ColumnsModel, join_centered
from daskw2v.training.columns.parts import (
    INPUT,
    OUTPUT,
    ColumnsCluster,
    TableOrigin,
    assign_words,
    pick_rows,
    unit_size,
)
from daskw2v.training.columns.settings import Columns
from daskw2v.training.columns.step_schedule import ColumnRound, ColumnRounds
from daskw2v.training.columns.work import ColumnsWork
from daskw2v.training.loop import checkpoint
from daskw2v.training.loop.strategy import ModelRows, RoundReport, Strategy, TableParts
from daskw2v.training.start.blocks import join_blocks


class ColumnsRun:
    """A run of the strategy, a `strategy.StrategyRun`: it holds the rows of all parts.

    Parameters
    ----------
    cluster
        The cluster that tasks are submitted to, and the workers of the parts.
    total
        Corpus positions over all epochs.
    matrix
        The word-context matrix.
    losses
        Keeps each word's loss, where Resources ask for it.
    """

    unit, trained, ahead = "round", "part", 2  # the next round begins while this client waits for the one before

    def __init__(self, cluster: ColumnsCluster, total: int, matrix: ContextMatrix, losses: WordLosses | None) -> None:
        self._cluster, self._total, self._matrix, self._losses = cluster, total, matrix, losses
        self._run = cluster.context.run
        self._rounds = ColumnRounds(self._run.params)
        self._model = ColumnsModel.from_origin(TableOrigin(), cluster)
        self.threads = max(worker.threads for worker in cluster.workers)
        names = ("name", "pairs", "text_words", "seconds")
        self.facts = {"matrix": {name: getattr(matrix, name) for name in names}}

    def __len__(self) -> int:
        return len(self._rounds)

    def restore(self, number: int, checkpoint: Store | None, manifest: Mapping[str, Any]) -> None:
        """Locate rows and moments in a checkpoint, or at the initial rows without one."""
        self._model = ColumnsModel.from_origin(TableOrigin(checkpoint), self._cluster)

    def can_stop(self, number: int) -> bool:
        """Return True: the model can be written before the round of any number."""
        return True

    def progress_after(self, number: int) -> int:
        """Return the corpus positions trained after the round of this number, over all epochs."""
        return self._total * self._rounds[number].end // self._rounds.total

    def play(self, number: int, needs_rows: Callable[[int], bool]) -> Iterator[RoundReport]:
        """Submit the round of this number; return an iterator that waits for its report."""
        futures = self._model.submit_round(self._rounds[number], self._losses)
        return self._wait(self._rounds[number], futures, self._rows())

    def _wait(self, current: ColumnRound, futures: list[Future], rows: ModelRows) -> Iterator[RoundReport]:
        """Wait for a round, from the futures of its totals; yield its report with the rows after it."""
        totals = gather(self._cluster.client, futures, f"Round {current.number}", self._cluster.trainers.task_resources)
        words = self._matrix.text_words * len(current) // SampledContexts.of(self._run.params).context_size
        yield RoundReport(self.progress_after(current.number), current.steps[-1].alpha, totals, rows, words)

    def _rows(self) -> ModelRows:
        """Return both tables in parts; joined, the input rows have their mean subtracted if Params say so."""
        unit, pick = unit_size(self._run.vocabulary.size), partial(pick_rows, self._cluster.context)
        centered = partial(join_centered, unit) if Columns.of(self._run.params).centered else join_blocks
        joins = {INPUT: centered, OUTPUT: join_blocks}
        held = self._model.rows
        return {table: TableParts([*held[table]], partial(pick, table), join) for table, join in joins.items()}

    def save_checkpoint(self, checkpoint: Store) -> dict[str, Any]:
        """Write rows and moments to a checkpoint; no value needs to be in the manifest."""
        if self._losses is not None:
            self._losses.finish()
        self._model.save(checkpoint, moments=True)
        return {}

    def save_model(self, model: Store) -> None:
        """Write the rows to a model, the input rows centered if Params say so; and the losses, if they were kept."""
        trained = self._model.centered() if Columns.of(self._run.params).centered else self._model
        trained.save(model)
        if self._losses is not None:
            self._losses.publish(model)


def _start(
    client: Client, run: Run, folder: Store, length: int, resources: Resources, listener: Listener
) -> ColumnsRun:
    """Start or resume a run, as `StartRun` says; build its word-context matrix if the store has none."""
    matrix = build_matrix(client, run, listener)
    cluster = assign_words(client, run, matrix, resources, f"{folder.name}-{uuid.uuid4().hex[:8]}")
    losses = None
    if resources.word_losses:
        losses = WordLosses(client, folder, ColumnRounds(run.params), run.vocabulary.size, cluster.session)
        newest = checkpoint.find_newest(folder)
        if newest is not None and not losses.has_rounds(int(newest[1]["next_round"])):
            message = "the checkpoint has no losses of the rounds before it: training starts again"
            listener(Progress("train", 0, 0, "", message=message))
            checkpoint.remove_all(folder)
    return ColumnsRun(cluster, length * run.params.epochs, matrix, losses)


COLUMNS = Strategy(
    name="columns",
    settings=Columns,
    title="each worker trains rows of its own on the word-context matrix",
    find_kernel=lambda objective, device: device.row_trainer.find_kernel(objective),
    start=_start,
    work=ColumnsWork,
    deterministic=True,
    honours=("word_losses",),
)
