"""002, W2V-CL: batches of the whole vocabulary, for GPUs; here on a processor.

Figures 8 to 21 are those of `benchmarks.context_matrix`, made small: an epoch of 30 MB with 100 dimensions, some 7
minutes by default. `benchmarks.context_matrix` makes them with the paper's settings. `--classifier cnn` labels texts as
the paper does: it takes minutes a set, and needs PyTorch, as do words made of their characters.
"""

from benchmarks.context_matrix.__main__ import FIGURES, TABLES
from benchmarks.context_matrix.lab import MIN_COUNT, Setting, lab_of
from benchmarks.context_matrix.speed import SPEED
from benchmarks.judges import ANALOGIES, CATEGORIES, SIMILARITY, TEXTS, judge_of, tables_of
from benchmarks.papers.figures import Figures, Paper
from benchmarks.papers.session import Session, params_of
from daskw2v.errors import counted
from daskw2v.evaluation.pairs import read_pairs
from daskw2v.evaluation.reading import read_lines
from daskw2v.evaluation.relations import read_relations
from daskw2v.evaluation.texts import read_texts

SIZES = Figures(
    "sections 5.2.1 and 5.2.2",
    {"WordSim353": 353, "MEN": 3000, "Mech Turk": 287, "Rare Words": 2034, "Google": 8869 + 10675, "BATS": 99_200},
)
VOCABULARY = Figures("section 5.1", {"words": 18_498})

PAPER = Paper(
    "Li et al. (2019), Scaling Word2Vec on Big Corpus",
    "Tesla K80 GPUs, 8 a node; text8, 1 epoch, Adam; skip-gram, d=500, negative 5, window 2, min_count 50 "
    "(section 5.1)",
    (SIZES, VOCABULARY, *FIGURES),
)

PARTS = 3  # of the corpus, at most, for figures 8 to 21


def sizes(session: Session) -> None:
    """Print how large the paper's sets are, and those here."""
    table = session.beside("tables 5 and 6, section 5.2", "the sets", ("paper", "here", "here: classes"))
    similarity = tables_of(SIMILARITY)
    for name in SIMILARITY:
        here = len(read_pairs(similarity[name])) if name in similarity else "not at hand"
        table.row(f"{name}, pairs", SIZES.get(name), here, None)
    for name, path in ANALOGIES.items():
        asked = sum(len(relation.questions) for relation in read_relations(path))
        table.row(f"{name}, questions", SIZES[name], asked, None)
    for name, path in tables_of(CATEGORIES).items():
        classes = [line.split("\t")[1] for _, line in read_lines(path)]
        table.row(f"{name}, words", "missing", len(classes), len(set(classes)))
    for name, files in TEXTS.items():
        labels = [label for path in files for label, _ in read_texts(path)]
        table.row(f"{name}, texts", "missing", len(labels), len(set(labels)))
    session.note("The rows of tables 5 and 6 are missing in our copy of the paper; its texts give the other sizes.")


def baseline(session: Session) -> None:
    """Print words/s of our SGNS beside those of the paper's GPUs, and how many words there are."""
    table = session.beside(
        SPEED, "words/s; here SGNS with the paper's d and window on all words of 5 or more", ("paper", "here"), ",.0f"
    )
    for n, value in SPEED.values.items():
        table.row(f"W2V-CL, {counted(n, 'GPU')}", value, None)
    for n in session.options.threads:
        found = session.speeds(params_of("sgns", vector_size=500, window=2), n)["daskw2v"]
        table.row(f"SGNS, {counted(n, 'thread')}", None, found.scaled(1e6))
    counts = session.encoded(session.options.parts).vocabulary.load().counts
    table = session.beside(VOCABULARY, f"words of {MIN_COUNT} or more occurrences", ("paper", "here"))
    table.row("words", VOCABULARY["words"], int((counts >= MIN_COUNT).sum()))


OPEN = {
    "figures 3 and 4: speed and memory by batch size, on a GPU": ("a GPU", "speed of W2V-Vanilla on one core, above"),
    "figures 18 and 21: words/s by GPUs": ("GPUs", "workers of one core, above"),
}


def run(session: Session) -> None:
    sizes(session)
    baseline(session)
    options, d = session.options, session.options.vector_size
    setting = Setting(
        judge_of(options.classifier, options.texts), vector_size=d, seeds=session.seeds(1), context_size=1024,
        context_sizes=(64, 256, 1024), alphas=(0.005,), gathers=(16, 64), time_columns=256, subword_size=d,
        subword_columns=1024,
    )  # fmt: skip
    with lab_of(session, min(options.parts, PARTS)) as lab:
        for table in TABLES.values():
            table(session, setting, lab)
    session.unmeasured(OPEN)
