"""Vectors of words that the text does not have, from their letters: against fastText, judged by a model that saw them.

Words of 50 to 500 occurrences, of letters alone, are taken out of the text; a model of all of the text, plain `sgns`,
says what their vectors should be near. Overlap: of its ten nearest words, the share that is among the ten nearest to
the vector from letters. Rank: the place there of the first of them, median of the words. Both are among the most
frequent words of the text. The scores are of words in the text. Each row is trained on the same text with the same
settings: n-grams of 3 to 6 characters, 2,000,000 buckets; or these are fitted to plain vectors afterwards
(`Vectors.with_ngrams`). Small models have the most frequent n-grams of the fitted one (`Vectors.prune`), or those of
the most words fitted alone; and these in a file of codes (`export` as ftz). Ours train on one thread. Figures are means
over seeds. With `--objective context_matrix` n-grams are fitted to its rows; the network of `subwords` computes
vectors of unseen words itself.

    python -m benchmarks.unseen_words [--parts 10] [--epochs 3] [--seeds 1 2 3] [--held 2000]
        [--prior-counts 2000 0] [--kept 100000 20000] [--part-sizes 1 2 4] [--tools daskw2v fasttext]
        [--objective sgns]
"""

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from distributed import Client

from benchmarks.context_matrix.speed import GATHER
from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.peers import ABOUT, KINDS, ZEROED, fasttext_arguments
from benchmarks.processes import one_thread
from benchmarks.tables import mean_of
from benchmarks.texts import ANALOGY, DATA, MB, name_of, write_text
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.evaluation import evaluate
from daskw2v.extras import needed
from daskw2v.models.formats.export import export
from daskw2v.models.formats.importing import import_vectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.objectives.registry import find_objective, settle_params
from daskw2v.training.pipeline import train
from daskw2v.vocabulary.vocabulary import Vocabulary

COUNTS, POOL, NEAREST, QUERIES = (50, 500), 20_000, 10, 256
FASTTEXT_THREADS = 2
SIMILARITY = [DATA / "eval" / f"{name}.tsv" for name in ("ws353", "simlex999", "mturk287")]
SCORES = tuple(path.stem for path in (*SIMILARITY, *ANALOGY))
FASTTEXT = "import fasttext, json, sys; fasttext.train_unsupervised(**json.loads(sys.argv[1])).save_model(sys.argv[2])"

Rows = npt.NDArray[np.float32]


class Trained(NamedTuple):
    """A model, what gives vectors of words from their letters, and its file where the size of that tells something."""

    vectors: Vectors
    spell: Callable[[Sequence[str]], Rows] | None = None
    file: Path | None = None


class Judge:
    """What a model of all of the text says of held-out words.

    Parameters
    ----------
    teacher
        That model.
    held
        The words.
    """

    def __init__(self, teacher: Vectors, held: Sequence[str]) -> None:
        self.held, out = list(held), set(held)
        self.pool = [word for word in teacher.index_to_key if word not in out][:POOL]
        self._nearest = self._order(teacher, teacher[self.held])[:, :NEAREST]

    def _order(self, vectors: Vectors, queries: Rows) -> npt.NDArray[np.int64]:
        units = vectors[self.pool]
        units /= np.linalg.norm(units, axis=1, keepdims=True)
        parts = (queries[start : start + QUERIES] @ units.T for start in range(0, len(queries), QUERIES))
        return np.concatenate([np.argsort(-cosines, axis=1, kind="stable") for cosines in parts])

    def judge(self, vectors: Vectors, spelled: Rows) -> tuple[float, float]:
        """Return overlap and rank."""
        order = self._order(vectors, spelled)
        both = zip(order[:, :NEAREST], self._nearest, strict=True)
        shared = [len(np.intersect1d(*pair)) for pair in both]
        ranks = np.argmax(order == self._nearest[:, :1], axis=1)
        return float(np.mean(shared)) / NEAREST, float(np.median(ranks)) + 1


def without(text: Path, target: Path, words: Sequence[str]) -> None:
    """Write a text without some words."""
    out = set(words)
    with text.open() as lines, target.open("w") as part:
        part.writelines(" ".join(word for word in line.split() if word not in out) + "\n" for line in lines)


def hold_out(text: Path, target: Path, n: int) -> list[str]:
    """Write a text without some words, which it returns: drawn among those that are spelled with letters."""
    words, counts = np.unique(text.read_text().split(), return_counts=True)
    fitting = [str(w) for w in words[(counts >= COUNTS[0]) & (counts <= COUNTS[1])] if w.isascii() and w.isalpha()]
    held = [*np.random.default_rng(7).choice(fitting, min(n, len(fitting)), replace=False).tolist()]
    without(text, target, held)
    return held


def train_ours(text: Path, work: Path, params: Params, client: Client) -> Trained:
    vectors = train(text, work=work, params=params, resources=Resources(threads=1), client=client, listener=None)
    return with_spelling(vectors)


def with_spelling(vectors: Vectors, file: Path | None = None) -> Trained:
    features = vectors.features
    if vectors.subwords is not None:
        return Trained(vectors, vectors.subwords.vectors)

    def spell(words: Sequence[str]) -> Rows:
        """Return vectors; zeros, which are near to nothing, where a small model has none of a word's n-grams."""
        assert features is not None
        rows = np.zeros((len(words), features.vector_size), np.float32)
        known = np.diff(features.keys.find_ngrams(words).drop_missing().offsets) > 0
        rows[known] = features.vectors([word for word, has_some in zip(words, known, strict=True) if has_some])
        return rows

    return Trained(vectors, None if features is None else spell, file)


def train_fasttext(text: Path, params: Params, threads: int) -> Trained:
    arguments = {**fasttext_arguments(text, settle_params(params), threads), "epoch": params.epochs}
    path = text.with_suffix(".bin")
    command = [sys.executable, "-c", FASTTEXT, json.dumps(arguments), str(path)]
    subprocess.run(command, check=True, env={**os.environ, **ZEROED})  # as `benchmarks.peers` says
    model = needed("fasttext", "bench").load_model(str(path))
    words = model.words

    def spell(new: Sequence[str]) -> Rows:
        return np.stack([model.get_word_vector(word) for word in new]).astype(np.float32)

    return Trained(Vectors(Vocabulary.from_words(words, range(len(words), 0, -1)), spell(words)), spell, path)


def scores_of(vectors: Vectors) -> dict[str, float]:
    found = evaluate(vectors, similarity=SIMILARITY, analogy=ANALOGY, analogy_methods=("3cosadd",)).scores()
    return {name: score for name, score in found.items() if score is not None}


def figures_of(one: Trained, judge: Judge) -> tuple[float | None, ...]:
    """Return the cells of a row, for a seed."""
    unseen = (None, None) if one.spell is None else judge.judge(one.vectors, one.spell(judge.held))
    size, scores = one.file and one.file.stat().st_size / MB, scores_of(one.vectors)
    return *unseen, size, *(scores.get(name) for name in SCORES)


def models_of(part: Path, seed: int, options: argparse.Namespace, client: Client) -> Iterator[tuple[str, Trained]]:
    """Train with a seed; yield each model by its name, and what is made of it."""
    of_text, buckets = options.objective in KINDS, options.buckets
    work, file = part.with_name("work"), part.with_suffix(".ftz")
    params = Params(objective=options.objective, epochs=options.epochs, strategy="columns", seed=seed)
    if of_text:
        params = params.replace(sample=1e-4, alpha=0.05, strategy="averaging")
    if find_objective(options.objective).has_network:
        params = params.replace(gather_every=GATHER)
    plain = train_ours(part, work, params, client)
    if plain.vectors.subwords is not None:
        yield "network of characters", plain
        return
    yield "plain", plain
    fitted = plain.vectors.with_ngrams(bucket=buckets)
    yield "plain; n-grams fitted", with_spelling(fitted)
    for kept in options.kept:
        yield f"{kept} of them kept", with_spelling(fitted.prune(kept))
        alone = fitted.with_ngrams(bucket=buckets, features=kept)
        yield f"{kept} fitted alone", with_spelling(alone)
        for size in options.part_sizes:
            export(alone, file, part_size=size)
            yield f"{kept} alone, {size} a byte", with_spelling(import_vectors(file), file)
    if of_text:
        ngrams = params.replace(maxn=6, bucket=buckets)
        for prior in options.prior_counts:
            yield f"n-grams, prior_count={prior}", train_ours(part, work, ngrams.replace(prior_count=prior), client)
        if "fasttext" in options.tools:
            yield "fastText", train_fasttext(part, ngrams, FASTTEXT_THREADS)


def measure(session: Session) -> None:
    options, found = session.options, defaultdict[str, list[tuple[float | None, ...]]](list)
    session.text, session.peers = (
        name_of(options.parts),
        {"fasttext": f"{ABOUT['fasttext']}; {FASTTEXT_THREADS} threads, and no seed"},
    )
    text, part = write_text(session.folder / "all.txt", options.parts), session.folder / "part.txt"
    held = hold_out(text, part, options.held)
    with one_thread() as client:
        teaching = Params(epochs=options.epochs, sample=1e-4, alpha=0.05, strategy="averaging", seed=9)
        teacher = train_ours(text, session.folder / "teacher", teaching, client).vectors
        judge = Judge(teacher, [word for word in held if word in teacher])
        for seed in options.seeds:
            for name, model in models_of(part, seed, options, client):
                found[name].append(figures_of(model, judge))
    table = session.table(f"{len(judge.held)} unseen words", ("overlap", "rank", "file, MB", *SCORES))
    for name, figures in found.items():
        table.row(name, *map(mean_of, zip(*figures, strict=True)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", type=float, default=10, help="of 10 MB")
    parser.add_argument(
        "--objective",
        default="sgns",
        help="context_matrix: its rows, with n-grams fitted to them; subwords: its network",
    )
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--held", type=int, default=2000, help="words that are held out")
    parser.add_argument("--buckets", type=int, default=2_000_000)
    parser.add_argument("--prior-counts", type=int, nargs="*", default=[2000, 0])
    parser.add_argument("--kept", type=int, nargs="*", default=[100_000, 20_000], help="n-grams of small models")
    parser.add_argument("--part-sizes", type=int, nargs="*", default=[1, 2, 4], help="dimensions a byte of these")
    parser.add_argument("--tools", nargs="+", choices=["daskw2v", "fasttext"], default=["daskw2v", "fasttext"])


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/features", "daskw2v/objectives", "daskw2v/models"),
    Smoke(
        {"parts": 0.1, "epochs": 1, "seeds": [1], "held": 50, "buckets": 20_000, "kept": [1000], "part_sizes": [2]},
        (
            "plain",
            "n-grams fitted",
            "1000 of them kept",
            "1000 fitted alone",
            "2 a byte",
            "prior_count=2000",
            "prior_count=0",
            "fastText",
        ),
    ),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
