"""Figures 16 and 17: mean and variance of the loss of frequent and of rare words, over training.

A loss is that of a pair with its five negatives, with the word in the input table; an iteration is what both tables
move after. Of W2V-CL that is a column (`gather_every=1`, the paper's batch): the word has one pair in it, whose loss
`strategies.word_losses` keeps. Of W2V-Vanilla it is a batch that met the word: the mean over the word's pairs in it.
So the paper's figures compare one pair with a mean of some; the last table also has W2V-CL's variance of means of as
many pairs, of columns in a row. Training is cut into tenths; in each there are mean and variance over the word's
iterations, and each of the ten words counts as much.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.context_matrix.quality import OURS
from benchmarks.context_matrix.training import Lab, Setting
from benchmarks.papers.session import Session
from benchmarks.papers.tables import Figures
from benchmarks.vanilla import Floats, Vanilla
from daskw2v.config.resources import Resources
from daskw2v.store.storage import Store
from daskw2v.training.columns.losses import read_losses

TRAINING = Figures("section 5.6", {"W2V-Vanilla": 1769, "W2V-CL": 1867})
WORDS, STRETCHES = 10, 10
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


def watched(n_words: int) -> dict[str, list[int]]:
    """Return the ids of the most frequent words and of the rarest."""
    return {"most frequent": list(range(WORDS)), "rarest": list(range(n_words - WORDS, n_words))}


def ours(lab: Lab, setting: Setting, words: list[int]) -> Floats:
    """Train W2V-CL column by column; return the words' losses, shape (columns, words)."""
    made = lab.make(setting.params(gather_every=1), resources=KEEP)
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


def losses(session: Session, setting: Setting, lab: Lab) -> None:
    """Print a table for frequent words, one for rare words, and one of all training."""
    counts = lab.text.vocabulary.load().counts
    groups = watched(len(counts))
    words = [word for ids in groups.values() for word in ids]
    columns = ours(lab, setting, words)
    batches = {name: theirs(lab, kind, words) for name, kind in setting.vanillas().items()}
    found = {OURS: lost_of(columns), **batches}
    places = {group: slice(k * WORDS, (k + 1) * WORDS) for k, group in enumerate(groups)}
    for (group, at), figure in zip(places.items(), ("figure 16", "figure 17"), strict=True):
        heads = [f"{name}: {what}" for name in found for what in ("mean", "variance")]
        table = session.table(figure, f"loss of the {WORDS} {group} words in each tenth of training", heads)
        for tenth in range(STRETCHES):
            cells = [mean_of(values[tenth, at]) for lost in found.values() for values in lost[1:]]
            table.row(str(tenth + 1), *cells)
    table = session.table(
        "figures 16 and 17",
        "variance within tenths, of all training",
        (
            "W2V-Vanilla", "W2V-CL", "W2V-Vanilla / W2V-CL", "pairs of a word in a batch",
            "W2V-CL, means of as many pairs", "W2V-Vanilla / these",
        ),
    )  # fmt: skip
    for group, at in places.items():
        for name, lost in batches.items():
            met = counts[words[at]].sum() * setting.epochs / lost.iterations[:, at].sum()
            pairs = float(2 * setting.params().window * met)
            together = lost_of(columns, max(1, min(round(pairs), len(columns) // 2)))
            theirs_, one, several = (mean_of(values.within()[at]) for values in (lost, found[OURS], together))
            table.row(f"{group} words, {name}", theirs_, one, theirs_ / one, pairs, several, theirs_ / several)
    session.note(
        f"The paper's losses are in figures only, of trainings of {TRAINING['W2V-Vanilla']:,} s (9,000 iterations of "
        f"W2V-Vanilla) and {TRAINING['W2V-CL']:,} s (1,200 of W2V-CL)."
    )


def mean_of(values: Floats) -> float:
    """Return the mean over the words that have a value."""
    return float(np.mean(values[np.isfinite(values)])) if np.isfinite(values).any() else np.nan
