"""Figures 16 and 17: mean and variance of the loss of frequent and of rare words, over training.

A loss is that of a pair with its five negatives, with the word in the input table. Of W2V-Vanilla, an iteration is a
batch of 1,024 pairs that met the word, and its loss the mean over the word's pairs in it. The paper's iterations of
W2V-CL have 65,536 pairs (section 5.6), so as many columns as make up that number: the loss is the mean over them.
Losses are of columns (`gather_every=1`, `Resources(word_losses=True)`). Training is cut into tenths; in each there are
mean and variance over the word's iterations, and each of the ten words counts as much.
"""

import statistics
from dataclasses import replace

import numpy as np

from benchmarks.context_matrix.lab import Lab, Setting
from benchmarks.context_matrix.tables import OURS
from benchmarks.context_matrix.vanilla import Losses
from benchmarks.papers.figures import Figures
from benchmarks.papers.session import Session
from benchmarks.tables import Spread
from daskw2v.config.resources import Resources
from daskw2v.store.storage import Store
from daskw2v.training.columns.losses import read_losses
from daskw2v.types import Float64Array

TRAINING = Figures("section 5.6", {"W2V-Vanilla": 1769, "W2V-CL": 1867})
WORDS, STRETCHES = 10, 10
PAIRS = 65_536  # of an iteration of W2V-CL, section 5.6
KEEP = Resources(threads=1, word_losses=True)


def within(losses: Losses) -> Float64Array:
    """Return each word's variance within stretches, of all of them, without bias where iterations are few."""
    free = np.maximum(losses.iterations - 1, 0).sum(axis=0)
    with np.errstate(invalid="ignore"):
        found: Float64Array = np.nansum(losses.iterations * losses.variance, axis=0) / free
    return found


def of_columns(losses: Float64Array, together: int = 1) -> Losses:
    """Sum up losses, shape (columns, words), or the means of so many columns in a row."""
    n = len(losses) // together
    means = losses[: n * together].reshape(n, together, -1).mean(axis=1)
    stretches = [part for part in np.array_split(means, STRETCHES) if len(part)]
    iterations = np.array([np.full(losses.shape[1], len(part)) for part in stretches], np.float64)
    return Losses(iterations, *(np.array([of(part, axis=0) for part in stretches]) for of in (np.mean, np.var)))


def mean_of(values: Float64Array) -> float:
    """Return the mean over the words that have a value."""
    return float(np.mean(values[np.isfinite(values)])) if np.isfinite(values).any() else np.nan


def measured(lab: Lab, setting: Setting, seed: int, words: list[int], together: int) -> dict[str, Losses]:
    """Train W2V-CL column by column, and each W2V-Vanilla; return the losses of words, by name."""
    made = lab.make(setting.params(gather_every=1, seed=seed), KEEP)
    _, columns = read_losses(Store(str(made.vectors.url)))
    found = {OURS: of_columns(columns[:, words].astype(np.float64), together)}
    for name, kind in setting.vanillas().items():
        kept = lab.make(replace(kind, seed=seed), word_losses=words, stretches=STRETCHES).losses
        assert kept is not None
        found[name] = kept
    return found


def losses(session: Session, setting: Setting, lab: Lab) -> None:
    """Print a table for the most frequent words, one for the rarest, and one of all training."""
    n_words = lab.text.vocabulary.size
    most = setting.context_size * setting.epochs // (2 * STRETCHES)  # two iterations a tenth
    together = max(1, min(round(PAIRS / n_words), most))
    words = [*range(WORDS), *range(n_words - WORDS, n_words)]
    found = [measured(lab, setting, seed, words, together) for seed in setting.seeds]
    groups = {"most frequent": ("figure 16", slice(WORDS)), "rarest": ("figure 17", slice(WORDS, None))}
    for group, (figure, at) in groups.items():
        heads = [f"{name}: {what}" for name in found[0] for what in ("mean", "variance")]
        table = session.beside(figure, f"loss of the {WORDS} {group} words in each tenth of training", heads)
        for tenth in range(STRETCHES):
            table.row(
                str(tenth + 1),
                *(
                    Spread.of((mean_of(of_seed[name][k][tenth, at]) for of_seed in found), statistics.mean)
                    for name in found[0]
                    for k in (1, 2)
                ),
            )
    title = f"variance within tenths, of all training; an iteration of W2V-CL has {together} pairs of a word"
    table = session.beside("figures 16 and 17", title, [*found[0]])
    for group, (_, at) in groups.items():
        several = {name: [mean_of(within(of_seed[name])[at]) for of_seed in found] for name in found[0]}
        table.row(f"{group} words", *(Spread.of(values, statistics.mean) for values in several.values()))
    session.note(
        f"The paper's losses are in figures only, of trainings of {TRAINING['W2V-Vanilla']:,} s (9,000 iterations of "
        f"W2V-Vanilla) and {TRAINING['W2V-CL']:,} s (1,200 of W2V-CL)."
    )
