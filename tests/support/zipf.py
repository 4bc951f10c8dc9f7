"""Text drawn at random whose words are as frequent as those of a language: a Zipf-Mandelbrot law."""

import numpy as np
import numpy.typing as npt

from daskw2v.sampling.segments import Segment, keep_thresholds

SENTENCE = 25  # words, of One Billion Words' on average


def zipf_counts(n_words: int, n_tokens: int) -> npt.NDArray[np.int64]:
    """Return how often each word occurs, at least once, shape (n_words,) int64: falling as 1 / (rank + 2.7)."""
    shares = 1.0 / (np.arange(n_words) + 2.7)
    return np.maximum(1, np.rint(n_tokens * shares / shares.sum())).astype(np.int64)


def zipf_segment(counts: npt.NDArray[np.int64], n_tokens: int, sample: float, seed: int = 1) -> Segment:
    """Return text of so many tokens before subsampling, in sentences of about SENTENCE words."""
    rng = np.random.default_rng(seed)
    tokens = np.searchsorted(np.cumsum(counts), rng.integers(0, counts.sum(), n_tokens), side="right").astype(np.int32)
    ends = np.cumsum(rng.geometric(1 / SENTENCE, n_tokens // SENTENCE + 1))
    ends = np.append(ends[ends < n_tokens], n_tokens)
    kept = rng.integers(0, 1 << 32, n_tokens, np.uint64) < keep_thresholds(counts, sample)[tokens]
    bounds = np.concatenate([[0], np.cumsum(kept)])[np.concatenate([[0], ends])]
    return Segment(tokens[kept], np.flatnonzero(kept).astype(np.int64), np.unique(bounds).astype(np.int64))
