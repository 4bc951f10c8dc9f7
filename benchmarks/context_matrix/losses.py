"""Figures 16 and 17: mean and variance of the loss of frequent and of rare words, over training.

A loss is that of a pair with its five negatives, with the word in the input table. Of W2V-Vanilla, an iteration is a
batch of 1,024 pairs that met the word, and its loss the mean over the word's pairs in it. The paper's iterations of
W2V-CL have 65,536 pairs (section 5.6), so as many columns as make up that number: the loss is the mean over them.
Losses are of columns (`gather_every=1`, `Resources(word_losses=True)`). The last table also has W2V-CL's variance of
single columns, and of means of as many pairs of a word as a batch of W2V-Vanilla has. Training is cut into tenths; in
each there are mean and variance over the word's iterations, and each of the ten words counts as much.
"""

import statistics
from typing import NamedTuple

import numpy as np

from benchmarks.context_matrix.quality import OURS
from benchmarks.context_matrix.training import Lab, Setting
from benchmarks.papers.figures import Figures
from benchmarks.papers.session import Session
from benchmarks.tables import Spread
from benchmarks.vanilla import Floats, Vanilla
from daskw2v.config.resources import Resources
from daskw2v.store.storage import Store
from daskw2v.training.columns.losses import read_losses

TRAINING = Figures("section 5.6", {"W2V-Vanilla": 1769, "W2V-CL": 1867})
WORDS, STRETCHES = 10, 10
PAIRS = 65_536  # of an iteration of W2V-CL, section 5.6
KEEP = Resources(threads=1, word_losses=True)


class Lost(NamedTuple):
    """Iterations that met a word, by stretch of training and word; mean and variance of its loss in them."""

    iterations: Floats
    mean: Floats
    variance: Floats

    def within(self) -> Floats:
        """Return each word's variance within stretches, of all of them, without bias where iterations are few."""
        free = np.maximum(self.iterations - 1, 0).sum(axis=0)
        with np.errstate(invalid="ignore"):
            found: Floats = np.nansum(self.iterations * self.variance, axis=0) / free
        return found


class Measured(NamedTuple):
    """Losses of the watched words for one seed: of W2V-CL's columns, shape (columns, words); of each W2V-Vanilla."""

    columns: Floats
    batches: dict[str, Lost]


def watched(n_words: int) -> dict[str, list[int]]:
    """Return the ids of the most frequent words and of the rarest."""
    return {"most frequent": list(range(WORDS)), "rarest": list(range(n_words - WORDS, n_words))}


def ours(lab: Lab, setting: Setting, seed: int, words: list[int]) -> Floats:
    """Train W2V-CL column by column; return the words' losses, shape (columns, words)."""
    made = lab.make(setting.params(gather_every=1, seed=seed), resources=KEEP)
    _, losses = read_losses(Store(str(made.vectors.url)))
    return losses[:, words].astype(np.float64)


def lost_of(losses: Floats, together: int = 1) -> Lost:
    """Sum up losses of columns, or the means of so many columns in a row."""
    n = len(losses) // together
    means = losses[: n * together].reshape(n, together, -1).mean(axis=1)
    stretches = [part for part in np.array_split(means, STRETCHES) if len(part)]
    iterations = np.array([np.full(losses.shape[1], len(part)) for part in stretches], np.float64)
    return Lost(iterations, *(np.array([of(part, axis=0) for part in stretches]) for of in (np.mean, np.var)))


def theirs(lab: Lab, kind: Vanilla, words: list[int]) -> Lost:
    """Train W2V-Vanilla."""
    losses = lab.make(kind, word_losses=words, stretches=STRETCHES).losses
    assert losses is not None
    return Lost(*losses)


def measured(lab: Lab, setting: Setting, seed: int, words: list[int]) -> Measured:
    """Train W2V-CL, and each W2V-Vanilla."""
    batches = {name: theirs(lab, kind, words) for name, kind in setting.vanillas(seed).items()}
    return Measured(ours(lab, setting, seed, words), batches)


def losses(session: Session, setting: Setting, lab: Lab) -> None:
    """Print a table for frequent words, one for rare words, and one of all training, over all seeds."""
    counts = lab.text.vocabulary.load().counts
    groups = watched(len(counts))
    words = [word for ids in groups.values() for word in ids]
    found = [measured(lab, setting, seed, words) for seed in setting.seeds]
    places = {group: slice(k * WORDS, (k + 1) * WORDS) for k, group in enumerate(groups)}
    most = setting.context_size * setting.epochs // (2 * STRETCHES)  # two iterations a tenth
    columns = max(1, min(round(PAIRS / len(counts)), most))
    by_name = {OURS: [lost_of(one.columns, columns) for one in found]}
    by_name |= {name: [one.batches[name] for one in found] for name in setting.vanillas()}
    for (group, at), figure in zip(places.items(), ("figure 16", "figure 17"), strict=True):
        heads = [f"{name}: {what}" for name in by_name for what in ("mean", "variance")]
        table = session.table(figure, f"loss of the {WORDS} {group} words in each tenth of training", heads)
        for tenth in range(STRETCHES):
            values = [[mean_of(lost[k][tenth, at]) for lost in several] for several in by_name.values() for k in (1, 2)]
            table.row(str(tenth + 1), *(Spread.of(some, statistics.mean) for some in values))
    table = session.table(
        "figures 16 and 17",
        f"variance within tenths, of all training; an iteration of W2V-CL has {columns} pairs of a word",
        (
            "W2V-Vanilla", "W2V-CL", "W2V-Vanilla / W2V-CL", "W2V-CL, by column", "pairs of a word in a batch",
            "W2V-CL, means of as many pairs", "W2V-Vanilla / these",
        ),
    )  # fmt: skip
    for group, at in places.items():
        for name in setting.vanillas():
            rows = [_variances(one, name, at, counts[words[at]].sum(), columns, setting) for one in found]
            cells = zip(*rows, strict=True)
            table.row(f"{group} words, {name}", *(Spread.of(cell, statistics.mean) for cell in cells))
    session.note(
        f"The paper's losses are in figures only, of trainings of {TRAINING['W2V-Vanilla']:,} s (9,000 iterations of "
        f"W2V-Vanilla) and {TRAINING['W2V-CL']:,} s (1,200 of W2V-CL)."
    )


def _variances(one: Measured, name: str, at: slice, occurrences: int, columns: int, setting: Setting) -> list[float]:
    """Return the cells of a row, for one seed."""
    lost = one.batches[name]
    pairs = float(2 * setting.params().window * occurrences * setting.epochs / lost.iterations[:, at].sum())
    together = max(1, min(round(pairs), len(one.columns) // 2))
    theirs_ = mean_of(lost.within()[at])
    paper, alone, several = (mean_of(lost_of(one.columns, n).within()[at]) for n in (columns, 1, together))
    return [theirs_, paper, theirs_ / paper, alone, pairs, several, theirs_ / several]


def mean_of(values: Floats) -> float:
    """Return the mean over the words that have a value."""
    return float(np.mean(values[np.isfinite(values)])) if np.isfinite(values).any() else np.nan
