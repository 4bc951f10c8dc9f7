"""A week of nights: good days, bad ones that gates must stop, one without new text, and a rollback."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.nightly.garbage import GARBAGE
from benchmarks.nightly.nights import TIMES, Report, Setting, from_scratch, night, unpack, unpacked
from benchmarks.survival.client import digest
from benchmarks.tables import Cell
from daskw2v.evaluation.stability import neighbour_stability
from daskw2v.models.vectors import Vectors
from daskw2v.models.versions import Versions
from daskw2v.retraining.align import Alignment, find_alignment
from daskw2v.retraining.gates import Gate, Verdict
from daskw2v.retraining.outcome import Outcome, Summary

BAD_BYTES = 10_000_000
CHANGES = ("words", "entered", "left")
LIKENESS = ("stability", "cosine as trained", "cosine aligned")  # with the version that was served before


def week(
    folder: Path,
    days: Sequence[Sequence[Path]],
    setting: Setting,
    report: Report,
    garbage: Iterable[str] = GARBAGE,
    size: int = BAD_BYTES,
) -> None:
    """Let text come day by day, then a day of garbage of each of these kinds, and one of nothing."""
    nights = Week(folder, setting, report)
    for day, files in enumerate(days):
        nights.good_day(str(day), files)
    for kind in garbage:
        nights.bad_day(str(len(days)), kind, days[0][0], size)
    nights.quiet_day(str(len(days) + 1))
    nights.tell_gates()


class Week:
    """Nights on one folder of text, each beside a training from scratch in another work directory.

    Parameters
    ----------
    folder
        Where text and work directories lie.
    setting
        How nights are.
    report
        Where rows go, and what is not as expected.
    """

    def __init__(self, folder: Path, setting: Setting, report: Report) -> None:
        self._setting, self._report = setting, report
        self._text, self._work, self._other = folder / "text", folder / "work", folder / "from-scratch"
        self._served: list[str] = []  # digests of what good days published
        self._verdicts: dict[str, Verdict] = {}
        columns = ("outcome", *TIMES, *CHANGES, *setting.sets, *LIKENESS)
        self._table = report.table("A week, each night beside a training from scratch on the same text", columns)

    def good_day(self, name: str, files: Sequence[Path]) -> None:
        """Let files come, and expect a version of them."""
        unpack(files, self._text, f"{name}-")
        self._night(name, Outcome.PUBLISHED)
        self._served.append(self._digest())

    def bad_day(self, name: str, kind: str, good: Path, size: int) -> None:
        """Let a file of garbage come, expect that a gate stops it, and take it away."""
        file = self._text / f"{name}-{kind}.txt"
        file.write_bytes(GARBAGE[kind](unpacked(good), size, np.random.default_rng(0)))
        self._night(f"{name}, {kind}", Outcome.STOPPED)
        file.unlink()
        if self._digest() != self._served[-1]:
            self._report.problems.append(f"day {name}, {kind}: garbage was served")
            Versions.open(self._work).rollback()

    def quiet_day(self, name: str) -> None:
        """Expect that nothing is done where no text is new, and that a rollback serves yesterday's vectors."""
        summary, took = night(self._inputs, self._work, self._setting, self._setting.resources)
        self._row(name, summary.outcome.label, took.cells())
        self._expect(name, summary, Outcome.NOTHING_NEW)
        Versions.open(self._work).rollback()
        same = self._digest() == self._served[-2]
        self._row(f"{name}, rollback", f"{'the same' if same else 'OTHER'} bits as before")
        if not same:
            self._report.problems.append(f"day {name}: after a rollback others are served than those before")

    def tell_gates(self) -> None:
        """Print what gates found each night."""
        names = dict.fromkeys(gate.name for verdict in self._verdicts.values() for gate in verdict.gates)
        table = self._report.table("What gates found, and what they asked for where they stopped a version", [*names])
        for day, verdict in self._verdicts.items():
            found = {gate.name: gate for gate in verdict.gates}
            table.row(day, *(_shown(found.get(name)) for name in names))

    def _night(self, name: str, expected: Outcome) -> None:
        yesterday = Vectors.open(self._work) if self._served else None
        summary, took = night(self._inputs, self._work, self._setting, self._setting.resources)
        made = Vectors.open(self._made(summary))
        self._row(name, summary.outcome.label, took.cells(), self._judged(made, yesterday, summary.alignment))
        self._expect(name, summary, expected)
        other, took = from_scratch(self._inputs, self._other, self._setting)
        self._row(f"{name}, from scratch", None, took.cells(), self._judged(other, yesterday))

    def _made(self, summary: Summary) -> Path:
        """Return where the version of a night lies: what a gate stops is kept until the next night."""
        if summary.outcome is Outcome.STOPPED:
            (candidate,) = (self._work / "candidates").iterdir()
            return candidate
        return self._work

    def _judged(self, new: Vectors, before: Vectors | None, alignment: Alignment | None = None) -> list[Cell]:
        scores = self._setting.scores(new)
        if before is None:
            return [len(new), None, None, *scores]
        found = alignment or find_alignment(new, before)
        words, known = set(new.vocabulary.words), set(before.vocabulary.words)
        stability = neighbour_stability(before, new).overlap
        return [len(new), len(words - known), len(known - words), *scores, stability, found.before, found.after]

    def _expect(self, name: str, summary: Summary, expected: Outcome) -> None:
        if summary.verdict is not None:
            self._verdicts[name] = summary.verdict
        if summary.outcome is not expected:
            self._report.problems.append(f"day {name}: {summary.outcome.label} instead of {expected.label}")

    def _row(self, name: str, outcome: str | None, took: Sequence[Cell] = (), judged: Sequence[Cell] = ()) -> None:
        cells = [outcome, *took, *judged]
        self._table.row(name, *cells, *[None] * (len(self._table.columns) - len(cells)))

    def _digest(self) -> str:
        return digest(Vectors.open(self._work))

    @property
    def _inputs(self) -> str:
        return f"{self._text}/*.txt"


def _shown(gate: Gate | None) -> Cell:
    if gate is None or gate.passed:
        return None if gate is None else gate.value
    value = "undefined" if gate.value is None else f"{gate.value:.4g}"
    return value if gate.bound is None else f"{value}, STOPPED by {gate.bound:.4g}"
