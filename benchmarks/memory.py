"""The estimate of memory against what worker processes really take, by stage.

Each setting has a cluster, a work directory and a cache of compiled kernels of its own: kernels are compiled as on a
new machine. A peak is the largest resident size of a worker process during the stage (VmHWM of Linux, set back before
each stage), of the worker that has most: it counts what the process shares with others too, as Dask's limit does.
Training is measured with the writing and the checks of the model. The estimate has the true numbers of the text.
Then each setting is run again with the estimate's largest stage and a quarter more as memory_limit. With --cgroup, each
worker then has a cgroup of its own with that limit, in which the kernel ends what takes more; it takes root.

--random N takes N settings that nobody chose: workers, threads, a strategy, an objective that it trains, sizes and
other Params are drawn.

    python -m benchmarks.memory [--types 1000000] [--setting NAME ... | --random N [--seed S]] [--parts 5] [--cgroup]
        [--work DIR] [--json]
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from distributed import Client, LocalCluster

from benchmarks.common import finish, write_text
from benchmarks.large_vocabulary import write_zipf
from benchmarks.options import Smoke, parsed
from daskw2v.cluster import peak_memory, usable_memory
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import Daskw2vError
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store
from daskw2v.training.averaging.merge import MERGE_RULES
from daskw2v.training.memory.base import Workers
from daskw2v.training.memory.stages import estimate
from daskw2v.training.memory.text import known_text
from daskw2v.training.pipeline import train_model
from daskw2v.training.setup import check_choices
from daskw2v.training.strategies import STRATEGIES
from daskw2v.vocabulary.count import build_vocabulary

TOKENS_PER_TYPE = 4
LIMIT = 1.25  # of the estimate
CGROUPS = Path("/sys/fs/cgroup")
MB = 1 << 20


@dataclass(frozen=True)
class Setting:
    """What is run; `types` is a share of those asked for, None for Wikipedia; `memory` a limit that it must meet."""

    name: str
    params: dict[str, Any]
    types: float | None = 1.0
    workers: int = 1
    threads: int = 1
    memory: str | int = 0


@dataclass(frozen=True)
class Row:
    setting: str
    stage: str
    estimated: float
    measured: float
    ratio: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", self.estimated / self.measured)


AVERAGING = {"epochs": 1, "strategy": "averaging", "rounds_per_epoch": 3}
TWO = {"epochs": 1, "strategy": "averaging", "n_replicas": 2, "warmup": 0.25}
ROTATION = {"epochs": 1, "strategy": "rotation", "passes_per_epoch": 2}
COLUMNS = {"epochs": 1, "strategy": "columns", "objective": "context_matrix", "context_size": 256}
SETTINGS = [
    Setting("Wikipedia, sgns 100", AVERAGING, types=None),
    Setting("Wikipedia, sgns 100, 2 threads", AVERAGING, types=None, threads=2),
    Setting("sgns 100", AVERAGING),
    Setting("sgns 100, 2 threads", AVERAGING, threads=2),
    Setting("cbow_hs 300", {**AVERAGING, "objective": "cbow_hs", "vector_size": 300}, types=0.5),
    Setting("sgns 100, 2 workers", TWO, types=0.5, workers=2),
    Setting("sgns 300, 2 workers", {**TWO, "vector_size": 300}, types=0.25, workers=2),
    Setting("rotation 100", ROTATION),
    Setting("rotation 300, 2 workers", {**ROTATION, "vector_size": 300}, types=0.25, workers=2),
    Setting("rotation 100, work directory", {**ROTATION, "n_partitions": 16}, memory="1 GB"),
    Setting("context_matrix 100", COLUMNS, types=0.5),
    Setting("context_matrix 300, 2 workers", {**COLUMNS, "vector_size": 300}, types=0.25, workers=2),
]


# What may be drawn for a setting, beside its sizes: a value is drawn of each, and left out if no part reads it
DRAWN: dict[str, Callable[[random.Random], Any]] = {
    "window": lambda draw: draw.randint(1, 12),
    "shrink_windows": lambda draw: draw.random() < 0.5,
    "sample": lambda draw: draw.choice([0.0, 1e-5, 1e-4, 1e-3]),
    "negative": lambda draw: draw.randint(1, 15),
    "negative_sharing": lambda draw: draw.choice(["shared", "pair"]),
    "cbow_mean": lambda draw: draw.random() < 0.5,
    "context_size": lambda draw: draw.choice([32, 64, 128, 256, 512]),
    "centered": lambda draw: draw.random() < 0.5,
    "n_replicas": lambda draw: draw.randint(1, 4),
    "rounds_per_epoch": lambda draw: draw.randint(1, 8),
    "merge": lambda draw: draw.choice(sorted(MERGE_RULES)),
    "n_partitions": lambda draw: draw.randint(2, 24),
    "passes_per_epoch": lambda draw: draw.randint(1, 4),
    "negative_rule": lambda draw: draw.choice(["tns", "sns", "bns"]),
}


def accepted(values: dict[str, Any], threads: int) -> bool:
    """Tell whether a run with these Params would begin."""
    try:
        check_choices(Params(**values), Resources(threads=threads))
    except Daskw2vError:
        return False
    return True


def draw_settings(n: int, seed: int) -> Iterator[Setting]:
    """Yield settings that nobody chose."""
    draw = random.Random(seed)
    for _ in range(n):
        workers, threads, types = draw.randint(1, 2), draw.randint(1, 2), 2 ** -draw.uniform(0, 5)
        strategy = draw.choice(sorted(STRATEGIES))
        trained = [
            name
            for name in sorted(set(OBJECTIVES) - {"subwords"})  # it takes hours for so many words
            if accepted({"objective": name, "strategy": strategy}, threads)
        ]
        values: dict[str, Any] = {
            "epochs": 1,
            "objective": draw.choice(trained),
            "strategy": strategy,
            "vector_size": round(16 * 2 ** draw.uniform(0, 4.5)),
        }
        fields = {name: drawn(draw) for name, drawn in DRAWN.items()}
        for name, value in fields.items():
            if accepted({**values, name: value}, threads):
                values[name] = value
        name = (
            f"{values['objective']} {values['vector_size']} by {values['strategy']}, {types:.2f}, {workers} x {threads}"
        )
        yield Setting(name, values, types, workers, threads)


class Text(NamedTuple):
    paths: list[str]
    params: dict[str, Any]


def _measure() -> int:
    """Return the largest resident size of this process since the last call, and begin anew."""
    peak = peak_memory()
    Path("/proc/self/clear_refs").write_text("5")
    return peak


@contextmanager
def cluster_of(setting: Setting, memory: str | int) -> Iterator[Client]:
    how = {"n_workers": setting.workers, "threads_per_worker": setting.threads, "memory_limit": memory}
    with LocalCluster(**how, dashboard_address=":0") as cluster, Client(cluster) as client:
        yield client


@contextmanager
def cgroup(limit: int) -> Iterator[Path]:
    """Make a cgroup in which processes get so many bytes, of version 2 or 1."""
    unified = (CGROUPS / "cgroup.controllers").exists()
    group = CGROUPS / ("" if unified else "memory") / f"daskw2v-{uuid.uuid4().hex[:8]}"
    group.mkdir()
    try:
        (group / ("memory.max" if unified else "memory.limit_in_bytes")).write_text(str(limit))
        yield group
    finally:
        group.rmdir()


@contextmanager
def confined_cluster_of(setting: Setting, limit: int) -> Iterator[Client]:
    """Give a cluster whose workers have no nanny, each in a cgroup from its first instruction on."""
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        ExitStack() as workers,
    ):
        for _ in range(setting.workers):
            procs = workers.enter_context(cgroup(limit)) / "cgroup.procs"
            command = [
                "sh", "-c", f'echo $$ > {procs}; exec "$@"', "sh",
                sys.executable, "-m", "dask", "worker", cluster.scheduler_address, "--no-nanny",
                "--nthreads", str(setting.threads), "--memory-limit", str(limit), "--no-dashboard",
            ]  # fmt: skip
            worker = workers.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL))
            workers.callback(worker.terminate)
        client.wait_for_workers(setting.workers)
        yield client


def run(setting: Setting, text: Text, folder: Path, client: Client) -> tuple[list[Row], int]:
    """Run all stages; return what each took, and how many workers were started again."""
    work, params = Store(str(folder)), Params(**text.params, **setting.params)
    resources = Resources(worker_timeout=30)
    pids, peaks = set(client.run(os.getpid).values()), dict[str, int]()

    def measured(stage: str, function: Callable[..., Any], *args: Any) -> Any:
        client.run(_measure)
        result = function(*args, work, params, resources, client)
        peaks[stage] = max(client.run(_measure).values())
        return result

    corpus = measured("encode", build_corpus, text.paths)
    vocabulary = measured("vocabulary", build_vocabulary, corpus)
    measured("train", train_model, corpus, vocabulary)
    workers = Workers(setting.workers, setting.threads, usable_memory(client))
    found = estimate(params, resources, known_text(corpus, vocabulary, params), workers)
    restarts = len(set(client.run(os.getpid).values()) - pids)
    sizes = {stage.name: stage.bytes for stage in found.stages}
    sizes["train"] = max(sizes["train"], sizes.pop("publish"))
    return [Row(setting.name, name, size / MB, peaks[name] / MB) for name, size in sizes.items()], restarts


def run_with_limits(setting: Setting, text: Text, place: Path, limit: int, *, confined: bool) -> str:
    """Run again, the workers' memory limited by Dask and, if asked for, by the kernel; return what became of it."""
    with cluster_of(setting, limit) as client:
        ends = [f"{run(setting, text, place / 'again', client)[1]} restarts"]
    if confined:
        try:
            with confined_cluster_of(setting, limit) as client:
                run(setting, text, place / "confined", client)
        except (Daskw2vError, OSError) as error:
            ends.append(f"cgroup: {' '.join(str(error).split())[:80]}")
        else:
            ends.append("cgroup: done")
    return f"{limit / MB:7.0f} MB: {', '.join(ends)}"


def compare(
    settings: Sequence[Setting], n_types: int, parts: float, folder: Path, out: TextIO, *, confined: bool
) -> Iterator[list[Row]]:
    texts: dict[float | None, Text] = {}
    print(f"{'setting':44} {'stage':12} {'estimate':>9} {'peak':>9} {'ratio':>6}   with a limit", file=out)
    for number, setting in enumerate(settings):
        if setting.types not in texts:
            texts[setting.types] = write(setting.types, n_types, parts, folder)
        text, place = texts[setting.types], folder / str(number)
        os.environ["NUMBA_CACHE_DIR"] = str(place / "cache")
        with cluster_of(setting, setting.memory) as client:
            rows, restarts = run(setting, text, place / "work", client)
        limit = int(LIMIT * MB * max(row.estimated for row in rows))
        end = run_with_limits(setting, text, place, limit, confined=confined)
        for row in rows:
            figures = f"{row.estimated:6.0f} MB {row.measured:6.0f} MB {row.ratio:6.2f}"
            print(f"{row.setting:44} {row.stage:12} {figures}   {end if row is rows[-1] else ''}", file=out, flush=True)
        if restarts:
            print(f"{setting.name}: {restarts} restarts at {setting.memory}", file=out, flush=True)
        yield rows


def write(share: float | None, n_types: int, parts: float, folder: Path) -> Text:
    """Write Wikipedia, or types that follow Zipf's law, all of them once at least."""
    place = folder / f"text-{share}"
    place.mkdir()
    if share is None:
        return Text([str(write_text(place / "wiki.txt", parts))], {})
    n = int(share * n_types)
    return Text([str(path) for path in write_zipf(place, n, TOKENS_PER_TYPE * n)[0]], {"min_count": 1})


SMOKE = Smoke({"types": 20_000, "setting": ["rotation 300, 2 workers"]}, ("encode", "vocabulary", "train"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--types", type=int, default=1_000_000, help="of the largest text; 2,000,000 take 8 GB")
    parser.add_argument("--parts", type=float, default=5, help="tenths of the 100 MB corpus")
    parser.add_argument("--setting", action="append", help="only settings whose name holds this")
    parser.add_argument("--random", type=int, metavar="N", help="N settings that are drawn instead")
    parser.add_argument("--seed", type=int, default=1, help="of --random")
    parser.add_argument("--cgroup", action="store_true", help="run workers in cgroups too")
    parser.add_argument("--work", type=Path, help="folder for text and work; a temporary one by default")
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    settings = SETTINGS if options.random is None else draw_settings(options.random, options.seed)
    chosen = [s for s in settings if not options.setting or any(name in s.name for name in options.setting)]
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        rows = [
            row
            for rows in compare(chosen, options.types, options.parts, Path(name), out, confined=options.cgroup)
            for row in rows
        ]
    far = [row for row in rows if not 0.8 <= row.ratio <= 1.2]
    print(f"{len(rows) - len(far)} of {len(rows)} within 20 %", file=out)
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
