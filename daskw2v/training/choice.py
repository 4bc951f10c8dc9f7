"""Strategy "auto": the strategy with the fastest forecast among those that fit into memory, chosen once for a run.

The choice depends on Params, text and workers. It is kept in the work directory under the name that the run would have
with "auto" as its strategy, for as long as its version or its checkpoints are there: the same call, on whatever
cluster, goes on with it or finds its model. A run is named by the chosen strategy.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from dask.system import CPU_COUNT
from distributed import Client, LocalCluster
from distributed.comm import get_address_host

from daskw2v.cluster.workers import workers_known
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import default_of
from daskw2v.models.versions.finished import run_of
from daskw2v.progress import Listener, Progress
from daskw2v.store.stage import Layout
from daskw2v.store.storage import Store
from daskw2v.training.devices import trainers_of
from daskw2v.training.estimates.check import Kinds, fits, gpus_of, workers_of
from daskw2v.training.planned import PlannedRun, run_folder
from daskw2v.training.sizes.forecast import Forecast, Hardware, constants_of, load_of
from daskw2v.training.sizes.text import Text, known_text
from daskw2v.training.strategies import find_strategy, usable

NETWORK = 10e9 / 8  # bytes/s of a machine's link, which no cluster reports
LAYOUT = Layout("choices/<choice>")
_GAIN = 0.8  # of the plain run's seconds: forecasts are not exact, and fewer parts are simpler
_CHOSEN = ("n_replicas", "n_partitions")  # settings of strategies


class Machines(NamedTuple):
    """The machines of a run: its workers, their GPUs, and the hardware as the formulas of costs take it."""

    kinds: Kinds
    gpus: Kinds
    hardware: Hardware


class Candidate(NamedTuple):
    """A way to train: Params with a strategy, its forecast if there is one, and whether it fits into memory."""

    params: Params
    forecast: Forecast | None
    fits: bool

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in _settings(self.params).items())


def candidates(params: Params, resources: Resources, text: Text, machines: Machines) -> list[Candidate]:
    """Return the candidates that "auto" chooses from, the plainest first."""
    return [
        candidate_of(given.replace(**values), resources, text, machines)
        for given in usable(params, resources)
        for values in _tried(given, text, machines)
    ]


def candidate_of(params: Params, resources: Resources, text: Text, machines: Machines) -> Candidate:
    """Return a candidate whose strategy is named."""
    cost, constants = find_strategy(params.strategy.name).cost, constants_of(params, resources.device.name)
    forecast = None
    if cost is not None and constants is not None:
        forecast = cost(params, load_of(text, params), machines.hardware, constants)
    return Candidate(params, forecast, fits(params, resources, text, machines.kinds, machines.gpus))


def choose(found: list[Candidate]) -> tuple[Candidate, str]:
    """Return one of some candidates, and why.

    The first stays where it fits into memory and no other is a fifth faster. Where nothing fits, the last one is taken,
    of the most parts: the check of memory then names it.
    """
    plain, fitting = found[0], [candidate for candidate in found if candidate.fits]
    if len(found) == 1:
        return plain, "nothing to choose from"
    if not fitting:
        return found[-1], "nothing else takes less memory"
    known = [candidate for candidate in fitting if candidate.forecast is not None]
    best = min(known, key=_seconds, default=fitting[0])
    if plain.fits and (plain.forecast is None or _seconds(best) > _GAIN * _seconds(plain)):
        best = plain
    others = "; ".join(map(_described, _best_of_each(found, best)))
    why = "no forecast" if best.forecast is None else f"{_seconds(best):,.0f} s of training forecast"
    return best, f"{why}; instead: {others}" if others else why


def choose_in(found: list[Candidate], machines: Machines) -> tuple[Candidate, str]:
    """Return one of some candidates, and why.

    A single worker that holds the first one takes it, as nothing is to be divided between workers. But threads of a
    processor that train one replica write into each other's rows: several of them take what gives one thread's bits.
    """
    if machines.hardware.nodes > 1 or not found[0].fits:
        return choose(found)
    threads = 1 if machines.gpus else machines.hardware.threads
    same = [one for one in found if one.fits and find_strategy(one.params.strategy.name).deterministic]
    if threads == 1 or not same:
        return found[0], "there is one worker"
    return min(same, key=_seconds), f"there is one worker, of {threads} threads, and no two of them train the same row"


def choose_strategy(run: PlannedRun, client: Client, listener: Listener) -> PlannedRun:
    """Return a run with a strategy that is named, and the record of the choice where "auto" named it."""
    machines = machines_of(client, run.resources)
    text = known_text(run.corpus, run.vocabulary, run.params)
    best, why = choose_in(candidates(run.params, run.resources, text, machines), machines)
    record = {**_settings(best.params), "why": why, "workers": machines.hardware.nodes,
              "threads": machines.hardware.threads}  # fmt: skip
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


def machines_of(client: Client, resources: Resources) -> Machines:
    """Return where a cluster would train; how fast its network is, is assumed."""
    trainers = trainers_of(client, resources.device.name)
    hosts = len({get_address_host(address) for address in workers_known(client)})
    kinds = workers_of(client, resources.device.name)
    cores = CPU_COUNT if isinstance(client.cluster, LocalCluster) else math.inf
    n = len(trainers.threads) + trainers.coming
    network = math.inf if hosts == 1 and not trainers.coming else NETWORK / math.ceil(n / max(1, hosts))
    return Machines(kinds, gpus_of(client, resources.device.name), hardware_of(kinds, network, cores))


def hardware_of(kinds: Kinds, network: float, cores: float) -> Hardware:
    """Return workers as the formulas of costs take them: each is a node, with as many threads as the least has."""
    n, threads = max(kind.n for kind in kinds), min(kind.threads for kind in kinds)
    return Hardware("workers", n, threads, 1, min(kinds.values()), network, cores=cores)


def _tried(params: Params, text: Text, machines: Machines) -> Iterator[Mapping[str, Any]]:
    kind = max(machines.kinds, key=lambda kind: kind.threads)
    return find_strategy(params.strategy.name).tried(params, text.vocabulary, kind)


def _best_of_each(found: list[Candidate], best: Candidate) -> Iterator[Candidate]:
    """Yield the other candidates, of each strategy the best."""
    rest = [candidate for candidate in found if candidate is not best]
    for name in dict.fromkeys(candidate.params.strategy.name for candidate in rest):
        yield min((c for c in rest if c.params.strategy.name == name), key=lambda c: (not c.fits, _seconds(c)))


def _seconds(candidate: Candidate) -> float:
    return math.inf if candidate.forecast is None else candidate.forecast.total


def _described(candidate: Candidate) -> str:
    if not candidate.fits:
        return f"{candidate}, which does not fit into memory"
    return f"{candidate}, no forecast" if candidate.forecast is None else f"{candidate}, {_seconds(candidate):,.0f} s"


def _settings(params: Params) -> dict[str, Any]:
    """Return the strategy and those of its settings that may be chosen, where they are not as by default."""
    return {"strategy": params.strategy.name, **{name: value for name, value in _changed(params) if name in _CHOSEN}}


def _changed(params: Params) -> Iterator[tuple[str, Any]]:
    """Yield the settings of the strategy that are not as by default."""
    return ((f.name, value) for f, value in params.strategy.items() if value != default_of(f))


def _with(params: Params, record: Mapping[str, Any]) -> Params:
    """Return Params with a recorded choice."""
    own = params.replace(strategy=record["strategy"])
    return own.replace(**{name: record[name] for name in _CHOSEN if name in record and name in own.flat()})


def _is_kept(store: Store, run_id: str) -> bool:
    """Return whether a version of a run, finished or not, or the folder that it keeps until then is there."""
    names = (store / "models").children()
    return any(run_of(name) == run_id for name in names if "-" in name) or run_folder(store, run_id).exists()


def _report(listener: Listener, record: Mapping[str, Any]) -> None:
    chosen = ", ".join(f"{name}={record[name]}" for name in ("strategy", *_CHOSEN) if name in record)
    listener(Progress("choose", 0, 0, "", message=f"{chosen}: {record['why']}"))
