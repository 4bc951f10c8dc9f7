"""The choice of what Params leave open: a strategy, if it is "auto", and its numbers of replicas or of partitions.

The fastest by forecast of all that fit into memory is chosen (`choose`), once per run. The choice depends on Params,
text and workers. It is stored in the work directory under the name that the run would have without it, and holds for as
long as the run's version or its folder exists: the same call, on any cluster, continues with it or finds its model. A
run is named by what was chosen.
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
from daskw2v.config.settings import is_changed
from daskw2v.models.versions.finished import parse_run_id
from daskw2v.progress import Listener, Progress
from daskw2v.store.stage import Layout
from daskw2v.store.storage import Store
from daskw2v.training.devices import find_device_trainers
from daskw2v.training.estimates.check import find_worker_kinds
from daskw2v.training.estimates.memory import training_memory
from daskw2v.training.estimates.seconds import Forecast, find_constants, forecast
from daskw2v.training.preparation.planned import PlannedRun, run_folder
from daskw2v.training.sizes import Text, Workers, known_text
from daskw2v.training.strategies import find_strategy, make_work, with_usable_strategies

NETWORK = 10e9 / 8  # bytes/s of a machine's link, which no cluster reports
LAYOUT = Layout("choices/<choice>")
_GAIN = 0.8  # share of the plainest run's seconds: forecasts are not exact, and fewer parts are simpler
_WORTH = 60  # seconds that another setting saves, for a hint
# Settings of strategies that are chosen
_CHOSEN = ("n_replicas", "n_partitions", "n_groups", "copied_words", "passes_per_epoch")


class Candidate(NamedTuple):
    """A way to train: Params with a strategy, the forecast of its seconds or None, and whether it fits into memory."""

    params: Params
    forecast: Forecast | None
    fits: bool

    @property
    def seconds(self) -> float:
        """Seconds of training; infinity without a forecast."""
        return math.inf if self.forecast is None else self.forecast.total

    @property
    def description(self) -> str:
        """The strategy and its settings as text, with its seconds, or that it has no forecast or does not fit."""
        if not self.fits:
            return f"{self}, which does not fit into memory"
        return f"{self}, no forecast" if self.forecast is None else f"{self}, {self.seconds:,.0f} s"

    def __str__(self) -> str:
        return _describe(_chosen_settings(self.params))


def is_open(params: Params) -> bool:
    """Return whether Params leave the strategy open, or a setting of it that is chosen once the text is known."""
    return params.strategy.is_open or bool(params.strategy.open_settings())


def list_candidates(params: Params, resources: Resources, text: Text, kinds: Sequence[Workers]) -> list[Candidate]:
    """Return the ways to train that Params leave open, strategy by strategy, the plainest of each first."""
    if params.strategy.is_open:
        named = with_usable_strategies(params, resources)
        ways = [way for each in named for way in _settings_to_compare(each, text, kinds)]
    else:
        ways = [*_settings_to_compare(params, text, kinds)] if is_open(params) else []
    ways = ways or [_with_plain_settings(params)]
    return [make_candidate(way, resources, text, kinds) for way in ways]


def _settings_to_compare(params: Params, text: Text, kinds: Sequence[Workers]) -> Iterator[Params]:
    """Yield Params that name a strategy with each of its settings to compare, and nothing left open."""
    strategy, largest = find_strategy(params.strategy.name), max(kinds, key=lambda kind: kind.threads)
    for values in strategy.tried(params, text, largest):
        yield _with_plain_settings(params.replace(**values))


def _with_plain_settings(params: Params) -> Params:
    """Return Params with the plain value of each setting of their strategy that is left open."""
    plain = {f.name: f.metadata["plain"] for f, value in params.strategy.items() if value is None}
    return params.replace(**{name: value for name, value in plain.items() if value is not None})


def make_candidate(params: Params, resources: Resources, text: Text, kinds: Sequence[Workers]) -> Candidate:
    """Return the candidate for Params that name a strategy; it fits if it fits into the memory of all `kinds`."""
    works = {kind: make_work(params, resources, text, kind) for kind in kinds}
    constants, seconds = find_constants(params, resources.device.name), None
    if constants is not None:
        seconds = forecast(works[slowest_kind(kinds)], constants)
    return Candidate(params, seconds, all(training_memory(work).fits_into(kind) for kind, work in works.items()))


def slowest_kind(kinds: Sequence[Workers]) -> Workers:
    """Return the kind of workers with the fewest threads: forecasts assume that all workers are of this kind."""
    return min(kinds, key=lambda kind: kind.threads)


def choose(ways: list[Candidate], kinds: Sequence[Workers]) -> tuple[Candidate, str]:
    """Return the candidate that is chosen, and the reason as text.

    The first candidate is chosen if it fits into memory and has no forecast or no other saves a fifth of its time; else
    the fastest that fits. Where none fits, the last one is chosen, which has most parts: the check of memory then
    names it.

    On a single worker the first candidate is chosen if it fits, as nothing is to be divided between workers. But
    threads of a processor that train one replica overwrite each other's rows: for several threads, the fastest strategy
    is chosen that gives the bits of one thread, if one fits.
    """
    plain, fitting, worker = ways[0], [way for way in ways if way.fits], slowest_kind(kinds)
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
    rest = "; ".join(way.description for way in _best_by_strategy([way for way in ways if way is not best]))
    return best, f"{why}; instead: {rest}" if rest else why


def _best_by_strategy(ways: list[Candidate]) -> Iterator[Candidate]:
    """Yield the best candidate of each strategy: the fastest that fits into memory, or the fastest if none fits."""
    for strategy in dict.fromkeys(way.params.strategy.name for way in ways):
        same_strategy = (way for way in ways if way.params.strategy.name == strategy)
        yield min(same_strategy, key=lambda way: (not way.fits, way.seconds))


def find_faster(params: Params, resources: Resources, text: Text, kinds: Sequence[Workers]) -> list[Candidate]:
    """Return the candidate of Params that leave nothing open, and a faster one of their strategy, if worth a change.

    It fits into memory, takes half the seconds at most, and a minute less.
    """
    named = make_candidate(params, resources, text, kinds)
    if named.forecast is None or named.seconds < _WORTH:
        return [named]
    others = (make_candidate(way, resources, text, kinds) for way in _settings_to_compare(params, text, kinds))
    best = min((way for way in others if way.fits), key=lambda way: way.seconds, default=named)
    is_faster = best.seconds < min(named.seconds / 2, named.seconds - _WORTH)
    return [named, best] if is_faster else [named]


def tell_faster(run: PlannedRun, client: Client, listener: Listener) -> None:
    """Tell the listener of a much faster setting than those that the run's Params give (`find_faster`)."""
    named, *faster = find_faster(run.params, run.resources, run.sizes, find_machines(client, run.resources))
    for way in faster:
        message = f"{named.description} of training forecast; {way.description} instead"
        listener(Progress("choose", 0, 0, "", message=message))


def choose_strategy(run: PlannedRun, client: Client, listener: Listener) -> PlannedRun:
    """Choose what the Params of a run leave open, and record the choice; return the run with both."""
    kinds, text = find_machines(client, run.resources), known_text(run.corpus, run.vocabulary, run.params)
    best, why = choose(list_candidates(run.params, run.resources, text, kinds), kinds)
    size = {"workers": kinds[0].n, "threads": slowest_kind(kinds).threads}
    record = {**_chosen_settings(best.params), "why": why, **size}
    _record_folder(run).write_manifest(record)
    _report(listener, record)
    return replace(run, params=best.params, choice=record)


def find_choice(run: PlannedRun, listener: Listener) -> PlannedRun | None:
    """Return a run of which nothing is open, or was chosen before; None if it is to be chosen.

    An earlier choice, which is sent to the listener, counts only while a version or the folder of its run exists. A
    strategy that is named has its plain settings where there is no choice, but files of a run with these: releases
    before the choice of settings had no others.
    """
    if not is_open(run.params):
        return run
    record = _record_folder(run).read_manifest()
    if record is None:
        plain = replace(run, params=_with_plain_settings(run.params))
        return plain if not is_open(plain.params) and _has_files(run.store, plain.name) else None
    chosen = replace(run, params=with_recorded_choice(record, run.params), choice=record)
    if not _has_files(run.store, chosen.name):
        return None
    _report(listener, record)
    return chosen


def _record_folder(run: PlannedRun) -> Store:
    """Return the folder with the recorded choice of a run whose Params leave something open."""
    return run.store / LAYOUT.folder / run.name


def with_recorded_choice(record: Mapping[str, Any], params: Params) -> Params:
    """Return Params with the strategy and settings of a recorded choice where they leave these open.

    They are unchanged if nothing is open, or if they name another strategy.
    """
    if not is_open(params) or not (params.strategy.is_open or params.strategy.name == record["strategy"]):
        return params
    chosen = params.replace(strategy=record["strategy"])
    chosen = chosen.replace(**{name: record[name] for name in _CHOSEN if name in record and name in chosen.flat()})
    return _with_plain_settings(chosen)


def find_machines(client: Client, resources: Resources) -> list[Workers]:
    """Return the kinds of workers that train on a cluster, with an assumed network and, of a local cluster, cores."""
    trainers = find_device_trainers(client, resources.device.name)
    hosts = len({get_address_host(address) for address in workers_known(client)})
    cores = CPU_COUNT if isinstance(client.cluster, LocalCluster) else math.inf
    n = len(trainers.threads) + trainers.n_coming
    network = math.inf if hosts == 1 and not trainers.n_coming else NETWORK / math.ceil(n / max(1, hosts))
    return [replace(kind, network=network, cores=cores) for kind in find_worker_kinds(client, resources.device.name)]


def _chosen_settings(params: Params) -> dict[str, Any]:
    """Return the strategy's name, and its settings that are chosen where they differ from the plain ones."""
    chosen = {f.name: value for f, value in params.strategy.items() if f.name in _CHOSEN and is_changed(f, value)}
    return {"strategy": params.strategy.name, **chosen}


def _describe(record: Mapping[str, Any]) -> str:
    """Return the strategy and settings of a choice, by the names in its record, as text."""
    return ", ".join(f"{name}={record[name]}" for name in ("strategy", *_CHOSEN) if name in record)


def _has_files(store: Store, run_id: str) -> bool:
    """Return whether a version of a run, finished or not, or the run's folder exists in a work directory."""
    names = (store / "models").children()
    return any(parse_run_id(name) == run_id for name in names if "-" in name) or run_folder(store, run_id).exists()


def _report(listener: Listener, record: Mapping[str, Any]) -> None:
    """Send a recorded choice, and the reason for it, to the listener."""
    listener(Progress("choose", 0, 0, "", message=f"{_describe(record)}: {record['why']}"))
