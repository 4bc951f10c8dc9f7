"""What all papers train and measure with: texts, scores that are kept, words/s, and tables beside a paper's figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from benchmarks import harness
from benchmarks.cache import means
from benchmarks.epochs import our_epoch
from benchmarks.papers.figures import Figures, Paper
from benchmarks.peers import EPOCHS
from benchmarks.quality import Place, is_known, score
from benchmarks.tables import Spread, Table
from benchmarks.texts import Text, encode, encode_file
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.objectives.registry import settle_params
from daskw2v.store.storage import Store
from daskw2v.training.devices import Threads

SMALL = 300_000  # bytes


def params_of(objective: str, **changes: Any) -> Params:
    """Return Params with the objective's own learning rate written out, as `benchmarks.quality` keeps scores by."""
    return settle_params(Params(objective=objective, **changes))


@dataclass
class Session(harness.Session):
    """A run of `benchmarks.papers`, or of tables of one of them; `number` is the paper's."""

    number: str = ""
    _texts: dict[tuple[float, int], Text] = field(default_factory=dict)

    def begin(self, number: str, paper: Paper) -> None:
        """Print the heading of a paper."""
        self.number = number
        self.note(f"### {number}: {paper.title}\n\npaper: {paper.setting}")

    def beside(self, figures: Figures | str, title: str, columns: Sequence[str], form: str = ".3f") -> Table:
        """Begin a table that stands for a place of the paper."""
        source = figures if isinstance(figures, str) else figures.source
        return self.table(f"{self.number}, {source}: {title}", columns, form)

    def seeds(self, n: int) -> list[int]:
        """Return the seeds of the options, or the first n."""
        return self.options.seeds or list(range(1, n + 1))

    def encoded(self, parts: float, min_count: int = Params.min_count) -> Text:
        if (parts, min_count) not in self._texts:
            self._texts[parts, min_count] = encode(self.fresh("text"), parts, Params(min_count=min_count))
        return self._texts[parts, min_count]

    @property
    def timed(self) -> Text:
        """The text that times are taken on."""
        return self.encoded(self.options.time_parts)

    @cached_property
    def small(self) -> Text:
        """A text with next to no work in it, to compile by."""
        place = self.fresh("small")
        path = place / "wiki.txt"
        path.write_bytes(self.encoded(min(1, self.options.parts)).path.read_bytes()[:SMALL])
        return encode_file(path, Store(str(place / "work")), Params(max_final_vocab=1000))

    @property
    def cache(self) -> Store:
        """Where scores are kept."""
        return Store(str(self.options.cache or self.folder / "cache"))

    def place(self, threads: int = 1, **how: Any) -> Place:
        """Return where and how vectors are made; each number of threads has a folder, as no model's name has it."""
        work = self.folder / f"work-{threads}"
        return Place(self.encoded(self.options.parts).path, work, self.cache, threads, **how)

    def scores(self, params: Params, seeds: Sequence[int], place: Place, tool: str = "daskw2v") -> dict[str, Spread]:
        """Return the mean and extremes of each score over seeds; nothing of a tool neither asked for nor kept."""
        each = [params.replace(seed=seed) for seed in seeds]
        if tool not in ("daskw2v", *self.options.tools) and not all(is_known(tool, one, place) for one in each):
            return {}
        return means([score(tool, one, place) for one in each])

    def speeds(self, params: Params, threads: int, tools: Iterable[str] = ()) -> dict[str, Spread]:
        """Return million words/s: ours, and of these tools that of each that the options name."""
        text, runs = self.timed, {"daskw2v": our_epoch(self.timed, params, Threads(threads, Resources().device))}
        for tool in (tool for tool in tools if tool in self.options.tools):
            runs[tool] = EPOCHS[tool](text.path, text.vocabulary, params, threads)
        found = harness.alternate(runs, self.options.times)
        return {name: Spread.of(epoch.speed / 1e6 for epoch in epochs) for name, epochs in found.items()}
