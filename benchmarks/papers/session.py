"""What all papers train and measure with: the text, the options, the scores that are kept, and the tables."""

import argparse
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from benchmarks.common import alternate, machine
from benchmarks.epochs import our_speed
from benchmarks.fma_peak import measure_peak
from benchmarks.papers.figures import Figures, Paper
from benchmarks.peers import SPEED
from benchmarks.quality import Place, is_known, score
from benchmarks.tables import Keep, Spread, Table
from benchmarks.texts import Text, encode, encode_file
from daskw2v.config.params import Params
from daskw2v.objectives.registry import settled
from daskw2v.store.storage import Store

SMALL = 300_000  # bytes


def params_of(objective: str, **changes: Any) -> Params:
    """Return Params with the objective's own learning rate written out, as `benchmarks.quality` keeps scores by."""
    params = Params(objective=objective, **changes)
    return settled(params)


@dataclass
class Session:
    """A run of `benchmarks.papers`, or of tables of one of them.

    Parameters
    ----------
    options
        Those of the command line.
    folder
        For texts, models, and scores unless the options name a folder for them.
    out
        Where tables are printed.
    tables
        All tables so far.
    number
        Of the paper that tables are of now.
    keep
        As in Table.
    """

    options: argparse.Namespace
    folder: Path
    out: TextIO
    tables: list[Table] = field(default_factory=list)
    number: str = ""
    keep: Keep | None = None
    _texts: dict[tuple[float, int], Text] = field(default_factory=dict)

    def begin(self, number: str, paper: Paper) -> None:
        """Print the heading of a paper."""
        self.number, o = number, self.options
        peaks = ", ".join(f"{measure_peak(n):.0f} by {n} thread(s)" for n in sorted(o.threads))
        print(
            f"\n### {number}: {paper.title}\n\npaper: {paper.setting}\n\nhere: {machine()}; Wikipedia, "
            f"{10 * o.parts:g} MB where vectors are judged and {10 * o.time_parts:g} MB where time is taken; epochs of "
            f"judged vectors: {o.epochs}; multiply-adds now, GFLOP/s: {peaks} (where these "
            "do not grow, others use the machine)",
            file=self.out, flush=True,
        )  # fmt: skip

    def table(self, figures: Figures | str, title: str, columns: Sequence[str], form: str = ".3f") -> Table:
        """Begin a table that stands for a place of the paper."""
        source = figures if isinstance(figures, str) else figures.source
        found = Table(self.number, f"{source[0].upper()}{source[1:]}: {title}", columns, self.out, form, keep=self.keep)
        self.tables.append(found)
        return found

    def note(self, text: str) -> None:
        print(f"\n{text}", file=self.out, flush=True)

    def unmeasured(self, waits: Mapping[str, tuple[str, str]]) -> None:
        """Print what of the paper is not measured: what it waits for, and what stands in for it."""
        table = self.table("open", "what of the paper is not measured here", ("paper waits for", "here instead"))
        for name, cells in waits.items():
            table.row(name, *cells)

    def seeds(self, n: int) -> list[int]:
        """Return the seeds of the options, or the first n."""
        return self.options.seeds or list(range(1, n + 1))

    @property
    def timed(self) -> Text:
        """The text that times are taken on."""
        return self.text(self.options.time_parts)

    @property
    def first(self) -> Text:
        """The first 10 MB at most, to compile by."""
        return self.text(min(1, self.options.parts))

    def text(self, parts: float, min_count: int = Params.min_count) -> Text:
        if (parts, min_count) not in self._texts:
            place = self.folder / f"text-{parts}-{min_count}"
            place.mkdir()
            self._texts[parts, min_count] = encode(place, parts, Params(min_count=min_count))
        return self._texts[parts, min_count]

    @cached_property
    def small(self) -> Text:
        """A text with next to no work in it, to compile by."""
        place = self.folder / "small"
        place.mkdir()
        path = place / "wiki.txt"
        path.write_bytes(self.first.path.read_bytes()[:SMALL])
        return encode_file(path, Store(str(place / "work")), Params(max_final_vocab=1000))

    @property
    def cache(self) -> Store:
        """Where scores are kept."""
        return Store(str(self.options.cache or self.folder / "cache"))

    def place(self, threads: int = 1, **how: Any) -> Place:
        """Return where and how vectors are made: resources are no part of a model's name, so each has a folder."""
        work = self.folder / f"work-{threads}-{how.get('hot_rows')}"
        return Place(self.text(self.options.parts).path, work, self.cache, threads, **how)

    def scores(self, params: Params, seeds: Sequence[int], place: Place, tool: str = "daskw2v") -> dict[str, Spread]:
        """Return the mean and extremes of each score over seeds; nothing of a tool neither asked for nor kept."""
        wanted = tool == "daskw2v" or tool in self.options.tools
        if not wanted and not all(is_known(tool, params.replace(seed=seed), place) for seed in seeds):
            return {}
        results = [score(tool, params.replace(seed=seed), place) for seed in seeds]
        names = [name for name in results[0] if all(name in result for result in results)]
        return {name: Spread.of((result[name] for result in results), statistics.mean) for name in names}

    def measure(self, runs: Mapping[str, Callable[[], float]]) -> dict[str, Spread]:
        """Call all in turn, as often as the options say; return medians and extremes."""
        return {name: Spread.of(values) for name, values in alternate(runs, self.options.times).items()}

    def speeds(self, params: Params, threads: int, tools: Iterable[str] = ()) -> dict[str, Spread]:
        """Return million words/s: ours, and of these tools that of each that the options name."""
        text, runs = self.timed, {"daskw2v": our_speed(self.timed, params, threads)}
        for tool in (tool for tool in tools if tool in self.options.tools):
            runs[tool] = SPEED[tool](text.path, text.vocabulary, params, threads)
        return {name: speed.scaled(1e-6) for name, speed in self.measure(runs).items()}
