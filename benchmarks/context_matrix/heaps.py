"""Figure 8: words by size of the text, and Heaps' law fitted to them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.context_matrix.training import Lab, Setting
from benchmarks.papers.figures import Figures
from benchmarks.papers.session import Session
from benchmarks.vanilla import MIN_COUNT

LAW = Figures("section 3.2, of figure 8", {"K": 7.13, "beta": 0.71})
SIZES = 8  # each half of the next


class Vocabulary(NamedTuple):
    """How many words the first tokens of a text have: all, and those that occur often enough."""

    tokens: int
    words: int
    frequent: int


def vocabularies(path: Path) -> Iterator[Vocabulary]:
    """Count the words of the first 1/2**k of a text's lines, the whole text last."""
    with path.open("rb") as lines:
        n = sum(1 for _ in lines)
    ends = {max(1, n >> k) for k in range(SIZES)}
    counts, tokens = Counter[bytes](), 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            words = line.split()
            tokens += len(words)
            counts.update(words)
            if number in ends:
                yield Vocabulary(tokens, len(counts), sum(count >= MIN_COUNT for count in counts.values()))


def fitted(tokens: np.ndarray, words: np.ndarray) -> tuple[float, float]:
    """Return K and beta of words = K * tokens ** beta, by least squares of the logarithms."""
    beta, logarithm = np.polyfit(np.log(tokens), np.log(words), 1)
    return float(np.exp(logarithm)), float(beta)


def heaps(session: Session, _: Setting, lab: Lab) -> None:
    """Print the numbers of words, and the law's two constants."""
    found = list(vocabularies(lab.text.path))
    heads = ("all words", f"words of {MIN_COUNT} or more")
    table = session.table("figure 8", "words by tokens of text", heads, ",.0f")
    for row in found:
        table.row(f"{row.tokens:,}", row.words, row.frequent)
    table = session.table(LAW, "K and beta of Heaps' law", ("K", "beta"))
    table.row("paper", LAW["K"], LAW["beta"])
    some = np.array([row for row in found if row.frequent], np.float64)
    for head, words in zip(heads, some.T[1:], strict=True):
        table.row(head, *fitted(some[:, 0], words))
