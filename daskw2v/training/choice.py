"""Strategy "auto": the strategy with the fastest forecast of all that fit into memory, chosen once for a run.

The choice depends on Params, text and workers. It is kept in the work directory under the name that the run would have
with "auto" as its strategy, for as long as the run's version or its checkpoints exist: the same call, on any cluster,
continues with it or finds its model. A run is named by the chosen strategy.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dask.system import CPU_COUNT
from distributed import Client, LocalCluster
from distributed.comm import get_address_host

from daskw2v.cluster.workers import workers_known
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import default_of
from daskw2v.models.versions.finished import parse_run_id
from daskw2v.progress import Listener, Progress
from daskw2v.store.stage import Layout
from daskw2v.store.storage import Store
from daskw2v.training.devices import trainers_of
from daskw2v.training.estimates.check import workers_of
from daskw2v.training.estimates.memory import training_memory
from daskw2v.training.estimates.seconds import Forecast, constants_of, forecast
from daskw2v.training.planned import PlannedRun, run_folder
from daskw2v.training.sizes.text import Text, known_text
from daskw2v.training.sizes.workers import Workers
from daskw2v.training.strategies import find_strategy, usable, work_of

NETWORK = 10e9 / 8  # bytes/s of a machine's link, which no cluster reports
LAYOUT = Layout("choices/<choice>")
_GAIN = 0.8  # of the plain run's seconds: forecasts are not exact, and fewer parts are simpler
_CHOSEN = ("n_replicas", "n_partitions")  # settings of strategies


class Candidate(NamedTuple):
    """A way to train: Params with a strategy, its forecast if there is one, and whether it fits into memory."""

    params: Params
    forecast: Forecast | None
    fits: bool

    @property
    def seconds(self) -> float:
        """Seconds of training; infinity without a forecast."""
        return math.inf if self.forecast is None else self.forecast.total

    @property
    def described(self) -> str:
        """The settings with their seconds."""
        if not self.fits:
            return f"{self}, which does not fit into memory"
        return f"{self}, no forecast" if self.forecast is None else f"{self}, {self.seconds:,.0f} s"

    def __str__(self) -> str:
        return _written(_settings(self.params))


def candidates(params: Params, resources: Resources, text: Text, kinds: Sequence[Workers]) -> list[Candidate]:
    """Return the candidates that "auto" chooses from, the plainest first."""
    largest = max(kinds, key=lambda kind: kind.threads)
    return [
        candidate_of(of_strategy.replace(**values), resources, text, kinds)
        for of_strategy in usable(params, resources)
        for values in find_strategy(of_strategy.strategy.name).tried(of_strategy, text.vocabulary, largest)
    ]


def candidate_of(params: Params, resources: Resources, text: Text, kinds: Sequence[Workers]) -> Candidate:
    """Return the candidate of a strategy that Params name."""
    works = {kind: work_of(params, resources, text, kind) for kind in kinds}
    constants, time = constants_of(params, resources.device.name), None
    if constants is not None:
        time = forecast(works[fewest_threads(kinds)], constants)
    return Candidate(params, time, all(training_memory(work).fits_into(kind) for kind, work in works.items()))


def fewest_threads(kinds: Sequence[Workers]) -> Workers:
    """Return the kind of workers that forecasts take all workers to be of."""
    return min(kinds, key=lambda kind: kind.threads)


def choose(ways: list[Candidate], kinds: Sequence[Workers]) -> tuple[Candidate, str]:
    """Return one of the candidates, and why.

    The first one is taken where it fits into memory and no other is a fifth faster. Where none fits, the last one is
    taken, which has most parts: the check of memory then names it.

    A single worker that holds the first one takes it, as nothing is to be divided between workers. But threads of a
    processor that train one replica write into each other's rows: several threads take a strategy that gives the bits
    of one thread.
    """
    plain, fitting, worker = ways[0], [way for way in ways if way.fits], fewest_threads(kinds)
    if worker.n == 1 and plain.fits:
        same_bits = [way for way in fitting if find_strategy(way.params.strategy.name).deterministic]
        if worker.threads == 1 or worker.device_limit is not None or not same_bits:
            return plain, "there is one worker"
        why = f"there is one worker, of {worker.threads} threads, and no two of them train the same row"
        return min(same_bits, key=lambda way: way.seconds), why
    if len(ways) == 1:
        return plain, "nothing to choose from"
    if not fitting:
        return ways[-1], "nothing else takes less memory"
    best = min((way for way in fitting if way.forecast is not None), key=lambda way: way.seconds, default=fitting[0])
    if plain.fits and (plain.forecast is None or best.seconds > _GAIN * plain.seconds):
        best = plain
    why = "no forecast" if best.forecast is None else f"{best.seconds:,.0f} s of training forecast"
    others = "; ".join(way.described for way in _best_of_each([way for way in ways if way is not best]))
    return best, f"{why}; instead: {others}" if others else why


def _best_of_each(ways: list[Candidate]) -> Iterator[Candidate]:
    """Yield the best candidate of each strategy."""
    for strategy in dict.fromkeys(way.params.strategy.name for way in ways):
        of_strategy = (way for way in ways if way.params.strategy.name == strategy)
        yield min(of_strategy, key=lambda way: (not way.fits, way.seconds))


def choose_strategy(run: PlannedRun, client: Client, listener: Listener) -> PlannedRun:
    """Return the run with the strategy that is chosen now, and with the record of the choice."""
    kinds, text = machines_of(client, run.resources), known_text(run.corpus, run.vocabulary, run.params)
    best, why = choose(candidates(run.params, run.resources, text, kinds), kinds)
    record = {**_settings(best.params), "why": why, "workers": kinds[0].n, "threads": fewest_threads(kinds).threads}
    _record_of(run).write_manifest(record)
    _report(listener, record)
    return replace(run, params=best.params, choice=record)


def find_choice(run: PlannedRun, listener: Listener) -> PlannedRun | None:
    """Return the run with its strategy where that is named or was chosen before; None if it must be chosen."""
    if not run.params.strategy.is_open:
        return run
    record = _record_of(run).read_manifest()
    if record is None:
        return None
    chosen = replace(run, params=_with(run.params, record), choice=record)
    if not _is_kept(run.store, chosen.name):
        return None
    _report(listener, record)
    return chosen


def _record_of(run: PlannedRun) -> Store:
    return run.store / LAYOUT.folder / run.name


def with_choice_of(theirs: Mapping[str, Any], params: Params) -> Params:
    """Return Params of "auto" with the choice of another version; Params that name a strategy stay as they are."""
    return _with(params, theirs) if params.strategy.is_open else params


def machines_of(client: Client, resources: Resources) -> list[Workers]:
    """Return the kinds of workers on which a cluster would train; the speed of their network is assumed."""
    trainers = trainers_of(client, resources.device.name)
    hosts = len({get_address_host(address) for address in workers_known(client)})
    cores = CPU_COUNT if isinstance(client.cluster, LocalCluster) else math.inf
    n = len(trainers.threads) + trainers.coming
    network = math.inf if hosts == 1 and not trainers.coming else NETWORK / math.ceil(n / max(1, hosts))
    return [replace(kind, network=network, cores=cores) for kind in workers_of(client, resources.device.name)]


def _settings(params: Params) -> dict[str, Any]:
    """Return the strategy, and the settings of it that "auto" chooses, where they are not as by default."""
    chosen = {f.name: value for f, value in params.strategy.items() if f.name in _CHOSEN and value != default_of(f)}
    return {"strategy": params.strategy.name, **chosen}


def _written(record: Mapping[str, Any]) -> str:
    """Return a strategy and its settings as text."""
    return ", ".join(f"{name}={record[name]}" for name in ("strategy", *_CHOSEN) if name in record)


def _with(params: Params, record: Mapping[str, Any]) -> Params:
    """Return Params with a recorded choice."""
    chosen = params.replace(strategy=record["strategy"])
    return chosen.replace(**{name: record[name] for name in _CHOSEN if name in record and name in chosen.flat()})


def _is_kept(store: Store, run_id: str) -> bool:
    """Return whether a version of a run, finished or not, or the run's folder exists."""
    names = (store / "models").children()
    return any(parse_run_id(name) == run_id for name in names if "-" in name) or run_folder(store, run_id).exists()


def _report(listener: Listener, record: Mapping[str, Any]) -> None:
    listener(Progress("choose", 0, 0, "", message=f"{_written(record)}: {record['why']}"))
