"""A run of `python -m benchmarks.cuda`: its texts, and medians of runs that are compiled."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.harness import Session
from benchmarks.tables import Spread
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
    """A text: its counts, what subsamples it for some Params, and its encoded file, if there is one."""

    name: str
    counts: npt.NDArray[np.int64]
    read: Callable[[Params], Words]
    text: Text | None = None


def wikipedia(text: Text) -> Corpus:
    """Return an encoded text."""
    reader, counts = SegmentReader(text.work, text.corpus, text.vocabulary), text.vocabulary.load().counts

    def read(params: Params) -> Words:
        keep = keep_thresholds(counts, params.sample)
        return Words(*reader.read(0, text.corpus.n_tokens, params.window, keep, np.uint64(1)))

    return Corpus("Wikipedia", counts, read, text)


def drawn(n_words: int, n_tokens: int) -> Corpus:
    """Return a text that is drawn by Zipf's law."""
    counts = zipf_counts(n_words, n_tokens)
    return Corpus(
        f"Zipf, {n_words:,} words",
        counts,
        lambda params: Words(zipf_segment(counts, n_tokens, params.sample), n_tokens),
    )


@dataclass
class Bench(Session):
    """A run."""

    def measure(self, runs: Mapping[str, Callable[[], float]], times: int | None = None) -> dict[str, Spread]:
        """Call each run once, which compiles, then all in turn; return medians and extremes."""
        for run in runs.values():
            run()
        return super().measure(runs, times)

    @cached_property
    def wiki(self) -> Text:
        """Wikipedia, encoded."""
        return encode(self.fresh("wiki"), self.options.parts)

    @cached_property
    def corpora(self) -> list[Corpus]:
        """Texts that kernels are timed on."""
        several = [drawn(n_words, self.options.tokens) for n_words in self.options.vocabularies]
        return [wikipedia(self.wiki), *several] if self.options.parts else several


def modes_of(window: int) -> dict[str, dict[str, Any]]:
    """Return how windows are drawn: at random up to W as BlazingText does, or of one width as FULL-W2V does."""
    return {
        f"BlazingText, windows of 1 to {window}": {"window": window, "shrink_windows": True},
        f"FULL-W2V, windows of {-(-window // 2)}": {"window": -(-window // 2), "shrink_windows": False},
    }
