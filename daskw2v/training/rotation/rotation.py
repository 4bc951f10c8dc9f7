"""Strategy `rotation`: partitions of the model are trained two by two, so no row is updated by two workers at a time.

A partition has the rows of a share of the words (`vocabulary.partition`), and a group is a few partitions that stay
together. In a round each input partition is trained with one output partition, on the bucket of pairs that needs no
other rows. A pass trains all buckets of a stretch of text (`pass_schedule`). Input partitions stay on their workers,
and output partitions are sent around (Stergiou et al. 2017 send two vectors for each pair instead). The result of a
bucket depends on its two partitions and its pairs only. So any number of workers, alive or lost, gives the bits that
one worker gives.

If the cluster's memory holds the model, partitions are sent from worker to worker. If not, they go through the
work directory (`pass_tasks`). Pairs, too, are held by workers or lie in files. The bits are the same.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from itertools import chain
from typing import Any

from distributed import Client

from daskw2v.cluster.waiting import await_worker, gather
from daskw2v.cluster.workers import total_threads, usable_memory, workers_known
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import counted
from daskw2v.models.stored.store import finish_tables
from daskw2v.models.stored.tables import create_model
from daskw2v.objectives.base import INPUT, OUTPUT
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.run import Run
from daskw2v.sampling.skipgrams import BucketArguments, HeldPairs, SkipGrams, build_skipgrams, submit_pairs
from daskw2v.sampling.weights import partition_counts
from daskw2v.shards.layout import Corpus
from daskw2v.store.storage import Store
from daskw2v.training.devices.exercise import exercise_distribution, exercise_partitions
from daskw2v.training.loop.strategy import (
    ModelRows,
    RoundReport,
    Strategy,
    TableParts,
    check_rounds,
    run_in_background,
    until_needed,
)
from daskw2v.training.rotation import bucket_task, pass_tasks
from daskw2v.training.rotation.bucket_task import HeldPartition, PartitionOrigin, RotationContext
from daskw2v.training.rotation.pass_schedule import RotationPass, RotationPasses
from daskw2v.training.rotation.pass_tasks import PassTasks, PassWork, TrainedStep
from daskw2v.training.rotation.settings import Rotation
from daskw2v.training.rotation.work import OUT_OF_CORE, Fits, RotationWork, candidate_settings, passes_ahead
from daskw2v.training.sizes import Workers, known_text
from daskw2v.training.start.blocks import rows_per_block
from daskw2v.vocabulary.partition import Partitions

_WRITE_BYTES = 16 << 20  # bytes of rows that a task writes; more if one partition has more


class RotationRun:
    """A run of the strategy, a `strategy.StrategyRun`: it holds the partitions of both tables.

    Parameters
    ----------
    client, length
        As in `strategy.StartRun`.
    folder
        The run's folder.
    context
        The arguments that its tasks share.
    distributor
        The arguments of the tasks that distribute pairs to buckets.
    fits
        Which data of the run the cluster's memory holds.
    """

    unit, trained, threads = "pass", "partition", 1

    def __init__(
        self,
        client: Client,
        folder: Store,
        length: int,
        context: RotationContext,
        distributor: BucketArguments,
        fits: Fits,
    ) -> None:
        self._client, self._folder, self._length, self._context = client, folder, length, context
        self._distributor, self._fits, self._params = distributor, fits, context.run.params
        self._passes = RotationPasses(self._params, length)
        self._session = f"{folder.name}-{uuid.uuid4().hex[:8]}"  # unlike the keys of an earlier client's tasks
        self._tasks = PassTasks(client, context, PartitionOrigin())
        self._distribution: Future[SkipGrams] | None = None  # of the pass that was played last
        self._submitted = dict[int, Iterator[RoundReport]]()  # reports of submitted passes that are not played yet
        # One task is submitted while the task before it is trained
        self._n_ahead, self._n_together = passes_ahead(len(workers_known(client))), fits.passes_of_task
        self.facts = dict[str, Any]()

    def __len__(self) -> int:
        return len(self._passes)

    @property
    def ahead(self) -> int:
        """Number of passes that may be under way: the last task's, and one more, or two more with several workers."""
        return self._n_ahead + self._n_together - 1

    def restore(self, number: int, checkpoint: Store | None, manifest: Mapping[str, Any]) -> None:
        """Locate all partitions in a checkpoint, or at the initial rows; delete files that only earlier passes need.

        Raises a DamageError if the checkpoint is of a run with another number of passes.
        """
        if checkpoint is not None:
            check_rounds(checkpoint, manifest, len(self))
        self._tasks = PassTasks(self._client, self._context, PartitionOrigin(checkpoint), number)
        self._submitted.clear()
        (self._folder / pass_tasks.FOLDER).remove()
        _remove_pairs(self._folder, [self._passes[n] for n in range(number, len(self))])

    def can_stop(self, number: int) -> bool:
        """Return whether a model exists before the pass of this number: not where a task trains the one before, too."""
        return number not in self._submitted

    def progress_after(self, number: int) -> int:
        """Return the corpus positions trained after the pass of this number, over all epochs."""
        current = self._passes[number]
        return current.epoch * self._length + current.stop

    def play(self, number: int, needs_rows: Callable[[int], bool]) -> Iterator[RoundReport]:
        """Begin to distribute the pairs of a pass to buckets; return an iterator over a report of each trained step.

        Passes that one task trains are submitted together.
        """
        if number in self._submitted:
            return self._submitted.pop(number)
        if self._fits.pairs:
            return self._play_held(number, needs_rows)
        current = self._passes[number]
        self._distribution = run_in_background(self._distribute, current, self._distribution)
        return self._train_from_files(current, self._distribution)

    def _play_held(self, number: int, needs_rows: Callable[[int], bool]) -> Iterator[RoundReport]:
        """Play a pass, and submit all passes of its task, whose pairs workers hold in memory."""
        together = self._tasks.can_be_one_task(number)
        numbers = range(number, number + 1)
        if together:
            numbers = until_needed(needs_rows, self._passes.passes_of_task(number, self._fits.passes_of_task))
        self._n_together = len(numbers)
        works, key = [self._hold_pairs(n) for n in numbers], f"{self._session}-{number}"
        if together:
            steps = self._tasks.play_together(works, key, needed=needs_rows(numbers[-1]))
        else:
            steps = [self._tasks.play(works[0], key)]
        reports = [self._reports(work, its_steps, 0.0) for work, its_steps in zip(works, steps, strict=True)]
        self._submitted = dict(zip(numbers, reports, strict=True))
        return self._submitted.pop(number)

    def _hold_pairs(self, number: int) -> PassWork:
        """Submit the tasks that distribute the pairs of a pass and hold them; return the work of the pass."""
        current = self._passes[number]
        held = submit_pairs(self._client, self._distributor, current.stretch, f"{self._session}-{number}")
        return PassWork(current, self._passes.steps(number, held.n_slices), held)

    def _distribute(self, current: RotationPass, before: "Future[SkipGrams] | None") -> SkipGrams:
        """Distribute the pairs of a pass to files, after the pairs of the previous pass, which is trained first."""
        if before is not None:
            wait([before])
        folder = _pairs_folder(self._folder, current)
        return build_skipgrams(self._client, self._distributor, folder, current.stretch)

    def _train_from_files(self, current: RotationPass, distribution: Future[SkipGrams]) -> Iterator[RoundReport]:
        """Wait for the files of pairs of a pass, train the pass, and yield a report for each step."""
        began = time.monotonic()
        grams = distribution.result()
        waited = time.monotonic() - began
        work = PassWork(current, self._passes.steps(current.number, grams.n_slices), grams)
        if self._fits.model:
            steps = self._tasks.play(work, f"{self._session}-{current.number}")
        else:
            steps = self._tasks.play_through_files(work, self._folder, f"{self._session}-{current.number}")
        yield from self._reports(work, steps, waited)

    def _reports(self, work: PassWork, steps: Iterator[TrainedStep], waited: float) -> Iterator[RoundReport]:
        """Yield a report for each trained step of a pass; `waited` are the seconds of waiting for its pairs' files."""
        current, grams = work.current, work.grams
        for number, step in enumerate(steps, 1):
            share = number / self._passes.n_steps
            progress = current.epoch * self._length + current.start + int((current.stop - current.start) * share)
            seconds = grams.deal_seconds / total_threads(self._client) if isinstance(grams, HeldPairs) else waited
            facts = {"deal_seconds": round(seconds, 4)}
            alpha, words = self._passes.alpha(current.number, share), int(grams.words * share)
            yield RoundReport(progress, alpha, step.totals, self._rows(step), words, facts, step.seconds)

    def _rows(self, step: TrainedStep) -> ModelRows | None:
        """Return both tables after a step, or after its pass where one task trains all of it, in parts.

        The parts cannot be joined (`join` is None) if the cluster's memory does not hold the model. The result is None
        for a step of a pass whose task also trains later passes, or whose rows only the next task needs.
        """
        if step.input is None or step.output is None:
            return None
        pick = partial(bucket_task.pick_partition, self._context)
        join = partial(bucket_task.join_partitions, self._context)
        return {
            table: TableParts(held, partial(pick, table), partial(join, table) if self._fits.model else None)
            for table, held in ((INPUT, step.input), (OUTPUT, step.output))
        }

    def save_checkpoint(self, checkpoint: Store) -> dict[str, Any]:
        """Write all partitions; return the number of passes, for the manifest."""
        self.save_model(checkpoint)
        return {"rounds": len(self)}

    def save_model(self, model: Store) -> None:
        """Write all partitions to a model's folder, each on the worker that holds it."""
        vocabulary, width = self._context.run.vocabulary, self._params.vector_size
        tables, n = {INPUT: self._tasks.input, OUTPUT: self._tasks.output}, self._context.partitions.n
        create_model(model, dict.fromkeys(tables, (vocabulary.size, width)), rows_per_block(width), n)
        max_partitions = max(1, _WRITE_BYTES * n // (4 * vocabulary.size * width))
        save, key = partial(self._client.submit, bucket_task.save_partitions, model, retries=2), uuid.uuid4().hex
        writes = [
            save(table, held, self._context, key=f"save-{key}-{table}-{min(held)}")
            for table, partitions in tables.items()
            for held in _group_by_holder(partitions, max_partitions)
        ]
        finish_tables(model, [*chain.from_iterable(gather(self._client, writes, "Writing the model"))])


def _group_by_holder(partitions: Sequence[HeldPartition], max_partitions: int) -> Iterator[dict[int, HeldPartition]]:
    """Yield groups of consecutive partitions with the same holder, of `max_partitions` at most, for a task to write."""
    group: dict[int, HeldPartition] = {}
    for k, held in enumerate(partitions):
        if group and (len(group) == max_partitions or held is not partitions[k - 1]):
            yield group
            group = {}
        group[k] = held
    yield group


def _start(
    client: Client, run: Run, folder: Store, length: int, resources: Resources, listener: Listener
) -> RotationRun:
    """Prepare a run, which `restore` starts or resumes; arguments as in `StartRun`.

    Raises a ParameterError if there are more partitions than words.
    """
    params, n = run.params, Rotation.of(run.params).partitions
    partitions = Partitions(run.vocabulary.size, n, Rotation.of(params).copied_words or 0)
    counts = partition_counts(client, run.vocabulary, partitions, params.flat().get("ns_exponent"), folder / "weights")
    await_worker(client)  # the memory is known when there are workers
    text = known_text(Corpus.load(run.work, run.corpus), run.vocabulary, params)
    workers = Workers(len(workers_known(client)), total_threads(client), usable_memory(client))
    fits = RotationWork(params, resources, text, workers).fits
    for message in _advice(client, n, RotationPasses(params, length).n_steps, fits=fits.model):
        listener(Progress("train", 0, 0, "", message=message))
    context = RotationContext(run, partitions, counts, resources.device)
    distributor = BucketArguments(run, partitions, RotationPasses(params, length).n_steps, counts.weights)
    return RotationRun(client, folder, length, context, distributor, fits)


def _advice(client: Client, n_partitions: int, n_groups: int, *, fits: bool) -> Iterator[str]:
    """Yield advice to the user before a run; `fits` says whether the cluster's memory holds the model."""
    threads, workers = total_threads(client), len(workers_known(client))
    if threads > n_partitions:
        yield f"{n_partitions} of {threads} threads have work: n_partitions={n_partitions} are trained at a time"
    if workers > n_groups:
        group = f"a group of partitions is trained by one, and there are {n_groups} (n_groups)"
        yield f"{n_groups} of {workers} workers have work: {group}"
    if not fits:
        yield OUT_OF_CORE


def _pairs_folder(folder: Store, current: RotationPass) -> Store:
    """Return the folder, in the run's folder, with the pairs of a pass."""
    return folder / "pairs" / f"{current.epoch}-{current.start}-{current.stop}"


def _remove_pairs(folder: Store, coming: Sequence[RotationPass]) -> None:
    """Delete all files of pairs below the run's folder, except the files of the coming passes."""
    needed = {_pairs_folder(folder, each).name for each in coming}
    for name in (folder / "pairs").children():
        if name not in needed:
            (folder / "pairs" / name).remove()


def _lighter(params: Params) -> Mapping[str, Any]:
    """Return settings with twice as many partitions, of which each needs half the memory."""
    return {"n_partitions": 2 * Rotation.of(params).partitions, "n_groups": None}


def _describe_run(params: Mapping[str, Any], rounds: int) -> Iterator[str]:
    """Yield the number of partitions, and the number of passes, as text."""
    if "n_partitions" in params:
        yield counted(params["n_partitions"], "partition")
    if rounds:
        yield f"{rounds:,} {'pass' if rounds == 1 else 'passes'}"


ROTATION = Strategy(
    name="rotation",
    settings=Rotation,
    title="partitions of both tables are trained two by two",
    find_kernel=lambda objective, device: device.partition_trainer.find_kernel(objective),
    start=_start,
    work=RotationWork,
    exercise=exercise_partitions,
    exercise_text=exercise_distribution,
    tried=candidate_settings,
    lighter=_lighter,
    describe_run=_describe_run,
    deterministic=True,
    honours=("max_in_flight",),
)
