"""Figures 20 and 21: words' vectors made of their characters: quality, words/s, and neighbours of unseen words."""

from importlib.util import find_spec
from typing import Any

from benchmarks.common import cluster_of
from benchmarks.context_matrix.size import SETS
from benchmarks.context_matrix.speed import cells_of, speeds_of
from benchmarks.context_matrix.training import MATRIX, TRAINING, Lab, Setting
from benchmarks.papers.session import Session
from benchmarks.papers.tables import Figures
from benchmarks.vanilla import judged

SCALING = Figures("section 5.8, of figure 21", {"W2V-CL with subwords, 16 GPUs": 9})
NEAREST = 5
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
    kinds = {
        "words by themselves": setting.params(**shape),
        # Its network is what costs: many columns for each of its steps
        "words of characters": setting.params("subwords", gather_every=setting.subword_gather, **shape),
    }
    table = session.table(
        "figure 20", f"quality at l={columns:,}, d={size}: Spearman, 3CosAdd", (*SETS, MATRIX, TRAINING)
    )
    for name, params in kinds.items():
        scores = lab.spreads(params, judged, setting.seeds)
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
    unseen = [word for word in UNSEEN if word not in vectors]
    table = session.table("figure 20", f"the {NEAREST} nearest words of words that are not in the text", ("nearest",))
    for word in unseen:
        table.row(word, ", ".join(f"{near} {cosine:.2f}" for near, cosine in vectors.most_similar(word, topn=NEAREST)))
    session.note(
        f"{len(UNSEEN) - len(unseen)} of {len(UNSEEN)} words are in the vocabulary, and skipped. The paper's figures "
        f"have no numbers, but {SCALING['W2V-CL with subwords, 16 GPUs']} times one GPU's speed by 16. "
        "W2V-Vanilla with subwords is not built here."
    )
