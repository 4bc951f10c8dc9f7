"""What benchmarks share: the text, the machine, and medians of alternating runs."""

import gzip
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from distributed import Client

DATA = Path(os.environ.get("DASKW2V_DATA", "../shared/data"))
SIMILARITY = [DATA / "eval" / name for name in ("ws353.tsv", "simlex999.tsv")]
ANALOGY = [DATA / "eval" / "google_analogy.txt"]


def wiki_parts() -> list[Path]:
    parts = sorted((DATA / "corpus" / "wiki").glob("*.txt.gz"))
    if not parts:
        sys.exit(f"No text below {DATA}/corpus/wiki: set DASKW2V_DATA to the folder of the evaluation data.")
    return parts


def write_text(path: Path, n_parts: int) -> Path:
    """Write the first parts of the corpus as one plain file."""
    with path.open("wb") as out:
        for part in wiki_parts()[:n_parts]:
            out.write(gzip.decompress(part.read_bytes()))
    return path


@contextmanager
def one_thread() -> Iterator[Client]:
    """Give a cluster of one thread inside this process: what one core does, and its memory is this process's."""
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        yield client


def alternate(runs: Mapping[str, Callable[[], float]], times: int) -> dict[str, list[float]]:
    """Call each run `times` times, one after the other in turn, so that a slow minute hits all of them."""
    results: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(times):
        for name, run in runs.items():
            results[name].append(run())
    return results


def spread(values: list[float]) -> str:
    """Return the relative distance of the extremes from the median."""
    middle = statistics.median(values)
    return f"-{1 - min(values) / middle:.0%}/+{max(values) / middle - 1:.0%}"


def machine() -> str:
    names = ("daskw2v", "numpy", "numba", "zarr", "dask", "gensim", "fasttext")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    return f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}, {versions}"
