"""The plan of a run: its decisions, memory and time, known before its first step."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from dask.utils import format_bytes
from distributed import Client

from daskw2v.collections.kinds import TextInputs
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.errors import InputError, counted
from daskw2v.training.estimates.memory import Estimate, estimate
from daskw2v.training.estimates.seconds import TERMS
from daskw2v.training.preparation.choice import (
    Candidate,
    choose,
    find_machines,
    is_open,
    list_candidates,
    make_candidate,
)
from daskw2v.training.preparation.planned import PlannedRun
from daskw2v.training.sizes import Text, Workers


@dataclass(frozen=True)
class WorkerPlan:
    """The memory that a run takes on workers of one kind.

    Parameters
    ----------
    workers
        The workers; `n` is the number of workers of all kinds.
    memory_limit
        Smallest memory limit of a worker of this kind, in bytes; infinity for none.
    memory
        The memory of each stage in one worker, and in the client.
    """

    columns: ClassVar[tuple[str, ...]] = ("stage", "memory", "made of")  # of `memory.rows`

    workers: Workers
    memory_limit: float
    memory: Estimate

    @property
    def fits(self) -> bool:
        """Whether each stage fits into the memory limit of a worker, and into the memory of its GPU, if it has one."""
        return all(stage.fits_into(self.workers) for stage in self.memory.stages)

    @property
    def verdict(self) -> str:
        """A sentence that says whether the run fits into the memory."""
        kind = f"a worker of {counted(self.workers.threads, 'thread')}"
        if not self.fits and self.memory.bytes <= self.memory_limit:
            needed, free = format_bytes(self.memory.gpu_bytes), format_bytes(int(self.workers.device_limit or 0))
            return f"{needed} does not fit into the {free} that are free on the GPU of {kind}"
        if math.isinf(self.memory_limit):
            return f"{kind} has no memory_limit"
        answer = "fits" if self.fits else "does not fit"
        limit = f"the memory_limit of {kind}, {format_bytes(int(self.memory_limit))}"
        return f"{format_bytes(self.memory.bytes)} {answer} into {limit} ({counted(self.workers.n, 'worker')} in all)"

    def as_dict(self) -> dict[str, Any]:
        """Return workers, stages and whether they fit as a dict of JSON types; a `memory_limit` of None is no limit."""
        return {
            "n": self.workers.n,
            "threads": self.workers.threads,
            "memory_limit": None if math.isinf(self.memory_limit) else int(self.memory_limit),
            "bytes": self.memory.bytes,
            "fits": self.fits,
            "stages": [{"name": s.name, "worker": dict(s.worker), "gpu": dict(s.gpu)} for s in self.memory.stages],
            "client": dict(self.memory.client),
            "notes": list(self.memory.notes),
        }


@dataclass(frozen=True)
class Plan:
    """The decisions of a run, and its memory and time. `daskw2v.plan` makes a plan; `train` carries it out.

    Parameters
    ----------
    inputs, resources
        As in `train`.
    params
        Settings that change the vectors; strategy, optimizer, learning rate and phrase threshold are filled in.
    sources
        The files of the text.
    text
        Sizes of the text: words, distinct words (`types`), words in the vocabulary; without `run`, estimated from the
        sizes of files.
    guessed
        The fields of `text` that are guesses: "types", "vocabulary", both, or none if they were counted or passed.
    workers
        Memory, for each kind of workers: workers with equal numbers of threads and devices.
    trainings
        Ways to train, among them the one of `params`, each with its forecast, if there is one, and whether it fits.
    why
        Why the strategy of `params`, or its settings, are chosen; None where nothing was left open.
    machines
        Number of machines that train; None if it is not known, as for an existing cluster.
    run
        Name of the run, the end of its version's name; None before the text is read.

    Examples
    --------
    >>> plan = daskw2v.plan("text.txt", strategy="averaging", n_replicas=2)
    >>> plan.params.strategy.n_replicas, plan.guessed
    (2, ('types', 'vocabulary'))
    >>> [kind.fits for kind in plan.workers]
    [True]
    """

    columns: ClassVar[tuple[str, ...]] = ("", "training", *TERMS, "seconds", "machine hours", "in memory")  # of `rows`

    inputs: TextInputs
    params: Params
    resources: Resources
    sources: tuple[Source, ...]
    text: Text
    guessed: tuple[str, ...]
    workers: tuple[WorkerPlan, ...]
    trainings: tuple[Candidate, ...]
    why: str | None
    machines: int | None
    run: str | None = None

    @property
    def chosen(self) -> Candidate:
        """The way to train that `train` takes."""
        return next(way for way in self.trainings if way.params == self.params)

    def check_sources(self, sources: Sequence[Source]) -> None:
        """Compare `sources`, the files of the text now, with the planned ones.

        Raises
        ------
        InputError
            If a file is new, gone or changed.
        """
        planned, current = ({s.url: (s.size, s.version) for s in files} for files in (self.sources, sources))
        changed = [url for url in {**planned, **current} if planned.get(url) != current.get(url)]
        if changed:
            raise InputError(
                f"{counted(len(changed), 'file')} of the text changed since the plan was made, such as {changed[0]}.",
                "Make another plan.",
            )

    def facts(self) -> dict[str, Any]:
        """Return the plan's facts for a manifest, as JSON types.

        They are the strategy with its settings and why, the forecast seconds, the number of workers, the fewest threads
        of one, and the bytes of the most loaded worker process.
        """
        forecast, kinds = self.chosen.forecast, self.workers
        return {
            "strategy": self.params.strategy.name,
            **self.params.strategy.flat(),
            "why": self.why,
            "seconds": None if forecast is None else forecast.total,
            "workers": max(kind.workers.n for kind in kinds),
            "threads": min(kind.workers.threads for kind in kinds),
            "memory": max(kind.memory.bytes for kind in kinds),
        }

    def machine_hours(self, seconds: float) -> float | None:
        """Return the machine hours of `seconds` seconds of training; None if the number of machines is not known."""
        return None if self.machines is None else seconds * self.machines / 3600

    def notes(self) -> Iterator[str]:
        """Yield sentences about the sizes of the text, and which of them are estimated."""
        source = "by the files' sizes" if self.run is None else f"counted; run {self.run}"
        yield f"{self.text.words:,} words, {source}"
        titles = {"types": "distinct words", "vocabulary": "words kept"}
        if self.guessed:
            numbers = " and ".join(f"{getattr(self.text, name):,} {titles[name]}" for name in self.guessed)
            yield (
                f"{numbers}: estimated by Heaps' law with the constants of English Wikipedia; other text may have "
                "several times as many: give --types and --words if you know them"
            )

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield a row for each way to train, with a text for each of `columns`; "*" marks the chosen way."""
        for way in self.trainings:
            mark, fits = "*" if way.params == self.params else "", "fits" if way.fits else "does not fit"
            if way.forecast is None:
                yield mark, str(way), *("" for _ in TERMS), "not known", "", fits
                continue
            hours = self.machine_hours(way.forecast.total)
            terms = (f"{way.forecast.seconds[term]:,.1f}" for term in TERMS)
            total = f"{way.forecast.total:,.1f}"
            yield mark, str(way), *terms, total, "" if hours is None else f"{hours:.3g}", fits

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as a dict of JSON types, without inputs, resources and sources."""
        return {
            "run": self.run,
            "params": self.params.as_dict(),
            "why": self.why,
            "text": asdict(self.text),
            "guessed": list(self.guessed),
            "workers": [kind.as_dict() for kind in self.workers],
            "machines": self.machines,
            "trainings": list(self._training_facts()),
        }

    def _training_facts(self) -> Iterator[dict[str, Any]]:
        """Yield the facts of each way to train, as JSON types."""
        for way in self.trainings:
            seconds = None if way.forecast is None else way.forecast.total
            yield {
                "strategy": way.params.strategy.name,
                **way.params.strategy.flat(),
                "chosen": way.params == self.params,
                "fits": way.fits,
                "seconds": seconds,
                "machine_hours": None if seconds is None else self.machine_hours(seconds),
                "terms": None if way.forecast is None else {term: way.forecast.seconds[term] for term in TERMS},
            }

    def __str__(self) -> str:
        lines: list[Iterable[str]] = []
        for kind in self.workers:
            lines += [kind.columns, *kind.memory.rows()]
            lines += [(note,) for note in (*self.notes(), *kind.memory.notes, kind.verdict)]
        return "\n".join("  ".join(filter(None, line)) for line in (*lines, self.columns, *self.rows()))


def plan_run(run: PlannedRun, client: Client) -> Plan:
    """Return the plan of a run whose text is read, on a cluster, with its own way to train alone; `inputs` is None."""
    kinds = find_machines(client, run.resources)
    way = make_candidate(run.params, run.resources, run.sizes, kinds)
    why = None if run.choice is None else run.choice["why"]
    memory = plan_memory(run.params, run.resources, run.sizes, kinds)
    described = run.params, run.resources, tuple(run.corpus.sources), run.sizes
    return Plan(None, *described, (), memory, (way,), why, machines=None, run=run.name)


def plan_memory(params: Params, resources: Resources, text: Text, kinds: Sequence[Workers]) -> tuple[WorkerPlan, ...]:
    """Return the memory that a run takes on each kind of workers."""
    return tuple(WorkerPlan(kind, kind.limit, estimate(params, resources, text, kind)) for kind in kinds)


def automatic_choice(metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the facts, with "strategy" and "why", of a model's metadata if any of them was chosen; else None."""
    plan = metadata.get("plan") or metadata.get("choice", {})  # earlier releases have "choice"
    return plan if plan.get("why") is not None else None


def alternatives(
    params: Params, resources: Resources, text: Text, kinds: Sequence[Workers]
) -> tuple[tuple[Candidate, ...], Params, str | None]:
    """Return the ways to train a text on these kinds of workers.

    Returns
    -------
    trainings, chosen, why
        The ways, the Params of the way that `train` takes, and why it is chosen; None where Params leave nothing open:
        their way is then the first. The ways of a named strategy are before the others.
    """
    ways = list_candidates(params, resources, text, kinds)
    best, why = choose(ways, kinds) if is_open(params) else (ways[0], None)
    if not params.strategy.is_open:
        compared = {way.params for way in ways}
        automatic = list_candidates(params.replace(strategy="auto"), resources, text, kinds)
        ways += (way for way in automatic if way.params not in compared)
    return tuple(ways), best.params, why
