"""What training costs at scale: a model of both strategies, calibrated here, checked here, and its forecast.

Its constants are seconds and bytes of single steps, measured on this machine. The check trains Wikipedia on workers
behind links of limited bandwidth (`namespaces`); they share this machine's cores, which the model knows. The
forecast is for the two data sets of Stergiou et al. (2017), with cores like this machine's: words are taken to follow
Zipf's law, in sentences of 20. Reading the text and counting its words (`benchmarks.pipeline`) is not in it.

    python -m benchmarks.scale_model [--parts 2] [--rates 1000 100] [--workers 1 2 4] [--skip-runs]
        [--constants FILE] [--json]
"""

import argparse
import json
import math
import os
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from benchmarks.calibration import DEALT, SIZES, calibrate, load_of, read_constants, segment_of, train
from benchmarks.common import finish
from benchmarks.options import LEFT_OUT, Smoke, parsed
from benchmarks.texts import Text, encode, encode_file
from daskw2v.config.params import Params
from daskw2v.store.storage import Store
from daskw2v.training.averaging.cost import averaging_cost
from daskw2v.training.cost.base import Forecast, Hardware, Load
from daskw2v.training.cost.constants import Constants, Line
from daskw2v.training.cost.load import zipf
from daskw2v.training.rotation.cost import rotation_cost
from tests.support import namespaces

TYPES, ROUNDS, PASSES, EPOCHS = 10_000, 2, 8, 2  # of the check; rounds and passes an epoch


def check(
    text: Text, small: Text, load: Load, c: Constants, workers: list[int], rates: list[float]
) -> Iterator[list[Any]]:
    """Train on workers behind limited links; yield a row of the table for each training."""
    seed = 0
    for n in workers:
        turned = Params(strategy="rotation", passes_per_epoch=PASSES, epochs=EPOCHS)
        kinds = {
            f"rotation, p={n}": turned.replace(n_partitions=n),
            f"rotation, p={DEALT}": turned.replace(n_partitions=DEALT),
            "averaging": Params(n_replicas=n, rounds_per_epoch=ROUNDS, epochs=EPOCHS),
        }
        with namespaces.cluster(n) as cluster:
            for params in kinds.values():
                train(small, params, cluster.client)  # compiles
            for rate in rates if n > 1 else rates[:1]:
                cluster.limit(rate)
                here = Hardware("", n, 1, 1, math.inf, rate * namespaces.MBIT, cores=os.cpu_count() or 1)
                for name, params in kinds.items():
                    seed, before = seed + 1, cluster.sent()  # a seed trained before would be there already
                    seconds, _ = train(text, params.replace(seed=seed), cluster.client)
                    sent = cluster.sent() - before
                    f = (
                        rotation_cost(load, params.n_partitions, PASSES * EPOCHS, here, c)
                        if params.strategy == "rotation"
                        else averaging_cost(load, ROUNDS * EPOCHS, here, c)
                    )
                    row = (n, rate, seconds, f.total, f.total / seconds, sent / 1e6, f.sent / 1e6)
                    yield [name, *row, *f.seconds.values()]


TERMS = ("text", "store", "train", "copies", "handling", "travel", "tasks")
CHECK = ("", "workers", "Mbit/s", "seconds", "model", "ratio", "MB sent", "model", *TERMS)
FORECAST = ("", "seconds", "TB sent", "GB a node", "TB on disk", *TERMS)


def report(head: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO) -> list[dict[str, Any]]:
    """Print a table, each row as it comes; return its rows."""
    made = []
    print(f"{head[0]:48}" + "".join(f"{name:>11}" for name in head[1:]), file=out)
    for name, *values in rows:
        cells = (f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}" for value in values)
        print(f"{name:48}" + "".join(f"{cell:>11}" for cell in cells), file=out, flush=True)
        made.append({"name": name, "values": values})
    return made


PAPER = Params(vector_size=300, sample=1e-5, epochs=1)
DATA = {"Query-Ads": (54.8e9, 200_000_000, 1500, 856), "Web": (1.066e12, 1_420_000_000, 3000, 7344)}
THREADS = 20  # of a node of the paper; it does not say how many nodes there are: a partition a thread is our guess


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


def planned(load: Load, hardware: Hardware, c: Constants) -> Plan:
    """Return the fastest plan that fits into memory, with a partition a thread and a group a process.

    Of each way to cut nodes into processes, it is that of the fewest passes whose pairs fit while they are dealt.
    """
    p, found = hardware.nodes * hardware.threads, list[Plan]()
    for processes in (k for k in range(1, hardware.threads + 1) if hardware.threads % k == 0):
        own, groups = replace(hardware, processes=processes), hardware.nodes * processes
        several = [Plan(2**i, groups, rotation_cost(load, p, 2**i, own, c, groups)) for i in range(8)]
        found.append(next((plan for plan in several if plan.forecast.memory < hardware.memory), several[0]))
    return min(found, key=lambda plan: (plan.forecast.memory >= hardware.memory, plan.forecast.total))


def plans(load: Load, hardware: Hardware, c: Constants) -> Iterator[list[Any]]:
    """Yield a row of the table for averaging and one for rotation."""
    n = hardware.nodes
    plan = planned(load, hardware, c)
    turned = f"rotation, p={n * hardware.threads}, {plan.groups} groups, {plan.passes} pass(es)"
    for name, f in ((f"averaging, {n} replicas", averaging_cost(load, 8 * n, hardware, c)), (turned, plan.forecast)):
        unfit = "" if f.memory < hardware.memory else " !"
        yield [name + unfit, f.total, f.sent / 1e12, f.memory / 1e9, f.disk / 1e12, *f.seconds.values()]


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
    return rows


def report_constants(c: Constants, out: TextIO) -> None:
    units = {
        "crowded": (1, ""),
        "pair_bytes": (1, ""),
        "row": (1e3, " ms"),
        "bucket_task": (1e3, " ms"),
        "bucket": (1e3, " ms"),
        "task": (1e3, " ms"),
    }
    texts = []
    for name, (factor, unit) in {f.name: units.get(f.name, (1e9, " ns")) for f in fields(c)}.items():
        value = getattr(c, name)
        several = [value.at(d) for d in SIZES] if isinstance(value, Line) else [value]
        texts.append(f"{name} {'/'.join(f'{factor * v:.3g}' for v in several)}{unit}")
    print(f"Constants (kernels: a pair at d={'/'.join(map(str, SIZES))}): {', '.join(texts)}", file=out)


class Calibrated(NamedTuple):
    """A text, another with next to no work in it, the load of the first, and constants."""

    text: Text
    small: Text
    load: Load
    constants: Constants


def calibrated(folder: Path, parts: float, file: Path | None, out: TextIO) -> Calibrated:
    """Encode texts, and read the constants from a file, or measure them and write them there."""
    text = encode(folder, parts, Params(max_final_vocab=TYPES))
    (folder / "small.txt").write_bytes(text.path.read_bytes()[:300_000])
    few = Params(max_final_vocab=1000)  # next to no work: tasks are left
    small = encode_file(folder / "small.txt", Store(str(folder / "small")), few)
    segment, read = segment_of(text, params := Params(epochs=EPOCHS))
    load = load_of(text, segment, params)
    if file and file.exists():
        return Calibrated(text, small, load, read_constants(file))
    constants = calibrate(text, small, segment, read, folder, load, out)
    if file:
        file.write_text(json.dumps(asdict(constants)))
    return Calibrated(text, small, load, constants)


SMOKE = Smoke(
    {"parts": 0.1, "rates": [1000], "workers": [2]},
    ("constants", "forecasts", *DATA),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=float, default=2, help="tenths of the 100 MB corpus")
    parser.add_argument("--rates", type=float, nargs="+", default=[1000, 100], help="Mbit/s of a worker's link")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--skip-runs", action="store_true", help="no trainings to check the model by")
    parser.add_argument("--constants", type=Path, help="file of an earlier calibration; written where it is missing")
    options = parsed(parser, SMOKE)
    out, checked = sys.stderr if options.json else sys.stdout, list[dict[str, Any]]()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that namespaces are removed
    with tempfile.TemporaryDirectory() as name:
        text, small, load, c = calibrated(Path(name), options.parts, options.constants, out)
        report_constants(c, out)
        lacking = "--skip-runs" if options.skip_runs else namespaces.missing()
        if lacking:
            print(f"\n{LEFT_OUT}the check by real trainings: {lacking}", file=out)
        else:
            print("\nReal trainings, and the model's seconds, traffic and terms", file=out)
            checked = report(CHECK, check(text, small, load, c, options.workers, options.rates), out)
    rows = report_forecasts(c, out)
    finish({"constants": c, "checks": checked, "forecasts": rows}, out, as_json=options.json)


if __name__ == "__main__":
    main()
