"""Figure 18: words/s by workers and by the columns between two gatherings, what these do to quality, and more workers.

Speed counts words as the paper does: each word of the vocabulary once a column, both of its rows moved.
"""

from collections.abc import Mapping
from functools import partial

from distributed import Client

from benchmarks.common import cluster_of
from benchmarks.context_matrix.scaling import CORPORA, Work, measure_constants, speedups
from benchmarks.context_matrix.size import SETS
from benchmarks.context_matrix.training import Lab, Setting, matrix_of, train_anew
from benchmarks.papers.figures import Figures
from benchmarks.papers.session import Session
from benchmarks.tables import Spread
from benchmarks.texts import Text
from benchmarks.vanilla import judged
from daskw2v.config.params import Params

SPEED = Figures("section 5.7, of figure 18", {1: 99_237, 2: 193_193})
SCALING = Figures("section 5.7, of figure 18", {2: 1.9, 8: 5.5, 16: 7.5})
WORKERS = (2, 4, 8, 16)


def words_per_second(client: Client, text: Text, params: Params) -> float:
    """Train, with the matrix there already; return the words of all columns over the seconds of all rounds."""
    matrix_of(client, text, params)
    metrics = train_anew(client, text, params).metadata["metrics"]
    return text.vocabulary.size * params.context_size * params.epochs / float(metrics["seconds"])


def speeds_of(
    session: Session, text: Text, kinds: Mapping[str, Params], clusters: Mapping[int, Client]
) -> dict[str, dict[int, Spread]]:
    """Return words/s of each kind by workers, in turn."""
    for client in clusters.values():  # compiles
        for params in kinds.values():
            train_anew(client, session.small, params.replace(context_size=min(16, params.context_size)))
    runs = {
        f"{name}|{n}": partial(words_per_second, client, text, params)
        for name, params in kinds.items()
        for n, client in clusters.items()
    }
    found = session.measure(runs)
    return {name: {n: found[f"{name}|{n}"] for n in clusters} for name in kinds}


def cells_of(speeds: Mapping[int, Spread]) -> tuple[Spread, Spread, float]:
    """Return thousand words/s of one worker and of two, and how many times as fast two are."""
    return speeds[1].scaled(1e-3), speeds[2].scaled(1e-3), speeds[2].middle / speeds[1].middle


def speed(session: Session, setting: Setting, lab: Lab) -> None:
    """Print words/s of one worker and of two, and the quality of each `gather_every`; then the model's speedups."""
    kinds = {str(g): setting.params(gather_every=g) for g in setting.gathers}
    table = session.table(
        SPEED,
        f"thousand words/s by workers of one thread and gather_every, d={setting.vector_size}; quality at "
        f"l={setting.context_size:,}",
        ("1 worker", "2 workers", "2 / 1", *SETS),
    )
    quality = {name: lab.spreads(params, judged, setting.seeds) for name, params in kinds.items()}
    with cluster_of(2) as two:
        timed = {name: params.replace(context_size=setting.time_columns) for name, params in kinds.items()}
        found = speeds_of(session, lab.text, timed, {1: lab.client, 2: two})
        constants = measure_constants(two, session.small, setting.params(), session.options.times)
    table.row("paper, GPUs", SPEED[1] / 1e3, SPEED[2] / 1e3, SCALING[2], *(None for _ in SETS))
    for name, scores in quality.items():
        table.row(f"gather_every={name}", *cells_of(found[name]), *(scores[key] for key in SETS.values()))
    table = session.table(
        SCALING,
        "times as fast as one worker of one core, by our model of 10 Gbps, not by a training",
        [f"{n} workers" for n in WORKERS],
        ".2f",
    )
    table.row("paper, GPUs", *(SCALING.get(n) for n in WORKERS))
    for corpus, (n_words, size) in CORPORA.items():
        work = Work(n_words, setting.params(vector_size=size))
        shares = {n: work.share(n) for n in (1, *WORKERS)}
        for gather in setting.gathers:
            modelled = speedups(n_words, size, shares, gather, constants).values()
            for name, speeds in zip(
                ("sent as by Dask", "sent as the link can"), zip(*modelled, strict=True), strict=True
            ):
                table.row(f"{corpus}, gather_every={gather}, {name}", *speeds)
    session.note(
        f"The model is benchmarks.context_matrix.scaling, with {constants.task * 1e3:.2f} ms a task of Dask and "
        f"{constants.send * 1e9:.2f} ns a byte between workers, as measured now."
    )
