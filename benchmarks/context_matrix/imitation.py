"""Why the network of characters says little of meaning: what it learns where it is shown the rows themselves.

The rows of the matrix are trained on a text without some words (`benchmarks.unseen_words` holds them out and judges
them). Then the very network of `subwords` regresses the directions of the rows from the characters, as Mimick does
(Pinter et al. 2017): the squared error, Adam at 0.001, small batches of words. Beside it stand n-grams that are fitted
to the same rows, and the network that is trained in place, as section 5.8 has it. What the network does not reach with
the targets before it, no schedule of the training in place will: that training has them at second hand.

Words of the text are judged by what is computed from their characters alone. Some rows are not shown to either fit:
these say how much of a row's variance spelling explains where the row was not seen.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from benchmarks.context_matrix.training import Lab, Setting
from benchmarks.papers.session import Session
from benchmarks.papers.tables import Spread
from benchmarks.unseen_words import COUNTS, Judge, hold_out, scores_of, train_ours
from benchmarks.vanilla import MIN_COUNT
from daskw2v.config.params import Params
from daskw2v.errors import UnknownWordError
from daskw2v.models.composed import FeatureVectors
from daskw2v.models.vectors import Vectors
from daskw2v.objectives.subwords.alphabet import Alphabet
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.objectives.subwords.training import import_torch, initial_weights, rows_of_tensors
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import Vocabulary

BATCH, ALPHA = 256, 0.001  # words of a step of Adam; its learning rate
PAPER = 0.75  # exponent of negatives
SEEN = {"WordSim353": "ws353", "Sim 999": "simlex999", "Google": "google_analogy"}
EXPLAINED = "variance explained of rows shown", "of rows not shown"
UNSEEN = "overlap of held-out words", "rank"
TEACHER = Params(epochs=3, sample=1e-4, alpha=0.05, strategy="averaging", min_count=MIN_COUNT, seed=9)


class Spelled(NamedTuple):
    """Vectors computed from characters: those of words of the text, and those of held-out words."""

    known: Float32Array
    held: Float32Array


def imitation(session: Session, setting: Setting, lab: Lab) -> None:
    """Print scores of words of the text, variance explained, and how near held-out words come, of each way."""
    if find_spec("torch") is None:
        session.note("Imitation: words are made of their characters with PyTorch, which is not installed.")
        return
    place = session.folder / "imitation"
    place.mkdir()
    part = place / "part.txt"
    held = hold_out(lab.text.path, part, setting.held)
    teacher, _ = train_ours(lab.text.path, place / "teacher", TEACHER, lab.client)
    judge = Judge(teacher, [word for word in held if word in teacher])
    found: dict[str, list[dict[str, float]]] = {}
    for seed in setting.seeds:
        shape: dict[str, Any] = {"context_size": setting.subword_columns, "vector_size": setting.subword_size}
        params = setting.params(seed=seed, **shape)
        rows, _ = train_ours(part, place / "work", params, lab.client)
        for name, figures in imitated(rows, judge, setting, seed):
            found.setdefault(name, []).append(figures)
        network = setting.params("subwords", seed=seed, gather_every=setting.subword_gather, **shape)
        for exponent in (None, PAPER):
            own, _ = train_ours(part, place / "work", network.replace(ns_exponent=exponent), lab.client)
            assert own.subwords is not None
            name = f"network trained in place, ns_exponent={exponent}"
            near = judge.judge(own, own.subwords.vectors(judge.held))
            found.setdefault(name, []).append({**scores_of(own), **dict(zip(UNSEEN, near, strict=True))})
    columns = (*SEEN, *EXPLAINED, *UNSEEN)
    table = session.table(
        "section 5.8",
        f"what a network learns from the rows themselves, l={setting.subword_columns:,}, d={setting.subword_size}, "
        f"sample {setting.sample:g}, {len(judge.held):,} held-out words, {len(setting.seeds)} seed(s)",
        columns,
    )
    for name, results in found.items():
        table.row(name, *(_spread_of([result.get(SEEN.get(key, key)) for result in results]) for key in columns))


def imitated(rows: Vectors, judge: Judge, setting: Setting, seed: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield figures of the rows, of n-grams fitted to them, and of the network that imitates them."""
    words, counts = [*rows.index_to_key], rows.vocabulary.counts
    units = rows.vectors / np.linalg.norm(rows.vectors, axis=1, keepdims=True)
    rare = np.flatnonzero((counts >= COUNTS[0]) & (counts <= COUNTS[1]))
    hidden = np.random.default_rng(seed).choice(rare, min(setting.held, len(rare)) // 2, replace=False)
    shown = np.setdiff1d(np.arange(len(words)), hidden)
    known = [words[i] for i in shown]

    def figures_of(spelled: Spelled) -> dict[str, float]:
        scores = scores_of(Vectors(rows.vocabulary, spelled.known))
        explained = (_explained(units[of], spelled.known[of]) for of in (shown, hidden))
        near = judge.judge(rows, spelled.held)
        return scores | dict(zip((*EXPLAINED, *UNSEEN), (*explained, *near), strict=True))

    yield "rows of the matrix", scores_of(rows)
    fitted = Vectors(Vocabulary.from_words(known, counts[shown]), units[shown]).with_ngrams().features
    assert fitted is not None
    yield "n-grams fitted to them", figures_of(Spelled(spelled_by(fitted, words), spelled_by(fitted, judge.held)))
    for epochs, network in networks(known, units[shown], setting.imitation_epochs, seed):
        spelled = Spelled(network.vectors(words), network.vectors(judge.held))
        yield f"network, {epochs} epochs over them", figures_of(spelled)


def spelled_by(ngrams: FeatureVectors, words: Sequence[str]) -> Float32Array:
    """Return words' vectors from their letters; zeros for a word of which no n-gram is known."""
    found = np.zeros((len(words), ngrams.vectors(words[:0]).shape[1]), np.float32)
    for i, word in enumerate(words):
        with suppress(UnknownWordError):
            found[i] = ngrams.vectors([word])[0]
    return found


def networks(
    words: Sequence[str], targets: Float32Array, epochs: Sequence[int], seed: int
) -> Iterator[tuple[int, Subwords]]:
    """Train a network so that it says words' targets; yield it after each number of epochs."""
    torch, random, alphabet = import_torch(), np.random.default_rng(seed), Alphabet.of(words)
    characters, wanted = alphabet.encode(words), torch.from_numpy(targets)
    lengths = np.count_nonzero(characters, axis=1)
    first = initial_weights(targets.shape[1], len(alphabet), seed)
    weights = {name: torch.tensor(values, requires_grad=True) for name, values in first.items()}
    adam = torch.optim.Adam(weights.values(), lr=ALPHA)
    for epoch in range(1, max(epochs) + 1):
        alike = np.argsort(lengths + random.random(len(words)))  # words of like length have little padding
        batches = np.split(alike, range(BATCH, len(alike), BATCH))
        for i in random.permutation(len(batches)):
            batch = batches[i]
            said = rows_of_tensors(torch, weights, characters[batch, : lengths[batch].max()])
            adam.zero_grad()
            (said - wanted[torch.from_numpy(batch)]).square().sum(dim=1).mean().backward()
            adam.step()
        if epoch in epochs:
            yield epoch, Subwords(alphabet, {name: tensor.detach().numpy().copy() for name, tensor in weights.items()})


def _explained(units: Float32Array, said: Float32Array) -> float:
    """Return how much less the squared error is than that of the mean."""
    return float(1 - np.square(units - said).sum() / np.square(units - units.mean(axis=0)).sum())


def _spread_of(values: Sequence[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    return Spread.of(known, lambda several: float(np.mean(several))) if known else None
