"""002, W2V-CL: batches of the whole vocabulary, for GPUs. Strategy and objective are not built yet (issue 6).

What can be measured now: the sets that its vectors are judged by, and its baseline, SGNS, on all of them; some 4
minutes by default. `--classifier cnn` labels texts as the paper does: it takes minutes a set, and needs PyTorch.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.common import ANALOGY, DATA
from benchmarks.papers.session import Session, params_of
from benchmarks.papers.tables import Figures, Paper
from daskw2v.evaluation import evaluate
from daskw2v.evaluation.classification import ClassificationMethod
from daskw2v.evaluation.pairs import read_pairs
from daskw2v.evaluation.questions import read_lines
from daskw2v.evaluation.relations import read_relations
from daskw2v.evaluation.texts import read_texts
from daskw2v.models.vectors import Vectors

SIZES = Figures(
    "sections 5.2.1 and 5.2.2",
    {"WordSim353": 353, "MEN": 3000, "Mech Turk": 287, "Rare Words": 2034, "Google": 8869 + 10675, "BATS": 99_200},
)
VOCABULARY = Figures("section 5.1", {"words": 18_498})
SPEED = Figures("section 5.7, of figure 18", {"W2V-CL, 1 GPU": 99_237, "W2V-CL, 2 GPUs": 193_193})
SCALING = Figures("section 5.7, of figure 18", {"W2V-CL, 8 GPUs": 5.5, "W2V-CL, 16 GPUs": 7.5})
SUBWORDS = Figures("section 5.8, of figure 21", {"W2V-CL with subwords, 16 GPUs": 9})
TRAINING = Figures("section 5.6", {"W2V-Vanilla": 1769, "W2V-CL": 1867})
MATRIX = Figures("section 3", {"seconds": 400})

PAPER = Paper(
    "Li et al. (2019), Scaling Word2Vec on Big Corpus",
    "Tesla K80 GPUs, 8 a node; text8, 1 epoch, Adam; skip-gram, d=500, negative 5, window 2, min_count 50 "
    "(section 5.1)",
    (SIZES, VOCABULARY, SPEED, SCALING, SUBWORDS, TRAINING, MATRIX),
)

_EVAL = DATA / "eval"
SIMILARITY = {
    "WordSim353": "ws353",
    "WordSim353, similarity": "ws353_sim",
    "WordSim353, relatedness": "ws353_rel",
    "Sim 999": "simlex999",
    "MEN": "men",
    "Mech Turk": "mturk287",
    "Rare Words": "rw",
}
CATEGORIES = {
    "BM (Battig)": "battig", "AP": "ap", "BLESS": "bless", "ESSLLI 1a": "esslli2008_1a", "ESSLLI 2c": "esslli2008_2c",
}  # fmt: skip
TEXTS = {
    "stsa": "sst2_train.tsv,sst2_dev.tsv,sst2_test.tsv",
    "custrev": "cr.tsv", "mpqa": "mpqa.tsv", "rt": "mr.tsv", "subj": "subj.tsv",
}  # fmt: skip


def tables_of(names: dict[str, str]) -> dict[str, Path]:
    """Return the files of sets of words that are there."""
    found = {name: _EVAL / f"{file}.tsv" for name, file in names.items()}
    return {name: path for name, path in found.items() if path.exists()}


def texts_of() -> dict[str, list[Path]]:
    return {name: [_EVAL / file for file in files.split(",")] for name, files in TEXTS.items()}


def analogies_of() -> dict[str, Path]:
    return {"Google": ANALOGY[0], "BATS": _EVAL / "bats"}


def sizes(session: Session) -> None:
    """Print how large the paper's sets are, and those here."""
    table = session.table("tables 5 and 6, section 5.2", "the sets", ("paper", "here", "here: classes"))
    similarity = tables_of(SIMILARITY)
    for name in SIMILARITY:
        here = len(read_pairs(similarity[name])) if name in similarity else "not at hand"
        table.row(f"{name}, pairs", SIZES.get(name), here, None)
    for name, path in analogies_of().items():
        asked = sum(len(relation.questions) for relation in read_relations(path))
        table.row(f"{name}, questions", SIZES[name], asked, None)
    for name, path in tables_of(CATEGORIES).items():
        classes = [line.split("\t")[1] for _, line in read_lines(path)]
        table.row(f"{name}, words", "missing", len(classes), len(set(classes)))
    for name, files in texts_of().items():
        labels = [label for path in files for label, _ in read_texts(path)]
        table.row(f"{name}, texts", "missing", len(labels), len(set(labels)))
    session.note("The rows of tables 5 and 6 are missing in our copy of the paper; its texts give the other sizes.")


def _judged(vectors: Vectors, classifier: ClassificationMethod) -> dict[str, float]:
    similarity, analogies, categories, texts = tables_of(SIMILARITY), analogies_of(), tables_of(CATEGORIES), texts_of()
    names = {path.stem: name for name, path in (similarity | analogies | categories).items()}
    names |= {files[0].stem: name for name, files in texts.items()}
    found = evaluate(
        vectors,
        list(similarity.values()),
        list(analogies.values()),
        list(categories.values()),
        [",".join(map(str, files)) for files in texts.values()],
        analogy_methods=("lrcos",),
        classification_methods=(classifier,),
    )
    return {names[row.name]: row.value for row in found.rows() if row.value is not None}


def by_logistic(vectors: Vectors) -> dict[str, float]:
    return _judged(vectors, "logistic")


def by_cnn(vectors: Vectors) -> dict[str, float]:
    return _judged(vectors, "cnn")


CLASSIFIERS: dict[str, Callable[[Vectors], dict[str, float]]] = {"logistic": by_logistic, "cnn": by_cnn}


def quality(session: Session) -> None:
    """Judge SGNS as the paper judges its baseline, with its dimensions, window and rarest word."""
    options = session.options
    params = params_of("sgns", vector_size=500, window=2, min_count=50, epochs=options.epochs)
    table = session.table(
        "figure 15",
        "SGNS with the paper's d, window and min_count: Spearman, LRCos, purity, accuracy",
        ("paper", "here"),
    )
    scores = session.scores(params, session.seeds(1), session.place(judge=CLASSIFIERS[options.classifier]))
    for name in (*SIMILARITY, *analogies_of(), *CATEGORIES, *TEXTS):
        table.row(name, "in a figure only", scores.get(name, "not at hand"))
    session.note(f"Texts are labelled by {options.classifier}; the paper has a CNN. Its baseline is Chainer's SGNS.")


def speed(session: Session) -> None:
    """Print words/s of our SGNS beside those of the paper's GPUs."""
    table = session.table(
        SPEED, "words/s; here SGNS with the paper's d and window on all words of 5 or more", ("paper", "here"), ",.0f"
    )
    for name, value in SPEED.values.items():
        table.row(name, value, None)
    for n in session.options.threads:
        found = session.speeds(params_of("sgns", vector_size=500, window=2), n)["daskw2v"]
        table.row(f"SGNS, {n} thread(s)", None, found.scaled(1e6))


def vocabulary(session: Session) -> None:
    counts = session.text(session.options.parts).vocabulary.load().counts
    table = session.table(VOCABULARY, "words of 50 or more occurrences", ("paper", "here"))
    table.row("words", VOCABULARY["words"], int(np.sum(counts >= 50)))


OPEN = {
    "section 3: making the word-context matrix": (f"issue 6; {MATRIX['seconds']} s on one thread", "nothing"),
    "figure 8: words by size of the text": ("nobody yet", "words of 50 or more occurrences, above"),
    "figures 3, 4 and 13: speed, memory and quality by batch size": ("issue 6", "nothing: SGNS here has no batches"),
    "figure 14: quality by context size": ("issue 6", "nothing"),
    "figure 15: quality of W2V-CL": ("issue 6", "its baseline SGNS, above"),
    "figures 16, 17: loss of frequent and rare words": (
        f"issue 6; {TRAINING['W2V-Vanilla']:,} s its baseline, {TRAINING['W2V-CL']:,} s W2V-CL ({TRAINING.source})",
        "nothing",
    ),
    "figure 18: words/s by GPUs": (
        f"issues 6 and 7; 8 GPUs {SCALING['W2V-CL, 8 GPUs']}x, 16 GPUs {SCALING['W2V-CL, 16 GPUs']}x one (section 5.7)",
        "words/s of SGNS on this processor, above",
    ),
    "figures 20, 21: quality and speed with subwords": (
        f"issue 6; 16 GPUs {SUBWORDS['W2V-CL with subwords, 16 GPUs']}x one (section 5.8)",
        "nothing",
    ),
}


def run(session: Session) -> None:
    sizes(session)
    vocabulary(session)
    speed(session)
    quality(session)
    session.unmeasured(OPEN)
