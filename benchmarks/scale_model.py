"""What training costs at scale: a model of both strategies, calibrated here, checked here, and its forecast.

Its constants are seconds and bytes of single steps, measured on this machine. The check trains Wikipedia on workers
behind links of limited bandwidth (`benchmarks.namespaces`); they share this machine's cores, which the model knows. The
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
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TextIO

from benchmarks import namespaces
from benchmarks.calibration import SIZES, calibrate, load_of, read_constants, segment_of, text_of, train
from benchmarks.common import machine, write_text
from benchmarks.cost_model import (
    EPOCHS,
    PASSES,
    ROUNDS,
    TASKS,
    TYPES,
    Constants,
    Forecast,
    Hardware,
    Line,
    Load,
    averaging,
    rotation,
    zipf,
)
from benchmarks.train_speed import Text
from daskw2v.params import Params
from daskw2v.storage import Store


def check(
    text: Text, small: Text, load: Load, c: Constants, workers: list[int], rates: list[float]
) -> Iterator[list[Any]]:
    """Train on workers behind limited links; yield a row of the table for each training."""
    seed = 0
    for n in workers:
        kinds = {
            "rotation": Params(strategy="rotation", n_partitions=n, passes_per_epoch=PASSES, epochs=EPOCHS),
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
                    f = {
                        "rotation": rotation(load, n, PASSES * EPOCHS, here, c),
                        "averaging": averaging(load, ROUNDS * EPOCHS, here, c),
                    }[name]
                    yield [
                        name,
                        n,
                        rate,
                        seconds,
                        f.total,
                        f.total / seconds,
                        sent / 1e6,
                        f.sent / 1e6,
                        *f.seconds.values(),
                    ]


TERMS = ("text", "store", "train", "copies", "meet", "travel", "tasks")
CHECK = ("", "workers", "Mbit/s", "seconds", "model", "ratio", "MB sent", "model", *TERMS)
FORECAST = ("", "seconds", "TB sent", "GB a node", "TB on disk", *TERMS)


def report(head: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO) -> list[dict[str, Any]]:
    """Print a table, each row as it comes; return its rows."""
    made = []
    print(f"{head[0]:30}" + "".join(f"{name:>11}" for name in head[1:]), file=out)
    for name, *values in rows:
        cells = (f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}" for value in values)
        print(f"{name:30}" + "".join(f"{cell:>11}" for cell in cells), file=out, flush=True)
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


def planned(load: Load, p: int, hardware: Hardware, c: Constants, width: int = 1) -> tuple[int, Forecast]:
    """Return the fewest passes whose pairs fit into memory while they are dealt, or one; and their forecast."""
    several = [(passes, rotation(load, p, passes, hardware, c, width)) for passes in (2**i for i in range(8))]
    return next((plan for plan in several if plan[1].memory < hardware.memory), several[0])


def plans(load: Load, hardware: Hardware, c: Constants) -> Iterator[list[Any]]:
    """Yield a row of the table for averaging, rotation, and rotation whose meetings have all threads of a node."""
    n, threads = hardware.nodes, hardware.threads
    found = {f"averaging, {n} replicas": averaging(load, 8 * n, hardware, c)}
    for width, mark in ((1, ""), (threads, " *")):
        passes, forecast = planned(load, n * threads // width, hardware, c, width)
        found[f"rotation, p={n * threads // width}, {passes} pass(es){mark}"] = forecast
    for name, f in found.items():
        unfit = "" if f.memory < hardware.memory else " !"
        yield [name + unfit, f.total, f.sent / 1e12, f.memory / 1e9, f.disk / 1e12, *f.seconds.values()]


def report_scheduler(load: Load, hardware: Hardware, c: Constants, out: TextIO) -> None:
    """Print what one scheduler costs where each thread has a partition, and what would remove that."""
    p = hardware.nodes * hardware.threads
    passes, f = planned(load, p, hardware, c)
    tasks = TASKS * passes * p**2
    most = max(q for q in range(1, p + 1) if TASKS * passes * q**2 * c.task <= f.work)
    print(
        f"One scheduler, p={p}: {tasks / 1e6:,.1f} million tasks at {1 / c.task:,.0f}/s take {f.seconds['tasks']:,.0f} "
        f"s beside {f.work:,.0f} s of work. To hide them: {tasks / f.work:,.0f} tasks/s; or p={most}, so "
        f"{math.ceil(p / most)} threads a meeting.",
        file=out,
    )


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
            report_scheduler(load, hardware, c, out)
    print("\n* all threads of a node train one meeting: not in the code.  ! does not fit into memory.", file=out)
    return rows


def report_constants(c: Constants, out: TextIO) -> None:
    units = {
        "crowded": (1, ""),
        "pair_bytes": (1, ""),
        "row": (1e3, " ms"),
        "meeting": (1e3, " ms"),
        "task": (1e3, " ms"),
    }
    texts = []
    for name, (factor, unit) in {f.name: units.get(f.name, (1e9, " ns")) for f in fields(c)}.items():
        value = getattr(c, name)
        several = [value.at(d) for d in SIZES] if isinstance(value, Line) else [value]
        texts.append(f"{name} {'/'.join(f'{factor * v:.3g}' for v in several)}{unit}")
    print(f"Constants (kernels: a pair at d={'/'.join(map(str, SIZES))}): {', '.join(texts)}", file=out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=2, help="tenths of the 100 MB corpus")
    parser.add_argument("--rates", type=float, nargs="+", default=[1000, 100], help="Mbit/s of a worker's link")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--skip-runs", action="store_true", help="no trainings to check the model by")
    parser.add_argument("--constants", type=Path, help="file of an earlier calibration; written where it is missing")
    parser.add_argument("--json", action="store_true", help="results as JSON; the lines then go to stderr")
    options = parser.parse_args()
    out, checked = sys.stderr if options.json else sys.stdout, list[dict[str, Any]]()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that namespaces are removed
    with tempfile.TemporaryDirectory() as name:
        folder, params = Path(name), Params(epochs=EPOCHS)
        text = text_of(write_text(folder / "wiki.txt", options.parts), Store(str(folder / "work")), TYPES)
        (folder / "small.txt").write_bytes(text.path.read_bytes()[:300_000])
        small = text_of(folder / "small.txt", Store(str(folder / "small")), 1000)  # next to no work: tasks are left
        segment, read = segment_of(text, params)
        load = load_of(text, segment, params)
        if options.constants and options.constants.exists():
            c = read_constants(options.constants)
        else:
            c = calibrate(text, small, segment, read, folder, load, out)
            if options.constants:
                options.constants.write_text(json.dumps(asdict(c)))
        report_constants(c, out)
        lacking = "--skip-runs" if options.skip_runs else namespaces.missing()
        if lacking:
            print(f"\nNO CHECK BY REAL TRAININGS: {lacking}", file=out)
        else:
            print("\nReal trainings, and the model's seconds, traffic and terms", file=out)
            checked = report(CHECK, check(text, small, load, c, options.workers, options.rates), out)
    rows = report_forecasts(c, out)
    print(machine(), file=out)
    if options.json:
        print(json.dumps({"constants": asdict(c), "checks": checked, "forecasts": rows}, indent=1))


if __name__ == "__main__":
    main()
