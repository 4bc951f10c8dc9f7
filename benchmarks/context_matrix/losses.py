"""Figures 16 and 17: mean and variance of the loss of frequent and of rare words, over training.

A loss is that of a pair with its five negatives, with the word in the input table; an iteration is what both tables
move after. Of W2V-CL that is a column (`gather_every=1`, the paper's batch): the word has one pair in it, whose loss
`strategies.word_losses` keeps. Of W2V-Vanilla it is a batch: of those that met the word, the mean over its pairs in
it; in which the variance is less, the more pairs these are. Training is cut into tenths; in each there are mean and
variance over the word's iterations, and each of the ten words counts as much.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.context_matrix.training import Lab, Setting
from benchmarks.papers.session import Session
from benchmarks.papers.tables import Figures
from benchmarks.vanilla import Floats, Vanilla
from daskw2v.params import Resources
from daskw2v.storage import Store
from daskw2v.strategies.word_losses import read_losses

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
    return {"frequent": list(range(WORDS)), "rare": list(range(n_words - WORDS, n_words))}


def ours(lab: Lab, setting: Setting, words: list[int]) -> Lost:
    """Train W2V-CL column by column."""
    made = lab.make(setting.params(gather_every=1), resources=KEEP)
    _, losses = read_losses(Store(str(made.vectors.url)))
    stretches = np.array_split(losses[:, words].astype(np.float64), STRETCHES)
    iterations = np.array([np.full(len(words), len(part)) for part in stretches], np.float64)
    return Lost(iterations, *(np.array([of(part, axis=0) for part in stretches]) for of in (np.mean, np.var)))


def theirs(lab: Lab, kind: Vanilla, words: list[int]) -> Lost:
    """Train W2V-Vanilla."""
    losses = lab.make(kind, word_losses=words, stretches=STRETCHES).losses
    assert losses is not None
    return Lost(*losses)


def losses(session: Session, setting: Setting, lab: Lab) -> None:
    """Print a table for frequent words, one for rare words, and one of all training."""
    groups = watched(lab.text.vocabulary.size)
    words = [word for group in groups.values() for word in group]
    vanilla = "W2V-Vanilla, Adam 0.001"
    found = {"W2V-CL": ours(lab, setting, words), vanilla: theirs(lab, setting.vanilla(), words)}
    columns = [f"{name}: {what}" for name in found for what in ("mean", "variance")]
    places = {"frequent": slice(0, WORDS), "rare": slice(WORDS, None)}
    for (group, at), figure in zip(places.items(), ("figure 16", "figure 17"), strict=True):
        words_of = {"frequent": "most frequent", "rare": "rarest"}[group]
        table = session.table(
            figure, f"mean loss of the {WORDS} {words_of} words in each tenth of training, and its variance", columns
        )
        for tenth in range(STRETCHES):
            cells = [np.nanmean(values[tenth, at]) for lost in found.values() for values in lost[1:]]
            table.row(str(tenth + 1), *map(float, cells))
    table = session.table(
        "figures 16 and 17",
        "all training; variance within tenths",
        ("variance, W2V-CL", "variance, W2V-Vanilla", "ratio", "iterations of a word, W2V-CL", "the same, W2V-Vanilla"),
    )
    for group, at in places.items():
        variances = [float(np.nanmean(lost.within()[at])) for lost in found.values()]
        met = [round(float(lost.iterations[:, at].sum(axis=0).mean())) for lost in found.values()]
        table.row(f"{group} words", *variances, variances[1] / variances[0], *met)
    counts = lab.text.vocabulary.load().counts
    pairs = {
        group: 2 * setting.params().window * counts[ids].mean() * setting.epochs / iterations.sum(axis=0).mean()
        for group, ids in groups.items()
        for iterations in [found[vanilla].iterations[:, places[group]]]
    }
    session.note(
        "An iteration is a column of W2V-CL, in which a word has one pair; and a batch of W2V-Vanilla that met the "
        f"word, in which it has some {pairs['frequent']:.0f} (frequent) and {pairs['rare']:.1f} (rare), whose mean "
        "counts: a mean of n pairs varies less than one pair does. The paper's losses are in figures only, of "
        f"trainings of {TRAINING['W2V-Vanilla']:,} s (9,000 iterations) and {TRAINING['W2V-CL']:,} s (1,200)."
    )
