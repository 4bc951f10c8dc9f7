"""What a night costs against a training from scratch, and what it loses, where a tenth of the text is new."""

import math
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.nightly.nights import TIMES, Report, Setting, Took, from_scratch, night, unpack
from daskw2v.models.vectors import Vectors
from daskw2v.retraining.outcome import Outcome

FULL, KNOWN, NIGHT = "from scratch", "from scratch, old text encoded", "night"


class Cost(NamedTuple):
    """What a run took, and the score of each set."""

    took: Took
    scores: list[float | None]


def cost(
    folder: Path, old: Sequence[Path], new: Sequence[Path], setting: Setting, seeds: Sequence[int], report: Report
) -> None:
    """Train on old text, let new text come, and do both: a night, and trainings from scratch on all text."""
    table = report.table("Cost of a night, where new text comes", (*TIMES, *setting.sets))
    found: dict[str, list[Cost]] = {FULL: [], KNOWN: [], NIGHT: []}
    for seed in seeds:
        place = folder / f"seed-{seed}"
        seeded = replace(setting, params=setting.params.replace(seed=seed))
        for name, costs in costs_of(place, old, new, seeded, report).items():
            found[name].append(costs)
            table.row(f"seed {seed}, {name}", *costs.took.cells(), *costs.scores)
        shutil.rmtree(place)
    columns = ("s", "CPU s", *(f"loss {name}" for name in setting.sets), "mean loss")
    medians = report.table(
        "A night over a training from scratch, medians: share of the time, and of scores lost", columns
    )
    for name in (FULL, KNOWN):
        pairs = list(zip(found[NIGHT], found[name], strict=True))
        ratios = [
            statistics.median(n.took.seconds / f.took.seconds for n, f in pairs),
            statistics.median(n.took.cpu / f.took.cpu for n, f in pairs),
        ]
        losses = [[lost(a, b) for a, b in zip(n.scores, f.scores, strict=True)] for n, f in pairs]
        each = [statistics.median(values) for values in zip(*losses, strict=True)]
        medians.row(f"over {name}", *ratios, *each, statistics.median(map(statistics.mean, losses)))


def lost(score: float | None, of: float | None) -> float:
    """Return the share of a score that is lost; NaN where one is not known, or is 0."""
    return 1 - score / of if score is not None and of else math.nan


def costs_of(
    place: Path, old: Sequence[Path], new: Sequence[Path], setting: Setting, report: Report
) -> dict[str, Cost]:
    """Return the costs of each run, by its name."""
    text, work, known = place / "text", place / "work", place / "known"
    inputs = f"{text}/*.txt"
    unpack(old, text, "old-")
    night(inputs, work, setting, setting.bare)
    shutil.copytree(work, known)
    unpack(new, text, "xnew-")  # after the old
    summary, took = night(inputs, work, setting, setting.bare)
    if summary.outcome is not Outcome.PUBLISHED:
        report.problems.append(f"seed {setting.params.seed}: {summary.outcome.label}: {summary.message}")
    found = {NIGHT: Cost(took, setting.scores(Vectors.open(work)))}
    for name, home in ((FULL, place / "fresh"), (KNOWN, known)):
        vectors, took = from_scratch(inputs, home, setting)
        found[name] = Cost(took, setting.scores(vectors))
    return found
