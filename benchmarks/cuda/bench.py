"""A run of `python -m benchmarks.cuda`: options, texts, tables, and medians of alternating runs."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from benchmarks.common import alternate
from benchmarks.tables import Keep, Spread, Table
from benchmarks.texts import Text, encode
from daskw2v.config.params import Params
from daskw2v.errors import ClusterError, MissingExtraError
from daskw2v.kernels.cuda import check_gpu
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.segments import Segment, keep_thresholds
from tests.support.zipf import zipf_counts, zipf_segment


@cache
def has_gpu() -> bool:
    """Tell whether there is a GPU that kernels can run on."""
    try:
        check_gpu()
    except (ClusterError, MissingExtraError):
        return False
    return True


class Words(NamedTuple):
    """Text as a kernel takes it, and how many words of the vocabulary it was before subsampling."""

    segment: Segment
    raw: int


class Corpus(NamedTuple):
    """A text: its counts, and what subsamples it for some Params."""

    name: str
    counts: npt.NDArray[np.int64]
    read: Callable[[Params], Words]


@dataclass
class Bench:
    """A run.

    Parameters
    ----------
    options
        Those of the command line.
    folder
        For texts and models.
    out
        Where tables are printed.
    tables
        All tables so far.
    keep
        As in Table.
    """

    options: argparse.Namespace
    folder: Path
    out: TextIO
    tables: list[Table] = field(default_factory=list)
    keep: Keep | None = None

    def table(self, name: str, title: str, columns: Sequence[str], form: str = ".1f") -> Table:
        found = Table("cuda", f"{name}: {title}", columns, self.out, form, keep=self.keep)
        self.tables.append(found)
        return found

    def note(self, text: str) -> None:
        print(f"\n{text}", file=self.out, flush=True)

    def measure(self, runs: Mapping[str, Callable[[], float]]) -> dict[str, Spread]:
        """Call each run once, which compiles, then all in turn; return medians and extremes."""
        for run in runs.values():
            run()
        return {name: Spread.of(values) for name, values in alternate(runs, self.options.times).items()}

    @cached_property
    def text(self) -> Text:
        """Wikipedia, encoded."""
        place = self.folder / "text"
        place.mkdir()
        return encode(place, self.options.parts)

    @cached_property
    def corpora(self) -> list[Corpus]:
        """Texts that kernels are timed on."""
        drawn = [self.zipf(n_words) for n_words in self.options.vocabularies]
        return ([self._wiki()] if self.options.parts else []) + drawn

    def _wiki(self) -> Corpus:
        text = self.text
        reader, counts = SegmentReader(text.work, text.corpus, text.vocabulary), text.vocabulary.load().counts

        def read(params: Params) -> Words:
            keep = keep_thresholds(counts, params.sample)
            return Words(*reader.read(0, text.corpus.n_tokens, params.window, keep, np.uint64(1)))

        return Corpus("Wikipedia", counts, read)

    def zipf(self, n_words: int) -> Corpus:
        """Return a drawn text."""
        n, counts = self.options.tokens, zipf_counts(n_words, self.options.tokens)
        return Corpus(
            f"Zipf, {n_words:,} words", counts, lambda params: Words(zipf_segment(counts, n, params.sample), n)
        )


def modes_of(window: int) -> dict[str, dict[str, Any]]:
    """Return how windows are drawn: at random up to W as BlazingText does, or of one width as FULL-W2V does."""
    return {
        f"BlazingText, windows of 1 to {window}": {"window": window, "shrink_windows": True},
        f"FULL-W2V, windows of {-(-window // 2)}": {"window": -(-window // 2), "shrink_windows": False},
    }
