"""What training costs at scale: a model of both strategies, calibrated here, checked here, and its forecast.

Its constants are seconds and bytes of single steps, measured on this machine. The check trains Wikipedia on workers
behind links of limited bandwidth (`namespaces`); they share this machine's cores, which the model knows. Where others
use the machine, its processor seconds tell more than its seconds: those of workers, client and scheduler. The waiting
share is what part of the workers' time no task was running.

The forecasts are for the two data sets of Stergiou et al. (2017) and for 100 GB of text on 1 to 64 machines, with cores
like this machine's: words are taken to follow Zipf's law, in sentences of 20. Reading the text and counting its words
(`benchmarks.pipeline`) is not in them.

    python -m benchmarks.scale_model [--parts 2] [--rates 1000 100] [--workers 1 2 4] [--passes 8] [--times 1]
        [--skip-runs] [--table-rows 1048576] [--constants FILE] [--json]
"""

import argparse
import json
import math
import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from distributed import SchedulerPlugin

from benchmarks.calibration import DEALT, SIZES, TABLE_ROWS, calibrate, load_of, read_constants, segment_of, train
from benchmarks.common import finish
from benchmarks.options import LEFT_OUT, Smoke, parsed
from benchmarks.texts import Text, encode, encode_file
from benchmarks.transfer import processor_seconds
from daskw2v.config.params import Params
from daskw2v.store.storage import Store
from daskw2v.training.averaging.cost import averaging_cost
from daskw2v.training.cost.base import Forecast, Hardware, Load
from daskw2v.training.cost.constants import Constants, Line
from daskw2v.training.cost.load import zipf
from daskw2v.training.rotation.cost import rotation_cost
from tests.support import namespaces

TYPES, ROUNDS, EPOCHS = 10_000, 2, 2  # of the check; rounds an epoch
TRAINING = ("deal", "buckets", "train", "merge")  # keys of tasks begin so


class Running(SchedulerPlugin):
    """When tasks ran, from the first that trains or deals pairs."""

    def __init__(self) -> None:
        self._tasks: list[tuple[str, float, float]] = []

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        """Note when a task that has ended ran."""
        ran = [(s["start"], s["stop"]) for s in kwargs.get("startstops") or () if s["action"] == "compute"]
        self._tasks += [(str(key).split("-")[0], *span) for span in ran]

    def waiting(self, threads: int) -> float:
        """Return what part of so many threads' time no task was running, until the last that trains."""
        spans = [(start, stop) for name, start, stop in self._tasks if name in TRAINING]
        first, last = min(start for start, _ in spans), max(stop for _, stop in spans)
        ran = sum(stop - start for _, start, stop in self._tasks if first <= start and stop <= last)
        return 1 - ran / (threads * (last - first))


class Trained(NamedTuple):
    """What a training took: seconds, waiting share, processor seconds of all processes, and bytes sent."""

    seconds: float
    waiting: float
    processor_seconds: float
    sent: float


def watched(text: Text, params: Params, cluster: namespaces.Cluster, n: int) -> Trained:
    """Train on n workers of one thread, and see what it took."""
    client, running = cluster.client, Running()

    def used() -> float:
        return processor_seconds() + sum(client.run(processor_seconds).values())

    scheduler = client.cluster.scheduler
    scheduler.add_plugin(running, name="running")
    before, used_before = cluster.sent(), used()
    seconds, _ = train(text, params, client)
    took = Trained(seconds, running.waiting(n), used() - used_before, cluster.sent() - before)
    scheduler.remove_plugin("running")
    return took


def kinds(n: int, passes: int) -> dict[str, Params]:
    """Return what n workers train, in so many passes an epoch."""
    turned = Params(strategy="rotation", n_partitions=DEALT, passes_per_epoch=passes, epochs=EPOCHS)
    own = turned.replace(n_groups=n)
    return {
        f"rotation, p={DEALT}, a group a worker": own,
        f"rotation, p={DEALT}, a group a worker, bfloat16": own.replace(sent_dtype="bfloat16"),
        f"rotation, p={DEALT}": turned,
        "averaging": Params(strategy="averaging", n_replicas=n, rounds_per_epoch=ROUNDS, epochs=EPOCHS),
    }


def forecast(params: Params, load: Load, here: Hardware, c: Constants) -> Forecast:
    """Return what the model says of a training of the check."""
    if params.strategy == "averaging":
        return averaging_cost(load, params, here, c)
    assert params.passes_per_epoch is not None
    passes = params.passes_per_epoch * params.epochs
    return rotation_cost(load, params.n_partitions, passes, here, c, params.n_groups, params.sent_dtype)


def check(
    text: Text, load: Load, c: Constants, workers: list[int], rates: list[float], passes: int, times: int
) -> Iterator[list[Any]]:
    """Train on workers behind limited links, so many times; yield a row of medians for each training.

    All processes share this machine's cores: nothing ends before these have done all that processors do.
    """
    seed, cores = 0, os.cpu_count() or 1
    for n in workers:
        with namespaces.cluster(n) as cluster:
            for params in kinds(n, passes).values():
                train(text, params.replace(epochs=1), cluster.client)  # compiles
            for rate in rates if n > 1 else rates[:1]:
                cluster.limit(rate)
                here = Hardware("", n, 1, 1, math.inf, rate * namespaces.MBIT, cores=cores)
                for name, params in kinds(n, passes).items():
                    runs = list[Trained]()
                    for _ in range(times):
                        seed += 1  # one trained before would be there already
                        runs.append(watched(text, params.replace(seed=seed), cluster, n))
                    took = Trained(*(statistics.median(values) for values in zip(*runs, strict=True)))
                    f = forecast(params, load, here, c)
                    alone = forecast(params, load, replace(here, cores=1, network=math.inf), c).seconds
                    used = sum(alone.values()) - alone["waiting"]
                    seconds = max(f.total, used / cores)
                    yield [
                        name, n, rate, os.getloadavg()[0], took.seconds, seconds, seconds / took.seconds,
                        took.processor_seconds, used, used / took.processor_seconds, took.waiting,
                        took.sent / 1e6, f.sent / 1e6, *f.seconds.values(),
                    ]  # fmt: skip


TERMS = ("text", "store", "train", "copies", "handling", "travel", "waiting", "tasks")
CHECK = (
    "", "workers", "Mbit/s", "load", "seconds", "model", "ratio", "processor s", "model", "ratio", "waiting",
    "MB sent", "model", *TERMS,
)  # fmt: skip
SCALED = ("", "seconds", "efficiency", "TB sent", "GB a node", *TERMS)
FORECAST = ("", "seconds", "TB sent", "GB a node", "TB on disk", *TERMS)


def report(head: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO) -> list[dict[str, Any]]:
    """Print a table, each row as it comes; return its rows."""
    made = []
    print(f"{head[0]:60}" + "".join(f"{name:>11}" for name in head[1:]), file=out)
    for name, *values in rows:
        cells = (f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}" for value in values)
        print(f"{name:60}" + "".join(f"{cell:>11}" for cell in cells), file=out, flush=True)
        made.append({"name": name, "values": values})
    return made


PAPER = Params(vector_size=300, sample=1e-5, epochs=1)
DATA = {"Query-Ads": (54.8e9, 200_000_000, 1500, 856), "Web": (1.066e12, 1_420_000_000, 3000, 7344)}
THREADS = 20  # of a node of the paper; it does not say how many nodes there are: a partition a thread is our guess
WIKI_WORDS = 170  # of a kB of text
TEXT = Params(vector_size=300, epochs=1)
TEXT_GB, TEXT_TYPES, MACHINES = 100, 1_000_000, (1, 2, 4, 8, 16, 64)


def clusters(partitions: int) -> list[Hardware]:
    """Return the paper's nodes and modern ones; processes have four threads, and stores are as fast as the network."""
    slow, fast = 10e9 / 8, 100e9 / 8
    return [
        Hardware("20 threads, 64 GB, 10 Gbps", partitions // THREADS, THREADS, THREADS // 4, 64e9, slow, 42.6e9, slow),
        Hardware("64 threads, 512 GB, 100 Gbps", 64, 64, 16, 512e9, fast, 400e9, fast),
    ]


class Plan(NamedTuple):
    """How rotation would be run: passes, groups, and what that takes."""

    passes: int
    groups: int
    forecast: Forecast


def planned(load: Load, hardware: Hardware, c: Constants, sent_dtype: str = Params.sent_dtype) -> Plan:
    """Return the fastest plan that fits into memory, with a partition a thread and a group a process."""
    p, found = hardware.nodes * hardware.threads, list[Plan]()
    for processes in (k for k in range(1, hardware.threads + 1) if hardware.threads % k == 0):
        own, groups = replace(hardware, processes=processes), hardware.nodes * processes
        found += [Plan(2**i, groups, rotation_cost(load, p, 2**i, own, c, groups, sent_dtype)) for i in range(8)]
    return min(found, key=lambda plan: (plan.forecast.memory >= hardware.memory, plan.forecast.total))


def forecasts(load: Load, hardware: Hardware, c: Constants) -> Iterator[tuple[str, Forecast]]:
    """Yield averaging and rotation by name, with what they take."""
    n = hardware.nodes
    yield f"averaging, {n} replica(s)", averaging_cost(load, Params(epochs=1), hardware, c)
    for dtype in ("float32", "bfloat16"):
        plan = planned(load, hardware, c, dtype)
        how = f"p={n * hardware.threads}, {plan.groups} group(s), {plan.passes} pass(es)"
        yield f"rotation, {dtype}, {how}", plan.forecast


def plans(load: Load, hardware: Hardware, c: Constants) -> Iterator[list[Any]]:
    """Yield a row of the table for averaging and two for rotation."""
    for name, f in forecasts(load, hardware, c):
        unfit = "" if f.memory < hardware.memory else " !"
        yield [name + unfit, f.total, f.sent / 1e12, f.memory / 1e9, f.disk / 1e12, *f.seconds.values()]


def scaled(c: Constants) -> Iterator[list[Any]]:
    """Yield a row for each number of machines and each strategy; efficiency is over the fastest on one machine."""
    load, slow, alone = zipf(TEXT_GB * 1e6 * WIKI_WORDS, TEXT_TYPES, TEXT), 10e9 / 8, math.inf
    for n in MACHINES:
        hardware = Hardware("", n, 16, 4, 64e9, slow, 42.6e9, slow)
        for name, f in forecasts(load, hardware, c):
            alone = min(alone, f.total) if n == 1 else alone
            yield [f"{n}: {name}", f.total, alone / n / f.total, f.sent / 1e12, f.memory / 1e9, *f.seconds.values()]


def report_forecasts(c: Constants, out: TextIO) -> list[dict[str, Any]]:
    """Print what both strategies would take for the paper's data."""
    rows = []
    for name, (words, types, partitions, seconds) in DATA.items():
        load = zipf(words, types, PAPER)
        theirs = load.pairs * 2 * 4 * load.d
        print(
            f"\n{name}: {words / 1e9:,.0f} billion words, {types / 1e6:,.0f} million types, {load.pairs / 1e9:,.0f} "
            f"billion pairs; {partitions} partitions took {seconds:,} s. The paper's two vectors a pair are "
            f"{theirs / 1e12:,.0f} TB:\nat 10 Gbps {theirs / seconds / (10e9 / 8):,.0f} nodes send them in that time.",
            file=out,
        )
        for hardware in clusters(partitions):
            print(f"\n{name} on {hardware.nodes} nodes of {hardware.name}", file=out)
            rows += report(FORECAST, plans(load, hardware, c), out)
    print("\n! does not fit into memory.", file=out)
    print(
        f"\n{TEXT_GB} GB of text, {TEXT_TYPES:,} types, d={TEXT.vector_size}, an epoch; machines of 16 threads, 64 GB, "
        "10 Gbps",
        file=out,
    )
    rows += report(SCALED, scaled(c), out)
    return rows


def report_constants(c: Constants, out: TextIO) -> None:
    units = {
        "crowded": (1, ""),
        "pair_bytes": (1, ""),
        "row": (1e3, " ms"),
        "bucket_task": (1e3, " ms"),
        "bucket": (1e3, " ms"),
        "task": (1e3, " ms"),
        "result": (1e3, " ms"),
        "hop": (1e3, " ms"),
        "piece": (1e3, " ms"),
    }
    texts = []
    for name, (factor, unit) in {f.name: units.get(f.name, (1e9, " ns")) for f in fields(c)}.items():
        value = getattr(c, name)
        several = [value.at(d) for d in SIZES] if isinstance(value, Line) else [value]
        texts.append(f"{name} {'/'.join(f'{factor * v:.3g}' for v in several)}{unit}")
    print(f"Constants (kernels: a pair at d={'/'.join(map(str, SIZES))}): {', '.join(texts)}", file=out)


class Calibrated(NamedTuple):
    """A text, its load, and constants."""

    text: Text
    load: Load
    constants: Constants


def calibrated(folder: Path, parts: float, rows: int, passes: int, file: Path | None, out: TextIO) -> Calibrated:
    """Encode a text, and read the constants from a file, or measure them with so many rows and passes."""
    text = encode(folder, parts, Params(max_final_vocab=TYPES))
    segment, read = segment_of(text, params := Params(epochs=EPOCHS))
    load = load_of(text, segment, params)
    if file and file.exists():
        return Calibrated(text, load, read_constants(file))
    (folder / "small.txt").write_bytes(text.path.read_bytes()[:300_000])
    few = Params(max_final_vocab=1000)  # next to no work: tasks are left
    small = encode_file(folder / "small.txt", Store(str(folder / "small")), few)
    constants = calibrate(text, small, segment, read, rows, 2 * passes, folder, load, out)
    if file:
        file.write_text(json.dumps(asdict(constants)))
    return Calibrated(text, load, constants)


SMOKE = Smoke(
    {"parts": 0.1, "rates": [1000], "workers": [2], "passes": 1, "table_rows": 1 << 14},
    ("constants", "forecasts", *DATA, "efficiency"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=float, default=2, help="tenths of the 100 MB corpus")
    parser.add_argument("--rates", type=float, nargs="+", default=[1000, 100], help="Mbit/s of a worker's link")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--passes", type=int, default=8, help="an epoch, of rotation; constants are of twice as many")
    parser.add_argument("--times", type=int, default=1, help="trainings of each kind, of which the median is taken")
    parser.add_argument("--skip-runs", action="store_true", help="no trainings to check the model by")
    parser.add_argument("--table-rows", type=int, default=TABLE_ROWS, help="of a table that no cache holds")
    parser.add_argument("--constants", type=Path, help="file of an earlier calibration; written where it is missing")
    options = parsed(parser, SMOKE)
    out, checked = sys.stderr if options.json else sys.stdout, list[dict[str, Any]]()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that namespaces are removed
    with tempfile.TemporaryDirectory() as name:
        text, load, c = calibrated(
            Path(name), options.parts, options.table_rows, options.passes, options.constants, out
        )
        report_constants(c, out)
        lacking = "--skip-runs" if options.skip_runs else namespaces.missing()
        if lacking:
            print(f"\n{LEFT_OUT}the check by real trainings: {lacking}", file=out)
        else:
            print("\nReal trainings, and the model's seconds, traffic and terms", file=out)
            checked = report(
                CHECK, check(text, load, c, options.workers, options.rates, options.passes, options.times), out
            )
    rows = report_forecasts(c, out)
    finish({"constants": c, "checks": checked, "forecasts": rows}, out, as_json=options.json)


if __name__ == "__main__":
    main()
