"""Figures 4, 8, 13, 16 and 17 of paper 002: batches of W2V-Vanilla, words by length of text, losses during training."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.context_matrix.lab import ADAM, AS_PAPER, MIN_COUNT, TRAINING, Lab, Setting, matrix_of
from benchmarks.context_matrix.vanilla import Trainer, Vanilla
from benchmarks.context_matrix.vanilla_network import segments_of
from benchmarks.epochs import train_anew
from benchmarks.judges import FEW, by_few
from benchmarks.papers.figures import Figures
from benchmarks.papers.session import Session
from benchmarks.tables import Spread
from benchmarks.texts import MB, Text
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sampling.context_matrix import read_contexts
from daskw2v.sampling.settings import SampledContexts
from daskw2v.sampling.weights import word_weights
from daskw2v.store.storage import Store
from daskw2v.training.columns.losses import read_losses
from daskw2v.types import Float32Array, Int32Array

HEAPS = Figures("section 3.2, of figure 8", {"K": 7.13, "beta": 0.71})
BATCHES = (256, 1024, 4096, 16_384, 65_536)  # of figure 13, each fourth
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # of a training
_FREQUENT, _RARE = 100, 1000  # words whose losses are shown
_PAIRS = 64  # of a word, by which W2V-Vanilla's loss is estimated


def batches(session: Session, setting: Setting, lab: Lab) -> None:
    """Print what the gradients of a batch take, and the scores of W2V-Vanilla, by size of its batches."""
    title = f"W2V-Vanilla by pairs of a batch, d={setting.vector_size}, sample {setting.sample:g}: Spearman, 3CosAdd"
    table = session.beside("figures 4 and 13", title, ("MB of gradients", *FEW, TRAINING))
    for batch in BATCHES:
        kind = setting.vanilla(batch=batch)
        gradients = Trainer(kind, lab.text.vocabulary.load().counts).gradients_bytes / MB
        scores = lab.spreads(kind, by_few, setting.seeds)
        table.row(f"{ADAM}, batches of {batch:,}", gradients, *(scores.get(key) for key in (*FEW.values(), TRAINING)))
    session.note(
        "The paper's memory grows with the batch, as Chainer keeps the gradient of each pair; here a row that a batch "
        "meets has one, so that it ends at the size of both tables."
    )


def words(session: Session, setting: Setting, lab: Lab) -> None:
    """Print the number of words by length of text, and Heaps' law fitted to it: K * length ** beta."""
    table = session.beside(
        "figure 8", "words by length of text", ("tokens", "words", f"of {MIN_COUNT} or more"), ",.0f"
    )
    lengths = np.array(list(count_words(lab.text)), np.float64)
    for number, row in enumerate(lengths, 1):
        table.row(f"{number} of {len(lengths)}", *row)
    fits = session.beside(HEAPS, "Heaps' law, fitted to these", ("K", "beta"))
    fits.row("paper: text8", HEAPS["K"], HEAPS["beta"])
    for column, name in enumerate(("all words", f"words of {MIN_COUNT} or more"), 1):
        beta, log_k = np.polyfit(np.log(lengths[:, 0]), np.log(np.maximum(lengths[:, column], 1)), 1)
        fits.row(name, float(np.exp(log_k)), float(beta))


def count_words(text: Text, n: int = 10) -> Iterator[tuple[int, int, int]]:
    """Yield tokens, words, and words of MIN_COUNT or more occurrences, of the first n-th of a text, of two n-ths ..."""
    counts, read, goal, size = Counter[bytes](), 0, 1, text.path.stat().st_size
    with text.path.open("rb") as lines:
        for line in lines:
            counts.update(line.split())
            read += len(line)
            if read * n >= goal * size:
                goal += 1
                yield counts.total(), len(counts), sum(count >= MIN_COUNT for count in counts.values())


def losses(session: Session, setting: Setting, lab: Lab) -> None:
    """Print the losses of frequent and of rare words during training: median and quartiles over words."""
    ours = {
        "W2V-CL, as the paper": setting.params(**AS_PAPER),
        "W2V-CL, negatives by counts ** 0.75": setting.params(ns_exponent=AS_PAPER["ns_exponent"]),
    }
    found = {ADAM: vanilla_losses(lab, setting.vanilla(), setting.params())}
    found |= {name: matrix_losses(lab, params) for name, params in ours.items()}
    known = lab.text.vocabulary.size
    groups = {
        "figure 16": ("frequent", slice(0, _FREQUENT)),
        "figure 17": ("rare", slice(max(0, known - _RARE), known)),
    }
    for source, (which, chosen) in groups.items():
        about = f"{chosen.stop - chosen.start:,} {which} words, d={setting.vector_size}, l={setting.context_size:,}"
        title = f"loss of a pair and its negatives, {about}, by share of training: median, quartiles over words"
        table = session.beside(source, title, tuple(f"{share:.1%}" for share in SHARES))
        for name, by_share in found.items():
            table.row(name, *(_quartiles(of_words[chosen]) for of_words in by_share))
    session.note(
        f"W2V-Vanilla's is estimated from {_PAIRS} columns of the matrix, with other negatives than in training."
    )


def _quartiles(values: Float32Array) -> Spread:
    low, middle, high = np.quantile(values[np.isfinite(values)], (0.25, 0.5, 0.75))
    return Spread(float(middle), float(low), float(high))


def matrix_losses(lab: Lab, params: Params) -> list[Float32Array]:
    """Train the matrix; return each word's loss at each share, the mean over the 64th of the columns before it."""
    vectors = train_anew(lab.client, lab.text, params, Resources(threads=1, word_losses=True))
    ends, by_step = read_losses(Store(str(vectors.url)))
    size = SampledContexts.of(params).context_size
    stops = [int(np.searchsorted(ends, share * size)) + 1 for share in SHARES]
    starts = [int(np.searchsorted(ends, share * size - size / 64)) for share in SHARES]
    return [by_step[min(start, stop - 1) : stop].mean(axis=0) for start, stop in zip(starts, stops, strict=True)]


def vanilla_losses(lab: Lab, kind: Vanilla, params: Params) -> list[Float32Array]:
    """Train W2V-Vanilla; return each word's loss at each share."""
    text, known = lab.text, lab.text.vocabulary.load()
    matrix = matrix_of(lab.client, text, params)
    judge = _Judge(
        read_contexts(matrix.group, (0, len(known.counts)), (0, min(_PAIRS, SampledContexts.of(params).context_size))),
        np.cumsum(word_weights(known.counts, kind.ns_exponent)),
        kind.negative,
    )
    trainer, total, shares = Trainer(kind, known.counts), text.corpus.n_tokens * kind.epochs, [*SHARES]
    found = list[Float32Array]()
    for segment, first, last, epoch, done in segments_of(text, kind):
        trainer.train(segment, first, last, epoch)
        while shares and done >= shares[0] * total:
            shares.pop(0)
            if not shares:
                trainer.finish()
            found.append(judge.losses(trainer.table("input"), trainer.table("output")))
    return found


class _Judge(NamedTuple):
    """Estimates the loss of each word.

    Parameters
    ----------
    contexts
        Contexts of each word, shape (V, pairs) int32; -1 for none.
    noise
        Sums of the weights by which negatives are drawn, shape (V,).
    negative
        Number of negatives.
    """

    contexts: Int32Array
    noise: Float32Array
    negative: int

    def losses(self, inputs: Float32Array, outputs: Float32Array) -> Float32Array:
        """Return the mean loss of each word's pairs, shape (V,); NaN for a word without pairs."""
        random = np.random.default_rng(int(stream(1, Purpose.NEGATIVE)))
        found = np.full(len(inputs), np.nan, np.float32)
        for word, contexts in enumerate(self.contexts):
            drawn = np.searchsorted(self.noise, random.random((len(contexts), self.negative)) * self.noise[-1])
            negatives = np.minimum(drawn, len(self.noise) - 1)
            known = contexts >= 0
            if known.any():
                near, far = outputs[contexts] @ inputs[word], outputs[negatives] @ inputs[word]
                counts = negatives != contexts[:, None]  # no negative of the context
                lost = np.logaddexp(0, -near) + (np.logaddexp(0, far) * counts).sum(axis=1)
                found[word] = lost[known].mean()
        return found
