"""What benchmarks share: the text, the machine, and medians of alternating runs."""

import gzip
import json
import math
import os
import platform
import statistics
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO, TypeVar

import psutil
from distributed import Client, LocalCluster

DATA = Path(os.environ.get("DASKW2V_DATA", "../shared/data"))
SIMILARITY = [DATA / "eval" / name for name in ("ws353.tsv", "simlex999.tsv")]
ANALOGY = [DATA / "eval" / "google_analogy.txt"]


def wiki_parts() -> list[Path]:
    parts = sorted((DATA / "corpus" / "wiki").glob("*.txt.gz"))
    if not parts:
        sys.exit(f"No text below {DATA}/corpus/wiki: set DASKW2V_DATA to the folder of the evaluation data.")
    return parts


def write_text(path: Path, parts: float) -> Path:
    """Write the first parts of the corpus as one plain file: the lines of all of them, and of a share of the last."""
    with path.open("wb") as out:
        for number, part in enumerate(wiki_parts()[: math.ceil(parts)]):
            out.write(first_lines(gzip.decompress(part.read_bytes()), parts - number))
    return path


def first_lines(text: bytes, share: float) -> bytes:
    """Return the whole lines of the first share of a text; all of it from 1 on."""
    return text if share >= 1 else text[: text.rfind(b"\n", 0, int(share * len(text))) + 1]


@contextmanager
def one_thread() -> Iterator[Client]:
    """Give a cluster of one thread inside this process: what one core does, and its memory is this process's."""
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        yield client


@contextmanager
def cluster_of(n: int, memory_limit: str = "auto") -> Iterator[Client]:
    """Give a cluster of worker processes of one thread; the client's `cluster` is it."""
    with (
        LocalCluster(n_workers=n, threads_per_worker=1, memory_limit=memory_limit, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


Result = TypeVar("Result")


def alternate(runs: Mapping[str, Callable[[], Result]], times: int) -> dict[str, list[Result]]:
    """Call each run `times` times, one after the other in turn, so that a slow minute hits all of them."""
    results: dict[str, list[Result]] = {name: [] for name in runs}
    for _ in range(times):
        for name, run in runs.items():
            results[name].append(run())
    return results


def spread(values: list[float]) -> str:
    """Return the relative distance of the extremes from the median."""
    middle = statistics.median(values)
    return f"-{1 - min(values) / middle:.0%}/+{max(values) / middle - 1:.0%}"


class Peaks:
    """The largest resident size of each worker process, sampled."""

    def __init__(self, pids: list[int]) -> None:
        self.rss = dict.fromkeys(pids, 0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            for pid in self.rss:
                try:
                    self.rss[pid] = max(self.rss[pid], psutil.Process(pid).memory_info().rss)
                except psutil.NoSuchProcess:
                    self.rss[pid] = -1  # a worker was killed: that is a failure

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def machine() -> str:
    names = ("daskw2v", "numpy", "numba", "numba-cuda", "zarr", "dask", "gensim", "fasttext")
    found = {name: _version(name) for name in names}
    versions = ", ".join(f"{name} {version}" for name, version in found.items() if version)
    return f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}, {versions}"


def print_rows(head: str, rows: Iterable[Any], line: Callable[[Any], str], *, as_json: bool) -> list[Any]:
    """Print the line of each named tuple when it is there, below a head, and then what `finish` does; return them."""
    out, found = sys.stderr if as_json else sys.stdout, []
    print(head, file=out)
    for row in rows:
        print(line(row), file=out, flush=True)
        found.append(row)
    finish([row._asdict() for row in found], out, as_json=as_json)
    return found


def finish(values: Any, out: TextIO, *, as_json: bool) -> None:
    """Print the machine, and the values as JSON if asked to: dataclasses, and lists and mappings of such."""
    print(machine(), file=out)
    if as_json:
        print(json.dumps(values, indent=1, default=asdict))
