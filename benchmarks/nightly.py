"""Nightly retraining: a week of it, and what a night costs; each beside a training from scratch on the same text.

    python -m benchmarks.nightly [--tables week cost]
        week: text comes day by day, raw text too; then garbage, which gates must stop; then none; then a rollback:
            [--days 5] [--garbage letters spam], or words of good text in any order, "shuffled", which no gate stops
        cost: a night where a tenth of the text is new: [--seeds 1 2 3]
        both: [--policy '{"old_share": 0.3}'] [--gates '{"min_stability": 0.3}'] [--params '{"epochs": 3}'] [--share 1]
            [--threads 2]

All runs in one process, whose kernels are compiled before. In the week gates evaluate versions; in costs nothing does.
Stability is the share of neighbours that a version has in common with the one that was served before.
`benchmarks.survival --strategies "a night"` kills nights.
"""

import argparse
import gzip
import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.quality import judged
from benchmarks.stopwatch import stopwatch
from benchmarks.tables import Cell, Spread
from benchmarks.texts import ANALOGY, DATA, MB, SIMILARITY, first_lines, wiki_parts
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.evaluation.stability import neighbour_stability
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.versions.versions import Versions
from daskw2v.retraining.gates import Gates
from daskw2v.retraining.outcome import Outcome, Summary
from daskw2v.retraining.policy import Policy
from daskw2v.retraining.retrain import retrain
from daskw2v.store.storage import Store
from daskw2v.training.pipeline import train
from daskw2v.training.warm_up import warm_up
from tests.support.power_losses import content_of

BAD_DAY = 10 * MB  # bytes
SENTENCE = 12  # words of garbage
SETS = ("ws353", "simlex999", "google_analogy")
TOOK = ("s", "processor s")
NIGHT, FULL, KNOWN = "night", "from scratch", "from scratch, old text encoded"
Texts = Mapping[str, bytes]  # by name of the file


@dataclass(frozen=True)
class Setting:
    """How nights are, and how versions are judged; the resources name the sets that gates look at."""

    params: Params
    resources: Resources
    client: Client
    policy: Policy = field(default_factory=Policy)
    gates: Gates = field(default_factory=Gates)
    judge: Callable[[Vectors], Mapping[str, float]] = judged
    sets: tuple[str, ...] = SETS

    def scores(self, vectors: Vectors) -> list[float]:
        found = self.judge(vectors)
        return [found[name] for name in self.sets]


class Nights:
    """Nights on a folder of text, and trainings from scratch on the same."""

    def __init__(self, folder: Path, setting: Setting) -> None:
        self.text, self.work, self._setting = folder / "text", folder / "work", setting
        self.text.mkdir(parents=True)

    def come(self, texts: Texts) -> None:
        for name, text in texts.items():
            (self.text / f"{name}.txt").write_bytes(text)

    def night(self) -> tuple[Summary, list[Cell]]:
        """Retrain; return the summary, and the cells of TOOK."""
        setting = self._setting
        return self._timed(retrain, self.work, policy=setting.policy, gates=setting.gates, resources=setting.resources)

    def from_scratch(self, work: Path) -> tuple[Vectors, list[Cell]]:
        return self._timed(train, work, resources=self._setting.resources.replace(eval_similarity=(), eval_analogy=()))

    def digest(self) -> str:
        """Return what stands for the bits of the version that is served."""
        return content_of(Store(str(Vectors.open(self.work).url)))

    def _timed(self, run: Callable[..., Any], work: Path, **how: Any) -> tuple[Any, list[Cell]]:
        took = stopwatch()
        found = run(
            f"{self.text}/*.txt",
            work=work,
            params=self._setting.params,
            client=self._setting.client,
            listener=None,
            **how,
        )
        return found, [*took()]


class Week(Nights):
    """Good days, bad ones that gates must stop, one without new text, and a rollback."""

    def __init__(self, session: Session, folder: Path, setting: Setting) -> None:
        super().__init__(folder, setting)
        self._session, self._scratch, self._served = session, folder / "scratch", list[str]()
        columns = ("outcome", *TOOK, "M words trained on", "words", "entered", "left", *setting.sets, "stability")
        self._table = session.table("A week, each night beside a training from scratch on the same text", columns)

    def good_day(self, name: str, texts: Texts) -> None:
        """Let files come, and expect a version of them."""
        self.come({f"{name}-{file}": text for file, text in texts.items()})
        self._one_night(name, Outcome.PUBLISHED)
        self._served.append(self.digest())

    def bad_day(self, name: str, garbage: bytes) -> None:
        """Let a file of garbage come, expect that a gate stops it, and take it away."""
        self.come({name: garbage})
        self._one_night(name, Outcome.STOPPED)
        (self.text / f"{name}.txt").unlink()
        if self.digest() != self._served[-1]:
            self._session.wrong(f"day {name}: garbage was served")
            Versions.open(self.work).rollback()

    def quiet_day(self, name: str) -> None:
        """Expect that nothing is done where no text is new, and that a rollback serves the vectors of before."""
        summary, took = self.night()
        self._row(name, summary.outcome.label, took)
        self._expect(name, summary, Outcome.NOTHING_NEW)
        Versions.open(self.work).rollback()
        same = self.digest() == self._served[-2]
        self._row(f"{name}, rollback", f"{'the same' if same else 'OTHER'} bits as before")
        if not same:
            self._session.wrong(f"day {name}: after a rollback others are served than those before")

    def _one_night(self, name: str, expected: Outcome) -> None:
        before = Vectors.open(self.work) if self._served else None
        summary, took = self.night()
        stopped = summary.outcome is Outcome.STOPPED  # what a gate stops is kept until the next night
        made = Vectors.open(next((self.work / "candidates").iterdir()) if stopped else self.work)
        failed = [] if summary.verdict is None else summary.verdict.failed
        self._row(name, ": ".join([summary.outcome.label, *(gate.text for gate in failed)]), took, made, before)
        self._expect(name, summary, expected)
        other, took = self.from_scratch(self._scratch)
        self._row(f"{name}, from scratch", None, took, other, before)

    def _expect(self, name: str, summary: Summary, expected: Outcome) -> None:
        if summary.outcome is not expected:
            self._session.wrong(f"day {name}: {summary.outcome.label} instead of {expected.label}: {summary.message}")

    def _row(
        self,
        name: str,
        outcome: str | None,
        took: Iterable[Cell] = (),
        new: Vectors | None = None,
        before: Vectors | None = None,
    ) -> None:
        cells = [outcome, *took]
        if new is not None:
            words, known = set(new.vocabulary.words), set(before.vocabulary.words if before else ())
            turnover: list[Cell] = [len(words - known), len(known - words)] if before else [None, None]
            cells += [new.metadata["corpus"]["tokens"] / 1e6, len(words), *turnover, *self._setting.scores(new)]
            cells.append(neighbour_stability(before, new).overlap if before else None)
        self._table.row(name, *cells, *[None] * (len(self._table.columns) - len(cells)))


def letters(good: bytes, size: int, rng: np.random.Generator) -> bytes:
    """Return words of random letters, one to eight each."""
    drawn = rng.integers(ord("a"), ord("z") + 1, size, dtype=np.uint8)
    ends = np.cumsum(rng.integers(2, 10, size // 2))
    drawn[ends[ends < size]] = ord(" ")
    return _lines(drawn.tobytes().split())


def spam(good: bytes, size: int, rng: np.random.Generator) -> bytes:
    """Return one sentence of known words again and again."""
    sentence = _lines(rng.choice(np.array(good.split(), np.bytes_), SENTENCE))
    return sentence * (size // len(sentence))


def shuffled(good: bytes, size: int, rng: np.random.Generator) -> bytes:
    """Return good text whose words stand in any order: as often as ever, but without sense."""
    return _lines(rng.permutation(np.array(good[:size].split(), np.bytes_)))


def _lines(words: Iterable[bytes]) -> bytes:
    every = list(words)
    return b"".join(b" ".join(every[at : at + SENTENCE]) + b"\n" for at in range(0, len(every), SENTENCE))


GARBAGE = {"letters": letters, "spam": spam, "shuffled": shuffled}


def cost(session: Session, setting: Setting, old: Texts, new: Texts, seeds: Iterable[int]) -> None:
    """Train on old text, let new text come, and do both: a night, and trainings from scratch on all text."""
    columns = (*TOOK, *setting.sets)
    table = session.table("Cost of a night, where new text comes", columns)
    found: dict[str, list[list[Any]]] = {NIGHT: [], FULL: [], KNOWN: []}
    for seed in seeds:
        folder = session.fresh("cost")
        nights = Nights(folder / "nights", replace(setting, params=setting.params.replace(seed=seed)))
        nights.come({f"old-{name}": text for name, text in old.items()})
        nights.night()
        shutil.copytree(nights.work, folder / "known")
        nights.come({f"xnew-{name}": text for name, text in new.items()})  # after the old
        summary, took = nights.night()
        if summary.outcome is not Outcome.PUBLISHED:
            session.wrong(f"seed {seed}: {summary.outcome.label}: {summary.message}")
        rows = {NIGHT: [*took, *setting.scores(Vectors.open(nights.work))]}
        for name, work in ((FULL, folder / "fresh"), (KNOWN, folder / "known")):
            vectors, took = nights.from_scratch(work)
            rows[name] = [*took, *setting.scores(vectors)]
        for name, cells in rows.items():
            found[name].append(cells)
            table.row(f"seed {seed}, {name}", *cells)
        shutil.rmtree(folder)
    ratios = session.table("A night divided by a training from scratch", columns)
    for name in (FULL, KNOWN):
        divided = (np.array(found[NIGHT]) / np.array(found[name])).T.tolist()
        ratios.row(f"by {name}", *map(Spread.of, divided))


def texts_of(paths: Iterable[Path], share: float) -> dict[str, bytes]:
    """Return the first share of each file."""
    return {
        path.name.partition(".")[0]: first_lines(gzip.decompress(path.read_bytes()), share) for path in sorted(paths)
    }


def measure(session: Session) -> None:
    options = session.options
    parts = texts_of(wiki_parts()[:10], options.share)
    session.text = f"{sum(map(len, parts.values())) / MB:.0f} MB of Wikipedia; in the week Wikinews as raw text, too"
    sets = {"eval_similarity": tuple(map(str, SIMILARITY)), "eval_analogy": tuple(map(str, ANALOGY))}
    params, gates = Params(**{"tokenizer": "normalize", **options.params}), Gates(**options.gates)
    warm_up()
    with Client(processes=False, n_workers=1, threads_per_worker=options.threads, dashboard_address=":0") as client:
        resources = Resources(threads=options.threads)
        setting = Setting(params, resources, client, Policy(**options.policy), gates)
        names = [*parts]
        if "week" in options.tables:
            week = Week(session, session.fresh("week"), replace(setting, resources=resources.replace(**sets)))
            days = [names[:4], names[4:6], names[6:8], names[8:]][: options.days - 1]
            for day, these in enumerate(days):
                week.good_day(str(day), {name: parts[name] for name in these})
            week.good_day(str(len(days)), texts_of([DATA / "corpus" / "wikinews-raw.txt.gz"], options.share))
            for kind in options.garbage:
                garbage = GARBAGE[kind](parts[names[0]], int(options.share * BAD_DAY), np.random.default_rng(0))
                week.bad_day(f"{options.days}, {kind}", garbage)
            week.quiet_day(str(options.days + 1))
        if "cost" in options.tables:
            last = {names[-1]: parts.pop(names[-1])}
            cost(session, setting, parts, last, options.seeds)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", choices=("week", "cost"), default=("week", "cost"))
    parser.add_argument("--days", type=int, choices=range(2, 6), default=5, help="good ones of the week")
    parser.add_argument("--garbage", nargs="*", choices=GARBAGE, default=["letters", "spam"], help="bad days")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of the cost")
    parser.add_argument("--policy", type=json.loads, default={}, help="fields of Policy, as JSON")
    parser.add_argument("--params", type=json.loads, default={}, help="fields of Params, as JSON")
    parser.add_argument("--gates", type=json.loads, default={}, help="fields of Gates, as JSON")
    parser.add_argument("--share", type=float, default=1.0, help="of each file of text, and of a day of garbage")
    parser.add_argument("--threads", type=int, default=2)


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/retraining",),
    Smoke(
        {
            "days": 3,
            "seeds": [1],
            "garbage": ["letters"],
            "share": 0.03,
            "params": {"epochs": 1},
            "gates": {"max_drop": None},  # scores of so little text go up and down
        },
        ("A week", "stopped", "the same bits as before", "Cost of a night", "by from scratch"),
    ),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
