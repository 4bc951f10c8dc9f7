"""Figures 20 and 21: words' vectors made of their characters: quality, words/s, and neighbours of unseen words.

Speed counts words as figure 18 does: each word of the vocabulary once a column, both of its rows moved. That is a pair
of center and context, moved for both. So a word of W2V-Vanilla is a pair.
"""

from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from benchmarks.common import cluster_of
from benchmarks.context_matrix.size import SETS
from benchmarks.context_matrix.speed import cells_of, speeds_of
from benchmarks.context_matrix.training import MATRIX, TRAINING, Kind, Lab, Setting
from benchmarks.context_matrix.vanilla_subwords import VanillaSubwords, train_vanilla_subwords
from benchmarks.papers.figures import Figures
from benchmarks.papers.session import Session
from benchmarks.vanilla import judged
from daskw2v.config.params import Params

SCALING = Figures("section 5.8, of figure 21", {"W2V-CL with subwords, 16 GPUs": 9})
NEAREST = 5
VANILLA, TIMED = "W2V-Vanilla with subwords", 20  # timed by one pair of so many
UNSEEN = (
    "goverment", "recieved", "enviroment", "mathmatics", "phillosophy", "democratcy",  # misspelt
    "harpsichords", "monasticisms", "protectorates", "biochemists", "playwrighting", "volcanologists",  # inflected
    "unfriendliness", "reindustrialization", "ultraconservative", "antimilitarist", "neoplatonically",
    "postcolonialist", "micropolitical", "electrochemically",  # derived
)  # fmt: skip


def subwords(session: Session, setting: Setting, lab: Lab) -> None:
    """Print quality beside that of rows of their own, words/s of one worker and of two, and neighbours."""
    if find_spec("torch") is None:
        session.note("Figures 20 and 21: words are made of their characters with PyTorch, which is not installed.")
        return
    columns, size = setting.subword_columns, setting.subword_size
    shape: dict[str, Any] = {"context_size": columns, "vector_size": size}
    kinds: dict[str, Params] = {
        "words by themselves": setting.params(**shape),
        # Its network is what costs: many columns for each of its steps
        "words of characters": setting.params("subwords", gather_every=setting.subword_gather, **shape),
    }
    vanilla = setting.vanilla_subwords()
    table = session.table(
        "figure 20",
        f"quality at l={columns:,}, d={size}, sample {setting.sample:g}, {vanilla.pairs:,} pairs of W2V-Vanilla: "
        "Spearman, 3CosAdd",
        (*SETS, MATRIX, TRAINING),
    )
    compared: dict[str, Kind] = {**kinds, VANILLA: vanilla}
    for name, kind in compared.items():
        scores = lab.spreads(kind, judged, setting.seeds)
        table.row(name, *(scores[key] for key in (*SETS.values(), MATRIX, TRAINING)))
    vectors = lab.make(kinds["words of characters"].replace(seed=setting.seeds[-1])).vectors
    table = session.table(
        "figure 21",
        f"thousand words/s by workers of one thread, d={size}",
        ("1 worker", "2 workers", "2 / 1"),
    )
    timed = {name: params.replace(context_size=setting.subword_time_columns) for name, params in kinds.items()}
    with cluster_of(2) as two:
        for name, rates in speeds_of(session, lab.text, timed, {1: lab.client, 2: two}).items():
            table.row(name, *cells_of(rates))
    few = replace(vanilla, pairs=max(1, vanilla.pairs // TIMED))
    of_text = session.measure({VANILLA: partial(pairs_per_second, lab, few)})
    table.row(VANILLA, of_text[VANILLA].scaled(1e-3), None, None)
    unseen = [word for word in UNSEEN if word not in vectors]
    table = session.table("figure 20", f"the {NEAREST} nearest words of words that are not in the text", ("nearest",))
    for word in unseen:
        table.row(word, ", ".join(f"{near} {cosine:.2f}" for near, cosine in vectors.most_similar(word, topn=NEAREST)))
    session.note(
        f"{len(UNSEEN) - len(unseen)} of {len(UNSEEN)} words are in the vocabulary, and skipped. The paper's figures "
        f"have no numbers, but {SCALING['W2V-CL with subwords, 16 GPUs']} times one GPU's speed by 16. "
        f"A word is a column of a word, or a pair of W2V-Vanilla, which has one worker; {few.pairs:,} pairs are timed."
    )


def pairs_per_second(lab: Lab, kind: VanillaSubwords) -> float:
    """Train anew; return the pairs over the seconds."""
    text = lab.text
    trained = lab.client.submit(
        train_vanilla_subwords, text.work, text.corpus, text.vocabulary, kind, pure=False
    ).result()
    return float(trained.pairs / trained.seconds)
