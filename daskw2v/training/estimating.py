"""What a run would take, from the sizes of its files: memory of each stage, and time by each strategy."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from dask.system import CPU_COUNT
from dask.utils import format_bytes
from distributed import Client

from daskw2v.cluster import connected, starts_cluster
from daskw2v.cluster.console import listening
from daskw2v.config.arguments import check_arguments
from daskw2v.config.params import AUTO, Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import integer
from daskw2v.corpus.formats import check_formats
from daskw2v.corpus.inputs import Inputs
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import ParameterError, counted
from daskw2v.objectives.registry import check_options
from daskw2v.phrases.score import check_phrases
from daskw2v.progress import Listener, Watching
from daskw2v.training.choice import Candidate, Machines, candidate_of, candidates, choose_in, hardware_of, machines_of
from daskw2v.training.features import with_feature_table
from daskw2v.training.markets import with_market_table
from daskw2v.training.memory import stages
from daskw2v.training.memory.base import Estimate, Workers
from daskw2v.training.memory.text import Text, guess_text
from daskw2v.training.memory.workers import local_workers
from daskw2v.training.strategies import check_strategy

_TERMS = ("text", "store", "train", "copies", "handling", "travel", "waiting", "tasks")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])(?:bps|bit/s)", re.IGNORECASE)
_COUNT = integer(1)


@dataclass(frozen=True)
class WorkerEstimate:
    """The memory that a run takes of workers of one kind.

    Parameters
    ----------
    workers
        The workers.
    memory_limit
        Bytes that each may take, the least among them; infinity for none.
    memory
        What each stage takes of one, and of the client.
    """

    columns: ClassVar[tuple[str, ...]] = ("stage", "memory", "made of")  # of `memory.rows`

    workers: Workers
    memory_limit: float
    memory: Estimate

    @property
    def fits(self) -> bool:
        """Whether each stage fits into the limit."""
        return self.memory.bytes <= self.memory_limit

    @property
    def verdict(self) -> str:
        """A sentence about need and limit."""
        which = f"{counted(self.workers.n, 'worker')} of {counted(self.workers.threads, 'thread')}"
        if math.isinf(self.memory_limit):
            return f"{which} have no memory_limit"
        answer = "fits" if self.fits else "does not fit"
        limit = f"the memory_limit of {which}, {format_bytes(int(self.memory_limit))} each"
        return f"{format_bytes(self.memory.bytes)} {answer} into {limit}"

    def as_dict(self) -> dict[str, Any]:
        """Return JSON types."""
        return {
            "n": self.workers.n,
            "threads": self.workers.threads,
            "memory_limit": None if math.isinf(self.memory_limit) else int(self.memory_limit),
            "bytes": self.memory.bytes,
            "fits": self.fits,
            "stages": [
                {"name": stage.name, "worker": dict(stage.worker), "gpu": dict(stage.gpu)}
                for stage in self.memory.stages
            ],
            "client": dict(self.memory.client),
            "notes": list(self.memory.notes),
        }


@dataclass(frozen=True)
class RunEstimate:
    """Result of `estimate`.

    Parameters
    ----------
    text
        Sizes of the text.
    guessed
        Which of `text.types` and `text.vocabulary` were not given.
    workers
        Memory, for each kind of workers.
    trainings
        Ways to train, each with its forecast, if there is one, and whether it fits into memory.
    chosen
        Params of the way that is trained with.
    machines
        How many machines train; None if it is not known.
    """

    columns: ClassVar[tuple[str, ...]] = ("", "training", *_TERMS, "seconds", "machine hours", "in memory")  # of `rows`

    text: Text
    guessed: tuple[str, ...]
    workers: tuple[WorkerEstimate, ...]
    trainings: tuple[Candidate, ...]
    chosen: Params
    machines: int | None

    def hours(self, seconds: float) -> float | None:
        """Return the hours of all machines."""
        return None if self.machines is None else seconds * self.machines / 3600

    def notes(self) -> Iterator[str]:
        """Yield what is assumed of the text."""
        yield f"{self.text.words:,} words, by the files' sizes"
        titles = {"types": "distinct words", "vocabulary": "words kept"}
        if self.guessed:
            numbers = " and ".join(f"{getattr(self.text, name):,} {titles[name]}" for name in self.guessed)
            yield (
                f"{numbers}: estimated by Heaps' law with the constants of English Wikipedia; other text may have "
                "several times as many: give --types and --words if you know them"
            )

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the rows of a table with `columns`: the way to train, seconds by what takes them, and hours."""
        for way in self.trainings:
            mark, fits = "*" if way.params == self.chosen else "", "fits" if way.fits else "does not fit"
            if way.forecast is None:
                yield mark, str(way), *("" for _ in _TERMS), "not known", "", fits
                continue
            hours = self.hours(way.forecast.total)
            terms = (f"{way.forecast.seconds[term]:,.1f}" for term in _TERMS)
            total = f"{way.forecast.total:,.1f}"
            yield mark, str(way), *terms, total, "" if hours is None else f"{hours:.3g}", fits

    def as_dict(self) -> dict[str, Any]:
        """Return JSON types."""
        return {
            "text": asdict(self.text),
            "guessed": list(self.guessed),
            "workers": [kind.as_dict() for kind in self.workers],
            "machines": self.machines,
            "trainings": list(self._trainings()),
        }

    def _trainings(self) -> Iterator[dict[str, Any]]:
        for way in self.trainings:
            names = ("strategy", "n_replicas", "n_partitions")
            seconds = None if way.forecast is None else way.forecast.total
            yield {
                **{name: getattr(way.params, name) for name in names},
                "chosen": way.params == self.chosen,
                "fits": way.fits,
                "seconds": seconds,
                "machine_hours": None if seconds is None else self.hours(seconds),
                "terms": None if way.forecast is None else {term: way.forecast.seconds[term] for term in _TERMS},
            }

    def __str__(self) -> str:
        lines: list[Iterable[str]] = []
        for kind in self.workers:
            lines += [kind.columns, *kind.memory.rows()]
            lines += [(note,) for note in (*self.notes(), *kind.memory.notes, kind.verdict)]
        return "\n".join("  ".join(filter(None, line)) for line in (*lines, self.columns, *self.rows()))


def estimate(
    inputs: Inputs,
    *,
    params: Params | None = None,
    resources: Resources | None = None,
    client: Client | None = None,
    types: int | None = None,
    words: int | None = None,
    network: str | None = None,
    listener: Watching = "show",
) -> RunEstimate:
    """Estimate the memory and time that training on files needs, from their sizes.

    Time is that of training alone, by each strategy that can. Steps are taken to be as fast as on the machine that they
    were measured on. Nothing is read of the text, nothing is written, and no cluster is started.

    Parameters
    ----------
    inputs
        Files of text, as for `train`.
    params, resources
        As in `train`.
    client
        The cluster whose workers the estimate is for. By default that of `resources.scheduler`, or of Dask's current
        client, or else a local one.
    types, words
        Distinct words of the text, and words in the vocabulary; estimated if not given.
    network
        Each worker is a machine of its own, with such a link to the others, as in 10Gbps, and the memory of
        `resources.memory_limit`.
    listener
        As in `train`.

    Returns
    -------
    estimate
        Memory of each stage, ways to train with their seconds, and the one that `train` would take. `print` shows all.

    Raises
    ------
    Daskw2vError
        If `train` would refuse the files or the settings, or the cluster cannot be reached.

    Examples
    --------
    >>> estimate = daskw2v.estimate("text.txt", resources=daskw2v.Resources(memory_limit="2 GiB"))
    >>> all(kind.fits for kind in estimate.workers)
    True
    >>> [stage.name for stage in estimate.workers[0].memory.stages]
    ['encode', 'vocabulary', 'train', 'publish']
    """
    params = Params() if params is None else params
    resources = Resources() if resources is None else resources
    check_arguments(params=params, resources=resources, client=client)
    for name, value in (("types", types), ("words", words)):
        if value is not None and not _COUNT.check(value):
            raise ParameterError(f"{name}={value!r} is not {_COUNT.bound}.", f"Give {name}=100_000, or leave it out.")
    rate = None if network is None else parse_rate(network)
    check_options(params)
    check_phrases(params)
    check_strategy(params, resources)
    with listening(listener) as listen:
        sources = find_sources(
            inputs, params.format, resources.storage_options, resources.store_timeout, filters=params.filters,
            errors=params.errors, listener=listen,
        )  # fmt: skip
        check_formats(sources, params)
        with_feature_table(with_market_table(params, resources), resources)  # refuses what `train` would
        text = guess_text(sources, params, resources, types, words)
        local = starts_cluster(client, resources)
        place = _local(resources, rate) if local else _there(client, resources, listen)
    if rate is not None:
        place = place._replace(hardware=replace(place.hardware, network=rate, cores=math.inf))
    trainings, params = _trainings(params, resources, text, place)
    return RunEstimate(
        text,
        tuple(name for name, given in (("types", types), ("vocabulary", words)) if given is None),
        tuple(
            WorkerEstimate(workers, limit, stages.estimate(params, resources, text, workers))
            for workers, limit in place.kinds.items()
        ),
        tuple(trainings),
        params,
        place.hardware.nodes if rate is not None else 1 if local else None,
    )


def parse_rate(text: str) -> float:
    """Return the bytes/s of a link such as 10Gbps or 100 Mbit/s.

    Raises
    ------
    ParameterError
        If it is not written so.
    """
    found = _RATE.fullmatch(text.strip())
    rate = float(found[1]) * 1e3 ** (1 + "KMGT".index(found[2].upper())) / 8 if found else 0.0
    if not rate:
        raise ParameterError(f"network={text!r} is no rate above 0.", "Write bits a second, such as 10Gbps or 100Mbps.")
    return rate


def _local(resources: Resources, rate: float | None) -> Machines:
    kinds = local_workers(resources, machines=rate is not None)
    return Machines(kinds, {}, hardware_of(kinds, math.inf, CPU_COUNT))


def _there(client: Client | None, resources: Resources, listener: Listener) -> Machines:
    with connected(client, None, resources, listener) as cluster:
        return machines_of(cluster, resources)


def _trainings(params: Params, resources: Resources, text: Text, place: Machines) -> tuple[list[Candidate], Params]:
    """Return the ways to train, and the Params of the one that is taken: what was given, or what "auto" chooses."""
    if params.strategy == AUTO:
        found = candidates(params, resources, text, place)
        return found, choose_in(found, place)[0].params
    others = candidates(params.replace(strategy=AUTO), resources, text, place)
    given = candidate_of(params, resources, text, place)
    return [given, *(other for other in others if other.params != params)], params
