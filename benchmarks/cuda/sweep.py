"""Words/s of SGNS by how many warps train at a time, and by how many rows stay out of their rings."""

from benchmarks.cuda.bench import Bench, Corpus
from benchmarks.cuda.launching import Launch
from benchmarks.tables import Table
from daskw2v.config.params import Params

HOT_ROWS = (0, 16, 64, 200, 1000)


def in_flight_up_to(room: int, first: int) -> list[int]:
    """Return numbers of warps, each twice the one before, and as many as there is room for."""
    numbers = [first]
    while numbers[-1] < room:
        numbers.append(min(room, 2 * numbers[-1]))
    return numbers


def room_of(params: Params, corpus: Corpus) -> int:
    """Return how many warps the GPU has room for, of a kernel over text."""
    launch = Launch(params, corpus)
    launch.run()
    return launch.in_flight


def sweep(bench: Bench) -> None:
    """Print million words/s, before and after subsampling, of the kernel alone."""
    table = bench.table(
        "sweep", "sgns, d=128, N=5, W=5, kernel alone: million words/s", ("before subsampling", "trained", "warps")
    )
    params = Params(vector_size=128)
    for corpus in bench.corpora:
        room = room_of(params, corpus)
        for n in in_flight_up_to(room, min(room, bench.options.fewest)):
            _row(bench, table, corpus, params, f"{corpus.name}, max_in_flight={n:,}", n, 0)
        for hot_rows in HOT_ROWS:
            _row(bench, table, corpus, params, f"{corpus.name}, hot_rows={hot_rows:,}", room, hot_rows)


def _row(bench: Bench, table: Table, corpus: Corpus, params: Params, name: str, n: int, hot_rows: int) -> None:
    launch = Launch(params, corpus, n, hot_rows)
    seconds = bench.measure({name: launch.seconds})[name]
    speed = seconds.inverse()
    table.row(name, speed.scaled(launch.raw / 1e6), speed.scaled(launch.trained / 1e6), launch.in_flight)
