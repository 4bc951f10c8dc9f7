"""The constants of `daskw2v estimate` on this machine, and its formulas against trainings here.

The constants are seconds and bytes of single steps; the package has those of one machine. The check trains Wikipedia
on workers of one thread, which share this machine's cores; the formulas know that. The last columns are the seconds of
the formulas by what takes them.

    python -m benchmarks.scale_model [--parts 2] [--workers 1 2 4] [--passes 8] [--times 1] [--table-rows 1048576]
                                     [--objective sgns]
"""

import argparse
import os
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.calibration import DEALT, SIZES, TABLE_ROWS, calibrate, measure_costs
from benchmarks.epochs import segment_of, training_of
from benchmarks.harness import Benchmark, Session, Smoke, alternate
from benchmarks.processes import cluster_of
from benchmarks.tables import Spread
from benchmarks.texts import MB, Text, encode, encode_file, name_of
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.objectives.registry import OBJECTIVES, find_objective
from daskw2v.sampling.segments import keep_thresholds
from daskw2v.store.storage import Store
from daskw2v.training.estimates.seconds import MACHINE_B, TERMS, Constants, Forecast, find_constants, forecast
from daskw2v.training.sizes import TOP, Load, Workers, known_text, mean_contexts
from daskw2v.training.strategies import make_work

MEASURED = [name for name, each in OBJECTIVES.items() if each.cost(Params(objective=name)) is not None]
TYPES, ROUNDS, EPOCHS = 10_000, 2, 2  # of the check; rounds an epoch
SMALL = 300_000  # bytes of a text with next to no work in it


def kinds(objective: str, n: int, passes: int) -> dict[str, Params]:
    """Return what n workers train, in so many passes an epoch; rotation if it trains the objective."""
    averaged = Params(objective=objective, strategy="averaging", n_replicas=n, rounds_per_epoch=ROUNDS, epochs=EPOCHS)
    if not find_objective(objective).bucket_trainers:
        return {"averaging": averaged}
    turned = Params(
        objective=objective, strategy="rotation", n_partitions=DEALT, passes_per_epoch=passes, epochs=EPOCHS
    )
    return {
        f"rotation, p={DEALT}": turned,
        f"rotation, p={DEALT}, a group a worker": turned.replace(n_groups=n),
        f"rotation, p={DEALT}, a group a worker, bfloat16": turned.replace(n_groups=n, sent_dtype="bfloat16"),
        "averaging": averaged,
    }


def load_of(text: Text, params: Params) -> Load:
    """Return the load of a text, in all epochs."""
    counts, (segment, _) = text.vocabulary.load().counts, segment_of(text, params)
    kept = counts * (keep_thresholds(counts, params.sample) / 2.0**32)
    contexts = mean_contexts(np.diff(segment.bounds).astype(np.float64), params)
    pairs = float(kept.sum()) * contexts * params.epochs
    return Load(text.corpus.n_tokens * params.epochs, len(counts), pairs, kept[:TOP] / kept.sum())


def forecast_of(params: Params, text: Text, load: Load, workers: Workers, c: Constants) -> Forecast:
    """Return the forecast of a training of a text, of which the load is known, from the constants of a machine."""
    steps = find_constants(params, "cpu", c)
    assert steps is not None
    work = make_work(params, Resources(), known_text(text.corpus, text.vocabulary, params), workers)
    work.load = load
    expected = forecast(work, steps)
    assert expected is not None
    return expected


def check(session: Session, text: Text, small: Text, c: Constants) -> None:
    """Train in turn, and print what the formulas say of that.

    All processes share this machine's cores: nothing ends before these have done all that processors do.
    """
    options, cores, load = session.options, os.cpu_count() or 1, load_of(text, Params(epochs=EPOCHS))
    columns = ("s", "by the formulas", "formulas / s", "MB sent", "MB sent by the formulas", *TERMS)
    table = session.table("Trainings here", columns, ",.3g")
    for n in options.workers:
        chosen, here = kinds(options.objective, n, options.passes), Workers(n, 1, cores=cores)
        with cluster_of(n) as client:
            for params in chosen.values():
                training_of(client, small, params)  # compiles
            found = alternate(
                {name: partial(training_of, client, text, params) for name, params in chosen.items()}, options.times
            )
        for name, several in found.items():
            expected, alone = (
                forecast_of(chosen[name], text, load, workers, c) for workers in (here, replace(here, cores=1))
            )
            seconds = max(expected.total, (sum(alone.seconds.values()) - alone.seconds["waiting"]) / cores)
            took, sent = (
                Spread.of(values) for values in ((one.seconds for one in several), (one.sent / MB for one in several))
            )
            table.row(
                f"{name}: {n} worker(s)",
                took,
                seconds,
                seconds / took.middle,
                sent,
                expected.sent / MB,
                *expected.seconds.values(),
            )


def constants(session: Session, text: Text, small: Text) -> Constants:
    """Measure the constants; print them beside those that the package has."""
    found = calibrate(text, small, session.options.table_rows, 2 * session.options.passes, session.folder)
    heads = [f"{where}{what}" for where in ("here: ", "package: ") for what in ("fixed", "a dimension")]
    table = session.table("Constants, in seconds or bytes", heads, ".3g")
    for name in MACHINE_B:
        table.row(name, *found[name], *MACHINE_B[name])
    return found


def costs(session: Session, text: Text) -> None:
    """Print the cost of the objectives' kernels for windows, in seconds of sgns."""
    heads = [*(f"d={d}" for d in SIZES), f"d={SIZES[0]}, rows that no cache has", "package"]
    table = session.table("Kernels, over that of sgns", heads, ".3g")
    for name, found in measure_costs(MEASURED, text, session.options.table_rows).items():
        table.row(name, *found, find_objective(name).cost(Params(objective=name)))


def measure(session: Session) -> None:
    options, folder = session.options, session.folder
    session.text = name_of(options.parts)
    text = encode(folder, options.parts, Params(max_final_vocab=TYPES))
    (folder / "small.txt").write_bytes(text.path.read_bytes()[:SMALL])
    small = encode_file(folder / "small.txt", Store(str(folder / "small")), Params(max_final_vocab=1000))
    costs(session, text)
    check(session, text, small, constants(session, text, small))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", type=float, default=2, help="of 10 MB")
    parser.add_argument("--objective", choices=MEASURED, default="sgns", help="of the check")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="of the check")
    parser.add_argument("--passes", type=int, default=8, help="an epoch, of rotation; constants are of twice as many")
    parser.add_argument("--times", type=int, default=1, help="trainings of each kind")
    parser.add_argument("--table-rows", type=int, default=TABLE_ROWS, help="of a table that no cache holds")


BENCHMARK = Benchmark(
    __doc__,
    (
        "daskw2v/training/sizes.py",
        "daskw2v/training/estimates",
        "daskw2v/training/rotation",
        "daskw2v/training/averaging",
        "daskw2v/kernels",
    ),
    Smoke(
        {"parts": 0.1, "workers": [2], "passes": 1, "table_rows": 1 << 14},
        ("Constants", "bucket_task", "Trainings here", "averaging"),
    ),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
