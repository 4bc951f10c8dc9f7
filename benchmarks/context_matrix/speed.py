"""Figures 18, 20 and 21: words/s by workers and by the columns between two gatherings; words made of their characters.

Speed counts words as the paper does: each word of the vocabulary once a column, both of its rows moved.
"""

from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from distributed import Client

from benchmarks.context_matrix.lab import Lab, Setting, matrix_of
from benchmarks.epochs import train_anew
from benchmarks.judges import FEW, by_few
from benchmarks.papers.figures import Figures
from benchmarks.papers.session import Session
from benchmarks.processes import cluster_of
from benchmarks.texts import Text
from daskw2v.config.params import Params
from daskw2v.objectives.base import TABLES
from daskw2v.sampling.settings import SampledContexts
from daskw2v.training.columns.settings import Columns

SPEED = Figures("section 5.7, of figure 18", {1: 99_237, 2: 193_193})
SCALING = Figures("section 5.7, of figure 18", {2: 1.9, 8: 5.5, 16: 7.5})
SUBWORDS = Figures("section 5.8, of figure 21", {"W2V-CL with subwords, 16 GPUs": 9})
GATHER = 256  # columns: the network of characters is what costs
LINK = 1.25e9  # bytes a second between workers of several machines, of the forecasts: 10 Gbit/s
FORECASTS = (8, 16)  # workers


def words_per_second(client: Client, text: Text, params: Params) -> float:
    """Train, with the matrix there already; return the words of all columns over the seconds of all rounds."""
    matrix_of(client, text, params)
    metrics = train_anew(client, text, params).metadata["metrics"]
    return text.vocabulary.size * SampledContexts.of(params).context_size * params.epochs / float(metrics["seconds"])


def forecast(one: float, two: float, words: int, params: Params, n: int) -> float:
    """Return how many times as fast as one worker n workers on machines of their own would be.

    A step trains its words on n workers. What two workers of one machine take besides (tasks, copies of rows) does not
    get less with more workers, and each receives the rows of all others in both tables by a link.

    Parameters
    ----------
    one, two
        Words/s of one worker, and of two.
    words
        Words of the vocabulary.
    """
    step = words * Columns.of(params).columns_per_step
    besides = max(0.0, step / two - step / one / 2)
    received = len(TABLES) * words * params.vector_size * np.dtype(np.float32).itemsize * (1 - 1 / n)
    return step / one / (step / one / n + besides + received / LINK)


def compare(session: Session, setting: Setting, lab: Lab, about: tuple[str, str], kinds: Mapping[str, Params]) -> None:
    """Print thousand words/s of one worker and of two, taken in turn, how many times as fast two are, and quality."""
    source, title = about
    table = session.beside(
        source,
        f"{title}, sample {setting.sample:g}: thousand words/s by workers of one thread; Spearman, 3CosAdd",
        ("1 worker", "2 workers", "2 / 1", *(f"{n} / 1, by a model" for n in FORECASTS), *FEW),
    )
    if source == SPEED.source:
        paper = (SPEED[1] / 1e3, SPEED[2] / 1e3, SCALING[2], *(SCALING[n] for n in FORECASTS))
        table.row("paper, GPUs", *paper, *(None for _ in FEW))
    with cluster_of(2) as two:
        clusters, runs = {1: lab.client, 2: two}, {}
        for name, params in kinds.items():
            for n, client in clusters.items():
                few = min(16, SampledContexts.of(params).context_size)
                train_anew(client, session.small, params.replace(context_size=few))  # compiles
                timed = params.replace(context_size=setting.time_columns)
                runs[f"{name}|{n}"] = partial(words_per_second, client, lab.text, timed)
        found = session.measure(runs)
    for name, params in kinds.items():
        one, two_workers = (found[f"{name}|{n}"].scaled(1e-3) for n in clusters)
        quality = lab.spreads(params, by_few, setting.seeds)
        of_text = 1e3 * one.middle, 1e3 * two_workers.middle, lab.text.vocabulary.size, params
        ratios = two_workers.middle / one.middle, *(forecast(*of_text, n) for n in FORECASTS)
        table.row(name, one, two_workers, *ratios, *(quality.get(key) for key in FEW.values()))


def speed(session: Session, setting: Setting, lab: Lab) -> None:
    """Print speed and quality by `gather_every`."""
    kinds = {f"gather_every={g}": setting.params(gather_every=g) for g in setting.gathers}
    about = f"columns between two gatherings, d={setting.vector_size}, l={setting.context_size:,}"
    compare(session, setting, lab, (SPEED.source, about), kinds)
    session.note("The model of more workers has links of 10 Gbit/s; no more than two were measured.")


def subwords(session: Session, setting: Setting, lab: Lab) -> None:
    """Print speed and quality of words made of their characters beside those of rows of their own."""
    if find_spec("torch") is None:
        session.note("Figures 20 and 21: words are made of their characters with PyTorch, which is not installed.")
        return
    shape: dict[str, Any] = {"context_size": setting.subword_columns, "vector_size": setting.subword_size}
    kinds = {
        "words by themselves": setting.params(**shape),
        "words of characters": setting.params("subwords", gather_every=GATHER, **shape),
    }
    about = f"words of characters, d={setting.subword_size}, l={setting.subword_columns:,}"
    compare(session, setting, lab, ("figures 20 and 21", about), kinds)
    session.note(
        "The paper's figures have no numbers, but "
        f"{SUBWORDS['W2V-CL with subwords, 16 GPUs']} times one GPU's speed by 16."
    )
