"""Why the network of characters says little of meaning: what it learns where it is shown the rows themselves.

The rows of the matrix are trained on a text without some words, as `benchmarks.unseen_words` holds them out and judges
them. Then the network of `subwords` regresses the directions of the rows from the characters, as Mimick does (Pinter et
al. 2017): squared errors, small batches of words, and Adam whose rate falls to 0. Beside it stand a network of more
filters, n-grams that are fitted to the same rows, and the network that is trained in place (section 5.8). What the
network does not reach with the rows before it, no schedule of the training in place will: that has them at second hand.

Scores are those of words of the text, computed from their characters alone. Some rows are shown to neither fit: these
say how much of a row spelling explains that was not seen.
"""

import inspect
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cache import CODE, Scores, kept
from benchmarks.context_matrix.training import AS_PAPER, Lab, Setting
from benchmarks.papers.session import Session
from benchmarks.tables import Spread
from benchmarks.unseen_words import COUNTS, Judge, hold_out, scores_of, train_ours
from benchmarks.vanilla import MIN_COUNT
from daskw2v.config.params import Params
from daskw2v.errors import UnknownWordError
from daskw2v.models.vectors import Vectors
from daskw2v.objectives.subwords.alphabet import Alphabet
from daskw2v.objectives.subwords.network import Subwords, Weights
from daskw2v.objectives.subwords.training import FILTERS, import_torch, initial_weights, rows_of_tensors
from daskw2v.shards.layout import digest
from daskw2v.types import Float32Array
from daskw2v.vocabulary.vocabulary import Vocabulary

BATCH, ALPHA = 256, 0.003  # words of a step of Adam; its learning rate at first
SETS = {"WordSim353": "ws353", "Sim 999": "simlex999", "Google": "google_analogy"}
SIZE, EXPLAINED, UNSEEN = "million parameters", ("explained of rows shown", "of others"), ("overlap, held out", "rank")
TEACHER = Params(epochs=3, sample=1e-4, alpha=0.05, strategy="averaging", min_count=MIN_COUNT, seed=9)

Spell = Callable[[Sequence[str]], Float32Array]  # vectors of words, from their characters


def imitation(session: Session, setting: Setting, lab: Lab) -> None:
    """Print scores of words of the text, variance explained, and how near held-out words come, of each way."""
    if find_spec("torch") is None:
        session.note("Imitation: words are made of their characters with PyTorch, which is not installed.")
        return
    study, source = Study(setting, lab, session.folder / "imitation"), digest(inspect.getsource(sys.modules[__name__]))
    found: dict[str, list[Scores]] = {}
    for seed in setting.seeds:
        params = study.params("subwords", seed=seed).as_dict()
        about = {
            "params": params,
            "held": setting.held,
            "epochs": [*setting.imitation_epochs],
            "source": source,
        }
        name = f"imitation-{digest([lab.text.path.stat().st_size, CODE, about])}.json"
        scores = kept(session.cache, name, about, partial(study.scores, seed))
        for way in dict.fromkeys(key.partition("|")[0] for key in scores):
            own = {key.partition("|")[2]: value for key, value in scores.items() if key.startswith(f"{way}|")}
            found.setdefault(way, []).append(own)
    columns = (*SETS, SIZE, *EXPLAINED, *UNSEEN)
    table = session.table(
        "section 5.8",
        f"what a network learns from the rows themselves, l={setting.subword_columns:,}, d={setting.subword_size}, "
        f"sample {setting.sample:g}, {setting.held:,} held-out words, {len(setting.seeds)} seed(s)",
        columns,
    )
    for way, several in found.items():
        values = ([scores[key] for scores in several if key in scores] for key in (SETS.get(c, c) for c in columns))
        table.row(way, *(Spread.of(each, statistics.mean) if each else None for each in values))
    session.note(
        "Held-out words are compared with the rows of the matrix; those of a network in place with what it computes of "
        "the words of the text."
    )


class Study:
    """Rows on a text without some words, and what is made of them.

    Parameters
    ----------
    setting, lab
        What is trained, and where.
    place
        A new folder.
    """

    def __init__(self, setting: Setting, lab: Lab, place: Path) -> None:
        self._setting, self._lab, self._place = setting, lab, place
        place.mkdir()

    def params(self, objective: str, **changes: Any) -> Params:
        """Return the settings of an objective that trains the matrix."""
        s = self._setting
        return s.params(objective, context_size=s.subword_columns, vector_size=s.subword_size, **changes)

    @cached_property
    def judge(self) -> Judge:
        """What a model of all of the text says of the held-out words; the text without them is there then."""
        text = self._lab.text.path
        held = hold_out(text, self._place / "part.txt", self._setting.held)
        teacher = train_ours(text, self._place / "teacher", TEACHER, self._lab.client).vectors
        return Judge(teacher, [word for word in held if word in teacher])

    def scores(self, seed: int) -> Scores:
        """Return the figures of all ways, each named by way and figure."""
        return {f"{way}|{name}": value for way, found in self._ways(seed) for name, value in found.items()}

    def _train(self, params: Params) -> Vectors:
        return train_ours(self._place / "part.txt", self._place / "work", params, self._lab.client).vectors

    def _ways(self, seed: int) -> Iterator[tuple[str, Scores]]:
        judge, setting = self.judge, self._setting
        rows = self._train(self.params("context_matrix", seed=seed))
        yield "rows of the matrix", scores_of(rows) | {SIZE: math.prod(rows.vectors.shape) / 1e6}
        words, counts = [*rows.index_to_key], rows.vocabulary.counts
        units = rows.vectors / np.linalg.norm(rows.vectors, axis=1, keepdims=True)
        rare = np.flatnonzero((counts >= COUNTS[0]) & (counts <= COUNTS[1]))
        others = np.random.default_rng(seed).choice(rare, min(setting.held, len(rare)) // 2, replace=False)
        shown = np.setdiff1d(np.arange(len(words)), others)
        known = [words[i] for i in shown]

        def look(spell: Spell, n_parameters: int) -> Scores:
            said = spell(words)
            explained = (_explained(units[of], said[of]) for of in (shown, others))
            near = judge.judge(rows, spell(judge.held))
            figures = dict(zip((*EXPLAINED, *UNSEEN), (*explained, *near), strict=True))
            return {**scores_of(Vectors(rows.vocabulary, said)), SIZE: n_parameters / 1e6, **figures}

        fitted = Vectors(Vocabulary.from_words(known, counts[shown]), units[shown]).with_ngrams().features
        assert fitted is not None
        yield (
            "n-grams fitted to them",
            look(partial(_each, fitted.vectors, fitted.vector_size), math.prod(fitted.rows.shape)),
        )
        networks = [(epochs, FILTERS) for epochs in setting.imitation_epochs]
        for epochs, filters in (*networks, (setting.imitation_epochs[0], 4 * FILTERS)):
            network = imitate(known, units[shown], epochs, seed, filters)
            name = f"network of {filters} filters of a width, {epochs} epochs over them"
            yield name, look(network.vectors, _size(network.weights))
        for exponent in (None, AS_PAPER["ns_exponent"]):
            params = self.params("subwords", seed=seed, gather_every=setting.subword_gather, ns_exponent=exponent)
            own = self._train(params)
            assert own.subwords is not None
            near = dict(zip(UNSEEN, judge.judge(own, own.subwords.vectors(judge.held)), strict=True))
            name = f"network of {FILTERS} filters of a width, in place, ns_exponent={exponent}"
            yield name, {**scores_of(own), SIZE: _size(own.subwords.weights) / 1e6, **near}


def imitate(words: Sequence[str], targets: Float32Array, epochs: int, seed: int, filters: int = FILTERS) -> Subwords:
    """Return a network that was trained to say words' targets, shape (n, D)."""
    torch, random, alphabet = import_torch(), np.random.default_rng(seed), Alphabet.of(words)
    characters, wanted = alphabet.encode(words), torch.from_numpy(targets)
    lengths = np.count_nonzero(characters, axis=1)
    first = initial_weights(targets.shape[1], len(alphabet), seed, filters)
    weights = {name: torch.tensor(values, requires_grad=True) for name, values in first.items()}
    adam = torch.optim.Adam(weights.values(), lr=ALPHA)
    falling = torch.optim.lr_scheduler.LambdaLR(adam, lambda epoch: 1 - epoch / epochs)
    for _ in range(epochs):
        alike = np.argsort(lengths + random.random(len(words)))  # words of like length have little padding
        batches = np.split(alike, range(BATCH, len(alike), BATCH))
        for i in random.permutation(len(batches)):
            batch = batches[i]
            said = rows_of_tensors(torch, weights, characters[batch, : lengths[batch].max()])
            adam.zero_grad()
            (said - wanted[torch.from_numpy(batch)]).square().sum(dim=1).mean().backward()
            adam.step()
        falling.step()
    return Subwords(alphabet, {name: tensor.detach().numpy() for name, tensor in weights.items()})


def _each(spell: Spell, columns: int, words: Sequence[str]) -> Float32Array:
    """Return vectors of words; zeros for one of which no n-gram is known."""
    found = np.zeros((len(words), columns), np.float32)
    for i, word in enumerate(words):
        with suppress(UnknownWordError):
            found[i] = spell([word])[0]
    return found


def _explained(units: Float32Array, said: Float32Array) -> float:
    """Return by which share the squared error is below that of the mean."""
    return float(1 - np.square(units - said).sum() / np.square(units - units.mean(axis=0)).sum())


def _size(weights: Weights) -> int:
    return sum(values.size for values in weights.values())
