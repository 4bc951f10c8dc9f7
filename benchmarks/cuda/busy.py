"""What share of the time a GPU is busy, on a stand-in that takes the time which is predicted of its kernels (`model`).

`train` runs as users run it, with one replica and one worker, which is this process: all that the host does is real,
and takes what it takes here. Only kernels, and copies from pinned memory, take the time of the GPU that is stood in
for. Text is encoded before, and what the host runs is compiled. Training begins with the first array on the GPU; its
first epoch, in which text comes there, ends with the epoch's last kernel. What is written at the end is no part of it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.common import write_text
from benchmarks.cuda.bench import Bench
from benchmarks.cuda.bounds import bounds_of, kept_share, profile_of, rows_of
from benchmarks.cuda.cards import CARDS, Card
from benchmarks.cuda.speed import cores
from benchmarks.cuda.timed import Gpu, Kernel, Spent
from benchmarks.cuda.timed_kernels import TRAINS, Text, kernels
from benchmarks.large_vocabulary import write_zipf
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.objectives.registry import settled
from daskw2v.progress import Progress
from daskw2v.training.pipeline import train


class Case(NamedTuple):
    """A text, its work directory, and how it is trained."""

    name: str
    paths: list[Path]
    work: Path
    params: Params


class Stretch(NamedTuple):
    """Epochs of a training: how many, their words before subsampling, and what was spent."""

    epochs: int
    words: int
    spent: Spent


class Training(NamedTuple):
    """A training: the counts of its words, corpus positions of an epoch; its first epoch, and all later ones."""

    counts: Any
    positions: int
    first: Stretch
    later: Stretch


def cases(bench: Bench) -> Iterator[Case]:
    """Yield Wikipedia with the shortest rows, and drawn texts with the longest."""
    options, folder = bench.options, bench.folder / "busy"
    how = {"epochs": options.epochs, "strategy": "averaging"}
    folder.mkdir()
    if options.parts:
        path = write_text(folder / "wiki.txt", options.parts)
        yield Case("Wikipedia", [path], folder / "wiki", Params(vector_size=min(options.dims), **how))
    for n_words in options.vocabularies:
        text = folder / f"{n_words}"
        text.mkdir()
        paths, _ = write_zipf(text, n_words, options.tokens)
        params = Params(vector_size=max(options.dims), min_count=1, **how)
        yield Case(f"drawn, {n_words:,} words", paths, text / "work", params)


def run(case: Case, card: Card, of: dict[str, Kernel]) -> Training:
    """Train on a stand-in whose kernels take what is given."""
    gpu, heard, epochs = Gpu(card, of), list[tuple[Progress, Spent]](), case.params.epochs

    def listen(progress: Progress) -> None:
        if progress.stage == "train":
            heard.append((progress, gpu.spent()))

    with gpu.installed():
        vectors = train(
            [str(path) for path in case.paths], work=str(case.work), params=case.params,
            resources=Resources(device="cuda", threads=cores()), listener=listen,
        )  # fmt: skip
    trained = [spent for name, spent in gpu.launches if name == TRAINS]
    middle, (progress, end) = trained[len(trained) // epochs - 1], heard[-1]
    words = sum(entry["words"] for entry in vectors.metadata["metrics"]["history"]) // epochs
    return Training(
        vectors.vocabulary.counts, int(progress.total) // epochs, Stretch(1, words, middle.since(gpu.began)),
        Stretch(epochs - 1, words * (epochs - 1), end.since(middle)),
    )  # fmt: skip


def speed_of(case: Case, card: Card, counts: Any) -> float:
    """Return the words that the kernel is predicted to train in a second."""
    params = settled(case.params)
    return min(bounds_of(card, params, profile_of(params, card.capability), rows_of(params, counts)))


def predicted(case: Case, card: Card) -> tuple[float, Text]:
    """Return the words/s of a kernel, and its text, which is encoded by a run; that compiles, too."""
    params = case.params
    first = run(case._replace(params=params.replace(epochs=1, seed=2)), card, kernels(card, 1e9, params, Text(1, 1, 1)))
    n = int(first.counts.sum())
    return speed_of(case, card, first.counts), Text(first.positions, n, n * kept_share(params, first.counts))


def busy(bench: Bench) -> None:
    """Print what an epoch takes, of the host and of the GPU."""
    options, card = bench.options, CARDS[bench.options.card]
    table = bench.table(
        "busy", f"sgns, a stand-in for {options.card} beside {cores()} cores of a host",
        (
            "kernel: million trained words/s", "epochs", "million words/s", "s an epoch",
            *(f"{name}, s an epoch" for name in Spent._fields[1:]), "GPU busy, %",
        ),
        ".3f",
    )  # fmt: skip
    for case in cases(bench):
        speed, text = predicted(case, card)
        training = run(case, card, kernels(card, speed, case.params, text))
        for name, (epochs, words, spent) in (("first epoch", training.first), ("later epochs", training.later)):
            if epochs:
                table.row(
                    f"{case.name}, d={case.params.vector_size}, {name}", speed / 1e6, epochs,
                    words / spent.seconds / 1e6, *(value / epochs for value in spent),
                    100 * spent.kernels / spent.seconds,
                )  # fmt: skip
