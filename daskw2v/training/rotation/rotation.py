"""Strategy `rotation`: partitions of the model are trained two by two, so no row is ever updated by two workers.

In a round each input partition is trained with one output partition, on the bucket of pairs that needs no other rows.
A pass trains all buckets of a stretch of text (`pass_schedule`). Input partitions stay on their workers, and output
partitions are sent around (paper 003 sends two vectors for each pair instead). The result of a bucket depends on its
two partitions and its pairs only. So any number of workers, alive or lost, gives the same bits, which are as good
as one worker's.

If the cluster's memory holds the model, partitions are sent from worker to worker. If not, they go through the
work directory (`pass_tasks`). Pairs are held by workers, too, or lie in files. The bits are the same.
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
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.run import Run
from daskw2v.sampling.skipgrams import BucketArguments, HeldPairs, SkipGrams, build_skipgrams, submit_pairs
from daskw2v.sampling.weights import partition_counts
from daskw2v.shards.layout import Corpus
from daskw2v.store.storage import Store
from daskw2v.training.devices.exercise import exercise_dealing, exercise_partitions
from daskw2v.training.loop.strategy import (
    ModelRows,
    RoundReport,
    Strategy,
    TableParts,
    check_rounds,
    in_background,
    up_to,
)
from daskw2v.training.rotation import pass_tasks
from daskw2v.training.rotation.bucket_task import (
    INPUT,
    OUTPUT,
    HeldPartition,
    PartitionOrigin,
    RotationContext,
    join_partitions,
    pick_partition,
    save_partitions,
)
from daskw2v.training.rotation.pass_schedule import RotationPass, RotationPasses
from daskw2v.training.rotation.pass_tasks import PassTasks, PassWork, TrainedStep
from daskw2v.training.rotation.settings import Rotation
from daskw2v.training.rotation.work import OUT_OF_CORE, Fits, RotationWork, passes_ahead, tried
from daskw2v.training.sizes.text import known_text
from daskw2v.training.sizes.workers import Workers
from daskw2v.training.start.blocks import rows_per_block
from daskw2v.vocabulary.partition import Partitions

_WRITTEN = 16 << 20  # bytes of rows that a task writes; more if one partition has more


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
    dealer
        Deals pairs into buckets.
    fits
        The parts of the run that the cluster's memory holds.
    """

    unit, trained, threads = "pass", "partition", 1

    def __init__(
        self, client: Client, folder: Store, length: int, context: RotationContext, dealer: BucketArguments, fits: Fits
    ) -> None:
        self._client, self._folder, self._length, self._context = client, folder, length, context
        self._dealer, self._fits, self._params = dealer, fits, context.run.params
        self._passes = RotationPasses(self._params, length)
        self._session = f"{folder.name}-{uuid.uuid4().hex[:8]}"  # keys of an earlier client's tasks must not be met
        self._tasks = PassTasks(client, context, PartitionOrigin())
        self._dealing: Future[SkipGrams] | None = None
        self._submitted = dict[int, Iterator[RoundReport]]()  # passes of the newest task that were not asked for
        # A task is submitted while the one before is trained, and none more
        self._ahead, self._size = passes_ahead(len(workers_known(client))), fits.together
        self.facts = dict[str, Any]()

    def __len__(self) -> int:
        return len(self._passes)

    @property
    def ahead(self) -> int:
        """Passes of two tasks, of the size of the one that was submitted last."""
        return self._ahead + self._size - 1

    def restore(self, number: int, checkpoint: Store | None, manifest: Mapping[str, Any]) -> None:
        """Read partitions from a checkpoint, or make them anew; delete files that only earlier passes needed."""
        if checkpoint is not None:
            check_rounds(checkpoint, manifest, len(self))
        self._tasks = PassTasks(self._client, self._context, PartitionOrigin(checkpoint), number)
        self._submitted.clear()
        (self._folder / pass_tasks.FOLDER).remove()
        _remove_trained(self._folder, [self._passes[n] for n in range(number, len(self))])

    def can_stop(self, number: int) -> bool:
        """Return whether there is a model before a pass: not where a task trains it together with the one before."""
        return number not in self._submitted

    def progress_after(self, number: int) -> int:
        """Return the progress after a pass."""
        this = self._passes[number]
        return this.epoch * self._length + this.stop

    def play(self, number: int, looked_at: Callable[[int], bool]) -> Iterator[RoundReport]:
        """Deal the pairs of a pass; return an iterator that trains them and yields a report for each step."""
        if number in self._submitted:
            return self._submitted.pop(number)
        if self._fits.pairs:
            return self._play_held(number, looked_at)
        this = self._passes[number]
        self._dealing = in_background(self._deal, this, self._dealing)
        return self._train_dealt(this, self._dealing)

    def _play_held(self, number: int, looked_at: Callable[[int], bool]) -> Iterator[RoundReport]:
        """Play a pass whose pairs workers hold; submit with it all passes of its task."""
        together = self._tasks.goes_as_one_task(number)
        numbers = up_to(looked_at, self._passes.together(number, self._fits.together)) if together else [number]
        self._size = len(numbers)
        works, key = [self._held(n) for n in numbers], f"{self._session}-{number}"
        steps = self._tasks.play_together(works, key) if together else [self._tasks.play(works[0], key)]
        reports = [self._reports(work, of_work, 0.0) for work, of_work in zip(works, steps, strict=True)]
        self._submitted = dict(zip(numbers, reports, strict=True))
        return self._submitted.pop(number)

    def _held(self, number: int) -> PassWork:
        """Submit the dealing of a pass to workers, which then hold its pairs."""
        this = self._passes[number]
        held = submit_pairs(self._client, self._dealer, this.stretch, f"{self._session}-{number}")
        return PassWork(this, self._passes.steps(number, held.n_slices), held)

    def _deal(self, this: RotationPass, before: "Future[SkipGrams] | None") -> SkipGrams:
        """Deal the pairs of a pass into files, once the pass before, which is trained first, is dealt."""
        if before is not None:
            wait([before])
        return build_skipgrams(self._client, self._dealer, _pairs_folder(self._folder, this), this.stretch)

    def _train_dealt(self, this: RotationPass, dealing: Future[SkipGrams]) -> Iterator[RoundReport]:
        """Wait for the files of a pass, and train it."""
        began = time.monotonic()
        grams = dealing.result()
        waited = time.monotonic() - began
        work = PassWork(this, self._passes.steps(this.number, grams.n_slices), grams)
        if self._fits.model:
            steps = self._tasks.play(work, f"{self._session}-{this.number}")
        else:
            steps = self._tasks.play_through_files(work, self._folder)
        yield from self._reports(work, steps, waited)

    def _reports(self, work: PassWork, steps: Iterator[TrainedStep], waited: float) -> Iterator[RoundReport]:
        """Yield a report for each step of a pass, whose files were waited for so many seconds."""
        this, grams = work.this, work.grams
        for number, step in enumerate(steps, 1):
            share = number / self._passes.n_steps
            progress = this.epoch * self._length + this.start + int((this.stop - this.start) * share)
            seconds = grams.deal_seconds / total_threads(self._client) if isinstance(grams, HeldPairs) else waited
            facts = {"deal_seconds": round(seconds, 4)}
            alpha, words = self._passes.alpha(this.number, share), int(grams.words * share)
            yield RoundReport(progress, alpha, step.totals, self._rows(step), words, facts, step.seconds)

    def _rows(self, step: TrainedStep) -> ModelRows | None:
        """Return both tables after a step, which go together on one worker if the cluster's memory holds the model."""
        if step.input is None or step.output is None:
            return None
        pick, join = partial(pick_partition, self._context), partial(join_partitions, self._context)
        return {
            table: TableParts(held, partial(pick, table), partial(join, table) if self._fits.model else None)
            for table, held in ((INPUT, step.input), (OUTPUT, step.output))
        }

    def save_checkpoint(self, checkpoint: Store) -> dict[str, Any]:
        """Write all partitions."""
        self.save_model(checkpoint)
        return {"rounds": len(self)}

    def save_model(self, model: Store) -> None:
        """Write all partitions, each by the worker that holds it."""
        vocabulary, width = self._context.run.vocabulary, self._params.vector_size
        tables, n = {INPUT: self._tasks.input, OUTPUT: self._tasks.output}, self._context.partitions.n
        create_model(model, dict.fromkeys(tables, (vocabulary.size, width)), rows_per_block(width), n)
        submit, key = self._client.submit, f"save-{uuid.uuid4().hex}"
        most = max(1, _WRITTEN * n // (4 * vocabulary.size * width))
        writes = [
            submit(save_partitions, model, name, held, self._context, key=f"{key}-{name}-{min(held)}", retries=2)
            for name, partitions in tables.items()
            for held in _written_together(partitions, most)
        ]
        finish_tables(model, [*chain.from_iterable(gather(self._client, writes, "Writing the model"))])


def _written_together(partitions: Sequence[HeldPartition], most: int) -> Iterator[dict[int, HeldPartition]]:
    """Yield the partitions that a task writes: so many at most, which one result holds."""
    together: dict[int, HeldPartition] = {}
    for k, held in enumerate(partitions):
        if together and (len(together) == most or held is not partitions[k - 1]):
            yield together
            together = {}
        together[k] = held
    yield together


def _start(
    client: Client, run: Run, place: Store, length: int, resources: Resources, listener: Listener
) -> RotationRun:
    """Start a run; raises a ParameterError if there are more partitions than words."""
    params, n = run.params, Rotation.of(run.params).n_partitions
    partitions = Partitions(run.vocabulary.size, n)
    counts = partition_counts(client, run.vocabulary, partitions, params.flat().get("ns_exponent"), place / "weights")
    await_worker(client)  # the memory is that of the workers
    text = known_text(Corpus.load(run.work, run.corpus), run.vocabulary, params)
    workers = Workers(len(workers_known(client)), total_threads(client), usable_memory(client))
    fits = RotationWork(params, resources, text, workers).fits
    for message in _advice(client, n, RotationPasses(params, length).n_steps, fits=fits.model):
        listener(Progress("train", 0, 0, "", message=message))
    context = RotationContext(run, partitions, counts, resources.device)
    dealer = BucketArguments(run, partitions, RotationPasses(params, length).n_steps, counts.weights)
    return RotationRun(client, place, length, context, dealer, fits)


def _advice(client: Client, n: int, n_groups: int, *, fits: bool) -> Iterator[str]:
    """Yield advice to the user before a run."""
    threads, workers = total_threads(client), len(workers_known(client))
    if threads > n:
        yield f"{n} of {threads} threads have work: n_partitions={n} are trained at a time"
    if workers > n_groups:
        yield (
            f"{n_groups} of {workers} workers have work: a group of partitions is trained by one, and there are "
            f"{n_groups} (n_groups)"
        )
    if not fits:
        yield OUT_OF_CORE


def _pairs_folder(folder: Store, this: RotationPass) -> Store:
    return folder / "pairs" / f"{this.epoch}-{this.start}-{this.stop}"


def _remove_trained(folder: Store, coming: Sequence[RotationPass]) -> None:
    """Delete the pairs that no coming pass reads."""
    needed = {_pairs_folder(folder, this).name for this in coming}
    for name in (folder / "pairs").children():
        if name not in needed:
            (folder / "pairs" / name).remove()


def _lighter(params: Params) -> Mapping[str, Any]:
    return {"n_partitions": 2 * Rotation.of(params).n_partitions, "n_groups": None}


def _describe_run(params: Mapping[str, Any], rounds: int) -> Iterator[str]:
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
    exercise_text=exercise_dealing,
    tried=tried,
    lighter=_lighter,
    describe_run=_describe_run,
    deterministic=True,
    honours=("max_in_flight",),
)
