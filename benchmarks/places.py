"""What it costs that checksums say where chunks belong: models written and read, and `train`, with and without places.

Both ways run in turn, in one process; the times are medians.

    python -m benchmarks.places [--words 200000] [--size 300] [--megabytes 20] [--times 5] [--json]
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from unittest.mock import patch

import numpy as np
from distributed import Client

from benchmarks.common import alternate, finish, one_thread, spread
from benchmarks.options import Smoke, parsed
from benchmarks.stopwatch import Took, stopwatch
from daskw2v import Params, Resources, train
from daskw2v.models.attempts import finish_tables
from daskw2v.models.tables import create_model, read_table, write_table_rows
from daskw2v.store.checksums import METADATA, with_checksum
from daskw2v.store.places import Places
from daskw2v.store.retries import RetryingStore
from daskw2v.store.storage import Store
from daskw2v.training.blocks import rows_per_block

_WORDS = 30_000  # different ones in the text
_SENTENCE = 20  # words


@dataclass(frozen=True)
class Row:
    """Seconds of processor time: medians without and with places."""

    work: str
    without: float
    with_places: float
    cost: str
    spread: str


@contextmanager
def without_places() -> Iterator[None]:
    """Let stores write and read as they did before chunks were bound to places."""

    async def finish_plainly(store: RetryingStore, array: str) -> None:
        value = store._held.pop(f"{array}/{METADATA}", None)
        if value is not None:
            await store._store.set(f"{array}/{METADATA}", type(value).from_bytes(with_checksum(value.to_bytes())))

    def nothing(*_: object) -> None:
        return None

    with (
        patch.object(RetryingStore, "finish", finish_plainly),
        patch.object(Places, "declare", lambda self, key, content: content),
        patch.object(Places, "wrote", nothing),
        patch.object(Places, "read", nothing),
        patch.object(Places, "check", nothing),
    ):
        yield


def write_text(path: Path, megabytes: float) -> Path:
    """Write sentences of words that are as frequent as words are."""
    rng, size = np.random.default_rng(0), int(megabytes * 1e6)
    with path.open("w") as out:
        while out.tell() < size:
            words = rng.zipf(1.3, (5000, _SENTENCE)) % _WORDS
            out.writelines(" ".join(f"w{word}" for word in line) + "\n" for line in words.tolist())
    return path


def measure(folder: Path, client: Client, words: int, size: int, text: Path, times: int) -> list[Row]:
    """Return a row for each kind of work."""
    rows, number = np.random.default_rng(0).random((words, size), np.float32), count()
    models = {way: Store(str(folder / way)) for way in ("without", "with")}

    def write(way: str) -> None:
        create_model(models[way], {"input": rows.shape}, step)
        parts = (write_table_rows(models[way], "input", at, rows[at : at + step]) for at in range(0, words, step))
        finish_tables(models[way], list(parts))

    def read(way: str) -> None:
        np.testing.assert_array_equal(read_table(models[way], "input")[-1], rows[-1])

    def run(way: str) -> None:
        params, resources = Params(vector_size=100, min_count=1, epochs=1), Resources(threads=1, block_size="1 MiB")
        train(
            str(text), work=folder / f"{way}-{next(number)}", params=params, resources=resources, client=client,
            listener=None,
        )  # fmt: skip

    step = rows_per_block(size)
    kinds: Mapping[str, Callable[[str], None]] = {
        f"write {words:,} x {size}": write,
        f"read {words:,} x {size}": read,
        f"train {text.stat().st_size / 1e6:.0f} MB": run,
    }
    return [compared(work, function, times) for work, function in kinds.items()]


def compared(work: str, function: Callable[[str], None], times: int) -> Row:
    """Return what a work takes both ways; the first call of each is not counted."""

    def timed(way: str) -> Took:
        took = stopwatch()
        with without_places() if way == "without" else nullcontext():
            function(way)
        return took()

    found = alternate({way: partial(timed, way) for way in ("without", "with")}, times + 1)
    used = {way: [took.processor_seconds for took in runs[1:]] for way, runs in found.items()}
    without, bound = (statistics.median(used[way]) for way in ("without", "with"))
    ratios = [b / a for a, b in zip(used["without"], used["with"], strict=True)]
    return Row(work, round(without, 3), round(bound, 3), f"{statistics.median(ratios) - 1:+.1%}", spread(ratios))


SMOKE = Smoke({"words": 2000, "size": 10, "megabytes": 0.1, "times": 1}, ("write", "read", "train"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=200_000)
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--times", type=int, default=5)
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    with tempfile.TemporaryDirectory() as place, one_thread() as client:
        text = write_text(Path(place) / "text.txt", options.megabytes)
        rows = measure(Path(place), client, options.words, options.size, text, options.times)
    print("| work | without, s | with places, s | cost | spread |\n|---|---|---|---|---|", file=out)
    for row in rows:
        print(f"| {row.work} | {row.without} | {row.with_places} | {row.cost} | {row.spread} |", file=out)
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
