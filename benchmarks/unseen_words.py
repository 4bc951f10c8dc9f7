"""Vectors of words that the text does not have, from their letters: against fastText, judged by a model that saw them.

Words of 50 to 500 occurrences, of letters alone, are taken out of the text; a model of all of the text, plain `sgns`,
says what their vectors should be near. Figures: of its ten nearest words, how many are among the ten nearest to the
vector from letters (overlap), and the rank there of the first of them (median); both among the most frequent words that
are in the text. Beside them, scores of words that are in the text. Each row is trained on the same text with the same
settings: n-grams of 3 to 6 characters, 2,000,000 buckets; or these are fitted to plain vectors afterwards
(`Vectors.with_ngrams`). Small models have the most frequent n-grams of the fitted one (`Vectors.prune`), or those of
the most words fitted alone; and these in a file of codes (`export` as ftz), of which the size is told. fastText runs on
some threads, unseeded; ours on one, seeded.

    python -m benchmarks.unseen_words [--parts 10] [--epochs 3] [--seeds 1 2 3] [--threads 2] [--held 2000]
        [--prior-counts 2000 0] [--kept 100000 20000] [--part-sizes 1 2 4] [--tools daskw2v fasttext]
        [--objective sgns] [--json]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from distributed import Client

from benchmarks.common import ANALOGY, DATA, one_thread, print_rows, write_text
from benchmarks.options import Smoke, parsed
from benchmarks.peers import KINDS, ZEROED, fasttext_arguments
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.evaluation import evaluate
from daskw2v.extras import needed
from daskw2v.models.export import export
from daskw2v.models.importing import import_vectors
from daskw2v.models.vectors import Vectors
from daskw2v.objectives.registry import settled
from daskw2v.training.pipeline import train
from daskw2v.vocabulary.vocabulary import Vocabulary

COUNTS, POOL, NEAREST, QUERIES = (50, 500), 20_000, 10, 256
SIMILARITY = [DATA / "eval" / f"{name}.tsv" for name in ("ws353", "simlex999", "mturk287")]
PLAIN, FITTED = "plain", "plain; n-grams fitted"
FASTTEXT = "import fasttext, json, sys; fasttext.train_unsupervised(**json.loads(sys.argv[1])).save_model(sys.argv[2])"

Rows = npt.NDArray[np.float32]


class Trained(NamedTuple):
    """A model, what gives vectors of words from their letters, and the size of its file."""

    vectors: Vectors
    spell: Callable[[Sequence[str]], Rows] | None = None
    megabytes: float | None = None


class Row(NamedTuple):
    """Means over seeds, and each seed's."""

    tool: str
    overlap: float | None
    rank: float | None
    megabytes: float | None
    scores: dict[str, float]
    by_seed: list[dict[str, float | None]]


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


def hold_out(text: Path, target: Path, n: int) -> list[str]:
    """Write a text without some words, which it returns: drawn among those that are spelled with letters."""
    lines = text.read_text().splitlines()
    words, counts = np.unique([word for line in lines for word in line.split()], return_counts=True)
    fitting = [str(w) for w in words[(counts >= COUNTS[0]) & (counts <= COUNTS[1])] if w.isascii() and w.isalpha()]
    held = [*np.random.default_rng(7).choice(fitting, min(n, len(fitting)), replace=False).tolist()]
    out = set(held)
    target.write_text("".join(" ".join(w for w in line.split() if w not in out) + "\n" for line in lines))
    return held


def train_ours(text: Path, work: Path, params: Params, client: Client) -> Trained:
    vectors = train(text, work=work, params=params, resources=Resources(threads=1), client=client, listener=None)
    return with_spelling(vectors)


def with_spelling(vectors: Vectors, file: Path | None = None) -> Trained:
    features = vectors.features

    def spell(words: Sequence[str]) -> Rows:
        """Return vectors; zeros, which are near to nothing, where a small model has none of a word's n-grams."""
        assert features is not None
        rows = np.zeros((len(words), features.vector_size), np.float32)
        known = np.diff(features.keys.of_words(words).known().offsets) > 0
        rows[known] = features.vectors([word for word, has_some in zip(words, known, strict=True) if has_some])
        return rows

    return Trained(vectors, None if features is None else spell, None if file is None else file.stat().st_size / 1e6)


def small(vectors: Vectors, part_size: int, path: Path) -> Trained:
    """Return the model in a file with a byte for so many dimensions."""
    export(vectors, path, part_size=part_size)
    return with_spelling(import_vectors(path), path)


def train_fasttext(text: Path, params: Params, threads: int) -> Trained:
    arguments = {**fasttext_arguments(text, settled(params), threads), "epoch": params.epochs}
    path = text.with_suffix(".bin")
    command = [sys.executable, "-c", FASTTEXT, json.dumps(arguments), str(path)]
    subprocess.run(command, check=True, env={**os.environ, **ZEROED})  # as `benchmarks.peers` says
    model = needed("fasttext", "bench").load_model(str(path))
    words = model.words
    rows = np.stack([model.get_word_vector(word) for word in words]).astype(np.float32)
    vocabulary = Vocabulary.from_words(words, range(len(words), 0, -1))

    def spell(new: Sequence[str]) -> Rows:
        return np.stack([model.get_word_vector(word) for word in new])

    return Trained(Vectors(vocabulary, rows), spell, path.stat().st_size / 1e6)


def scores_of(vectors: Vectors) -> dict[str, float]:
    found = evaluate(vectors, similarity=SIMILARITY, analogy=ANALOGY, analogy_methods=("3cosadd",)).scores()
    return {name: score for name, score in found.items() if score is not None}


def compare(folder: Path, options: argparse.Namespace, client: Client) -> Iterator[Row]:
    teaching = Params(epochs=options.epochs, sample=1e-4, alpha=0.05, strategy="averaging")
    of_text = options.objective in KINDS
    matrix = Params(epochs=options.epochs, strategy="columns")
    params = (teaching if of_text else matrix).replace(objective=options.objective)
    text, part = write_text(folder / "all.txt", options.parts), folder / "part.txt"
    held = hold_out(text, part, options.held)
    teacher = train_ours(text, folder / "teacher", teaching.replace(seed=9), client).vectors
    judge = Judge(teacher, [word for word in held if word in teacher])

    def ours(own: Params) -> Callable[[int], Trained]:
        return lambda seed: train_ours(part, folder / "work", own.replace(seed=seed), client)

    @cache
    def fitted(seed: int) -> Trained:
        return with_spelling(ours(params)(seed).vectors.with_ngrams(bucket=options.buckets))

    @cache
    def fitted_alone(seed: int, kept: int) -> Trained:
        return with_spelling(fitted(seed).vectors.with_ngrams(bucket=options.buckets, features=kept))

    def alone(kept: int) -> Callable[[int], Trained]:
        return lambda seed: fitted_alone(seed, kept)

    def made_small(kept: int, part_size: int) -> Callable[[int], Trained]:
        return lambda seed: small(fitted_alone(seed, kept).vectors, part_size, folder / "small.ftz")

    def pruned(kept: int) -> Callable[[int], Trained]:
        return lambda seed: with_spelling(fitted(seed).vectors.prune(kept))

    ways: dict[str, Callable[[int], Trained]] = {PLAIN: ours(params), FITTED: fitted}
    for kept in options.kept:
        ways[f"  {kept} of them kept"] = pruned(kept)
        ways[f"  {kept} fitted alone"] = alone(kept)
        for part_size in options.part_sizes:
            ways[f"  {kept} alone, {part_size} a byte"] = made_small(kept, part_size)
    ngrams = params.replace(maxn=6, bucket=options.buckets) if of_text else params
    for prior in options.prior_counts if of_text else ():
        ways[f"n-grams, prior_count={prior}"] = ours(ngrams.replace(prior_count=prior))
    if "fasttext" in options.tools and of_text:
        ways["fastText"] = lambda seed: train_fasttext(part, ngrams, options.threads)
    for tool, run in ways.items():
        found: list[dict[str, float | None]] = []
        for seed in options.seeds:
            one = run(seed)
            overlap, rank = (None, None) if one.spell is None else judge.judge(one.vectors, one.spell(judge.held))
            found.append({"overlap": overlap, "rank": rank, "megabytes": one.megabytes, **scores_of(one.vectors)})
        mean = {name: _mean([one[name] for one in found]) for name in found[0]}
        overlap, rank, megabytes = (mean.pop(name) for name in ("overlap", "rank", "megabytes"))
        scores = {name: value for name, value in mean.items() if value is not None}
        yield Row(tool, overlap, rank, megabytes, scores, found)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None


def line(row: Row) -> str:
    scores = "  ".join(
        f"{name} {value:.3f} ± {_spread([one[name] for one in row.by_seed]):.3f}" for name, value in row.scores.items()
    )
    unseen = "unseen words: none" if row.overlap is None else (
        f"overlap {row.overlap:.4f} ± {_spread([one['overlap'] for one in row.by_seed]):.4f}, rank {row.rank:.0f}"
    )  # fmt: skip
    size = "" if row.megabytes is None else f"{row.megabytes:.1f} MB"
    return f"{row.tool:34} {size:>10}  {unseen:36} {scores}"


def _spread(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return statistics.stdev(known) if len(known) > 1 else 0.0


SMOKE = Smoke(
    {
        "parts": 0.1, "epochs": 1, "seeds": [1], "held": 50, "buckets": 20_000, "threads": 1, "kept": [1000],
        "part_sizes": [2],
    },
    (
        PLAIN, FITTED, "1000 of them kept", "1000 fitted alone", "2 a byte", "prior_count=2000", "prior_count=0",
        "fastText",
    ),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--objective", default="sgns", help="context_matrix: its rows, and n-grams fitted to them")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=2, help="of fastText")
    parser.add_argument("--held", type=int, default=2000, help="words that are held out")
    parser.add_argument("--buckets", type=int, default=2_000_000)
    parser.add_argument("--prior-counts", type=int, nargs="*", default=[2000, 0])
    parser.add_argument("--kept", type=int, nargs="*", default=[100_000, 20_000], help="n-grams of small models")
    parser.add_argument("--part-sizes", type=int, nargs="*", default=[1, 2, 4], help="dimensions a byte of these")
    parser.add_argument("--tools", nargs="+", choices=["daskw2v", "fasttext"], default=["daskw2v", "fasttext"])
    options = parsed(parser, SMOKE)
    with tempfile.TemporaryDirectory() as folder, one_thread() as client:
        print_rows("Held-out words, and scores of words in the text (mean, standard deviation)",
                   compare(Path(folder), options, client), line, as_json=options.json)  # fmt: skip


if __name__ == "__main__":
    main()
