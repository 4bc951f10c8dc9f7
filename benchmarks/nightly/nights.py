"""What all tables share: nights with what they took, how versions are judged, and what is printed."""

import gzip
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar, get_args

from distributed import Client

from benchmarks.tables import Cell, Table
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.batches import batch_blocks
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.evaluation import by_name, evaluate
from daskw2v.models.vectors import Vectors
from daskw2v.progress import Listener, Progress
from daskw2v.retraining.gates import Gates
from daskw2v.retraining.outcome import Summary
from daskw2v.retraining.policy import Policy
from daskw2v.retraining.retrain import retrain
from daskw2v.store.storage import Store
from daskw2v.training.pipeline import train

T = TypeVar("T")
STAGES = ("encode", "vocabulary", "train", "judge")  # the last until the end: aligned, written and published too
TIMES = ("s", "CPU s", *(f"s {stage}" for stage in STAGES), "MB read")  # columns of `Took.cells`
WARM = 1_000_000  # bytes to compile by
_NOTHING: dict[str, Any] = {each.name: None for each in fields(Gates) if type(None) in get_args(each.type)}
OPEN = Gates(**_NOTHING)


@dataclass
class Report:
    """Prints tables as they come, and keeps them, and what is not as it should be."""

    out: TextIO
    tables: list[Table] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def table(self, title: str, columns: Sequence[str]) -> Table:
        self.tables.append(Table("", title, columns, self.out, ".4g"))
        return self.tables[-1]


@dataclass(frozen=True)
class Setting:
    """How nights are; the resources name the sets that versions are judged by."""

    params: Params
    resources: Resources
    client: Client
    policy: Policy = field(default_factory=Policy)
    gates: Gates = field(default_factory=Gates)

    @property
    def sets(self) -> list[str]:
        """Names of the sets."""
        return [name for kind, urls in self.resources.eval_sets.items() for name in by_name(kind, urls)]

    @property
    def bare(self) -> Resources:
        """The resources without sets: nothing is judged while time is taken."""
        return self.resources.replace(eval_similarity=(), eval_analogy=(), eval_categorization=())

    def scores(self, vectors: Vectors) -> list[float | None]:
        """Return the score of each of `sets`."""
        sets: dict[str, Any] = self.resources.eval_sets
        found = evaluate(vectors, **sets, analogy_methods=("3cosadd",)).scores()
        return [found[name] for name in self.sets]


class Took(NamedTuple):
    """What a run took: seconds, those of all threads and those of each stage, and megabytes of text it read."""

    seconds: float
    cpu: float
    stages: dict[str, float]
    read: float

    def cells(self) -> list[Cell]:
        return [self.seconds, self.cpu, *map(self.stages.get, STAGES), self.read]


class Clock:
    """A listener that takes the time of stages: each lasts until the next one begins."""

    def __init__(self) -> None:
        self._begins = {"encode": time.perf_counter()}

    def __call__(self, progress: Progress) -> None:
        now = time.perf_counter()
        if progress.stage in ("vocabulary", "judge"):
            self._begins.setdefault(progress.stage, now)
        if progress.stage == "vocabulary":
            self._begins["train"] = now  # after its last report: training's own first one comes after a round

    def stages(self) -> dict[str, float]:
        """Return the seconds of each stage so far; none of a run that read no text."""
        begins = [(stage, self._begins[stage]) for stage in STAGES if stage in self._begins]
        ends = [begin for _, begin in begins[1:]] + [time.perf_counter()]
        return {stage: end - begin for (stage, begin), end in zip(begins, ends, strict=True)} if begins[1:] else {}


def encoded(work: Path) -> dict[str, str]:
    """Return by whom each block of text was encoded that is there: a name of its own each time it is read."""
    home = Store(str(work)) / "shards"
    blocks = {key: (home / name / key).read_manifest() for name in home.children() for key in (home / name).children()}
    return {key: manifest["attempt"] for key, manifest in blocks.items() if manifest is not None}


def timed(text: str, work: Path, setting: Setting, run: Callable[[Listener], T]) -> tuple[T, Took]:
    """Call what reads text, and return what it took."""
    before, clock = encoded(work), Clock()
    began, cpu = time.perf_counter(), time.process_time()
    result = run(clock)
    seconds, cpu, stages = time.perf_counter() - began, time.process_time() - cpu, clock.stages()
    block_bytes = setting.resources.block_bytes
    batches = batch_blocks(plan_blocks(find_sources(text), block_bytes), block_bytes)
    sizes = {batch.key: sum(block.stop - block.start for block in batch.blocks) for batch in batches}
    read = sum(sizes[key] for key, attempt in encoded(work).items() if before.get(key) != attempt)
    return result, Took(seconds, cpu, stages, read / 1e6)


def night(text: str, work: Path, setting: Setting, resources: Resources) -> tuple[Summary, Took]:
    """Retrain."""

    def run(listener: Listener) -> Summary:
        return retrain(
            text, work=work, params=setting.params, resources=resources, policy=setting.policy, gates=setting.gates,
            client=setting.client, listener=listener,
        )  # fmt: skip

    return timed(text, work, setting, run)


def from_scratch(text: str, work: Path, setting: Setting) -> tuple[Vectors, Took]:
    """Train on all text."""

    def run(listener: Listener) -> Vectors:
        given = {"params": setting.params, "resources": setting.bare, "client": setting.client, "listener": listener}
        return train(text, work=work, **given)

    return timed(text, work, setting, run)


def warm_up(setting: Setting, first: bytes, folder: Path) -> None:
    """Do two nights on a little text, so that all kernels are compiled."""
    text, cut = folder / "warm", len(first[:WARM]) * 4 // 5
    text.mkdir(parents=True)
    warm = Setting(setting.params, setting.resources, setting.client, setting.policy, OPEN)
    for number, part in enumerate((first[:cut], first[cut:WARM])):
        (text / f"{number}.txt").write_bytes(part)
        night(f"{text}/*.txt", folder / "warm-work", warm, setting.resources)


def unpacked(path: Path) -> bytes:
    """Return the text of a file."""
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def unpack(files: Sequence[Path], folder: Path, prefix: str) -> None:
    """Write files into a folder as plain text; the prefix says where among others they stand."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        (folder / f"{prefix}{path.name.removesuffix('.gz')}").write_bytes(unpacked(path))
