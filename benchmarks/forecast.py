"""Forecasts of training by the formulas of `daskw2v estimate`, on 1 to 64 machines: seconds, and share of the ideal.

Averaging has a replica a machine, up to as many as keep quality. Rotation has a partition a thread, a group a worker,
rows sent as bfloat16, and the fastest of several numbers of workers a machine and of passes that fit into memory; or
the settings that "auto" tries, which `daskw2v estimate` forecasts. The ideal is the fastest on the fewest machines,
divided by their number. Words are drawn by Zipf's law. Nothing is trained.

    python -m benchmarks.forecast [--words 17e9] [--types 1000000] [--size 300] [--epochs 1]
        [--machines 1 2 4 8 16 64] [--threads 16] [--gbits 10] [--memory 64]
"""

import argparse
import math
from collections.abc import Iterator

from benchmarks.harness import Benchmark, Session, Smoke
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import counted
from daskw2v.training.estimates.memory import training_memory
from daskw2v.training.estimates.seconds import MACHINE_B, forecast
from daskw2v.training.sizes import Text, Workers, estimate_load, subsampled_frequencies
from daskw2v.training.strategies import find_strategy, make_work

AVERAGING, ROTATION, AUTO = "averaging", "rotation", "rotation by auto"
PASSES = [2**i for i in range(8)]  # an epoch, of rotation


def tried(kind: str, workers: Workers, options: argparse.Namespace) -> Iterator[Params]:
    """Yield the settings of a kind on workers."""
    params = Params(vector_size=options.size, epochs=options.epochs, strategy=kind.partition(" ")[0])
    if kind in (AVERAGING, AUTO):
        found = find_strategy(params.strategy.name).tried(params, text_of(options), workers)
        yield from (params.replace(**changes) for changes in found)
        return
    groups = workers.n if workers.n > 1 else None
    for passes in PASSES:
        yield params.replace(
            n_partitions=max(2, workers.slots), n_groups=groups, passes_per_epoch=passes, sent_dtype="bfloat16"
        )


def text_of(options: argparse.Namespace) -> Text:
    """Return the numbers of a text by Zipf's law, of which words besides the most frequent ones are never dropped."""
    plain, kept = (subsampled_frequencies(options.types, Params(sample=sample)) for sample in (0, Params.sample))
    left, types = int(options.words * (1 - plain.sum() + kept.sum())), options.types
    return Text(int(options.words), types, left, types, 1, 1, 1, types, types)


def seconds_of(kind: str, n: int, options: argparse.Namespace) -> float:
    """Return the least seconds of all epochs on n machines, whose workers share memory and link of a machine."""
    text, least = text_of(options), math.inf
    load = estimate_load(text, Params(epochs=options.epochs))
    for k in (k for k in range(1, options.threads + 1) if options.threads % k == 0):
        if k > 1 and kind == AVERAGING:  # a replica a worker
            break
        limit, network = options.memory * 1e9 / k, options.gbits * 1e9 / 8 / k
        workers = Workers(n * k, options.threads // k, n * k * limit, limit=limit, network=network)
        for params in tried(kind, workers, options):
            work = make_work(params, Resources(), text, workers)
            work.load = load  # of all works, computed once
            expected = forecast(work, MACHINE_B)
            if expected is not None and training_memory(work).fits_into(workers):
                least = min(least, expected.total)
    return least if least < math.inf else math.nan


def measure(session: Session) -> None:
    options = session.options
    session.text = f"no text: {options.words:,.0f} words of {options.types:,} types by Zipf's law, d={options.size}"
    machines = sorted(options.machines)
    where = f"{options.threads} threads, {options.memory:g} GB and {options.gbits:g} Gbit/s a machine"
    seconds = {name: [seconds_of(name, n, options) for n in machines] for name in (AVERAGING, ROTATION, AUTO)}
    ideal = machines[0] * min(several[0] for several in seconds.values())
    heads = [str(n) for n in machines]
    hours = session.table(f"Hours of an epoch; {where}", heads, ".3g")
    for name, several in seconds.items():
        hours.row(name, *(one / options.epochs / 3600 for one in several))
    fastest = [min(column) for column in zip(*seconds.values(), strict=True)]
    machine_hours = (n * one / 3600 for n, one in zip(machines, fastest, strict=True))
    hours.row(f"the fastest: machine hours of {counted(options.epochs, 'epoch')}", *machine_hours)
    shares = session.table(f"Share of the ideal, %; {where}", heads, ".0f")
    for name, several in seconds.items():
        shares.row(name, *(100 * ideal / n / one for n, one in zip(machines, several, strict=True)))
    session.note(
        "Steps are as fast as on the machine of the package's constants; 16 threads are taken to be 16 times as fast "
        "as one: on 14 cores an epoch of 100 MB was 3.3 times as fast."
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--words", type=float, default=17e9, help="of an epoch; 100 GB of Wikipedia's text have 17e9")
    parser.add_argument("--types", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=300, help="vector_size")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 2, 4, 8, 16, 64])
    parser.add_argument("--threads", type=int, default=16, help="of a machine")
    parser.add_argument("--gbits", type=float, default=10, help="Gbit/s of a machine's link")
    parser.add_argument("--memory", type=float, default=64, help="GB of a machine")


BENCHMARK = Benchmark(
    __doc__,
    (
        "daskw2v/training/sizes.py",
        "daskw2v/training/estimates",
        "daskw2v/training/averaging/work.py",
        "daskw2v/training/rotation/work.py",
    ),
    Smoke({"machines": [2], "words": 1e7}, ("averaging", "rotation", "Share")),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
