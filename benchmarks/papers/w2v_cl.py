"""002, W2V-CL: batches of the whole vocabulary, for GPUs; here on a processor.

Figures 13 to 21 are those of `benchmarks.vanilla` and `benchmarks.context_matrix`, made small: an epoch of 30 MB with
100 dimensions, some 7 minutes by default. `benchmarks.context_matrix` makes them with the paper's settings.
`--classifier cnn` labels texts as the paper does: it takes minutes a set, and needs PyTorch, as do words made of their
characters.
"""

from dataclasses import replace

import numpy as np

from benchmarks.context_matrix.contexts import contexts
from benchmarks.context_matrix.heaps import LAW, heaps
from benchmarks.context_matrix.losses import TRAINING, losses
from benchmarks.context_matrix.quality import BETTER, FASTER, quality
from benchmarks.context_matrix.size import MATRIX_TIME, SETS, size
from benchmarks.context_matrix.speed import SCALING, SPEED, speed
from benchmarks.context_matrix.subwords import SCALING as SUBWORDS
from benchmarks.context_matrix.subwords import subwords
from benchmarks.context_matrix.training import Lab, Setting, lab_of
from benchmarks.judges import ANALOGIES, CATEGORIES, SIMILARITY, TEXTS, judge_of, tables_of
from benchmarks.papers.figures import Figures, Paper
from benchmarks.papers.session import Session, params_of
from benchmarks.vanilla import measure
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
    (SIZES, VOCABULARY, LAW, MATRIX_TIME, BETTER, FASTER, TRAINING, SPEED, SCALING, SUBWORDS),
)

PARTS = 3  # of the corpus, at most, for figures 13 to 21
BATCHES = (256, 1024, 4096, 16384)  # pairs


def sizes(session: Session) -> None:
    """Print how large the paper's sets are, and those here."""
    table = session.table("tables 5 and 6, section 5.2", "the sets", ("paper", "here", "here: classes"))
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
    """Print words/s of our SGNS beside those of the paper's GPUs."""
    table = session.table(
        SPEED, "words/s; here SGNS with the paper's d and window on all words of 5 or more", ("paper", "here"), ",.0f"
    )
    for n, value in SPEED.values.items():
        table.row(f"W2V-CL, {n} GPU(s)", value, None)
    for n in session.options.threads:
        found = session.speeds(params_of("sgns", vector_size=500, window=2), n)["daskw2v"]
        table.row(f"SGNS, {n} thread(s)", None, found.scaled(1e6))


def vocabulary(session: Session) -> None:
    counts = session.text(session.options.parts).vocabulary.load().counts
    table = session.table(VOCABULARY, "words of 50 or more occurrences", ("paper", "here"))
    table.row("words", VOCABULARY["words"], int(np.sum(counts >= 50)))


def setting_of(session: Session) -> Setting:
    """Return the paper's settings made small."""
    options, size = session.options, session.options.vector_size
    return Setting(
        parts=min(options.parts, PARTS), judge=judge_of(options.classifier, options.texts), vector_size=size,
        seeds=session.seeds(1), context_size=1024, context_sizes=(64, 256, 1024), samples=(0.0,), alphas=(0.005,),
        gathers=(16, 64), time_columns=256, subword_size=size, subword_columns=1024, subword_time_columns=256,
        subword_pairs=1_000_000,
    )  # fmt: skip


def batches(session: Session, setting: Setting, lab: Lab) -> None:
    """Print quality and speed of W2V-Vanilla by its batches, with lazy Adam, which is the faster one."""
    table = session.table(
        "figures 3 and 13",
        f"W2V-Vanilla by pairs of a batch, d={setting.vector_size}: Spearman, 3CosAdd, thousand words/s of one core",
        (*SETS, "words/s"),
    )
    for batch in BATCHES:
        found = measure(lab.text, replace(setting.vanilla(setting.alphas[0], lazy=True), batch=batch), setting.seeds)
        scores = (found.scores[name] for name in SETS.values())
        table.row(f"{batch:,}", *scores, found.words_per_second / 1e3)


OPEN = {
    "figures 3 and 4: speed and memory by batch size, on a GPU": ("issue 7", "speed of W2V-Vanilla on one core, above"),
    "figures 18 and 21: words/s by GPUs": ("issue 7", "workers of one core, above, and a model of more of them"),
}


def run(session: Session) -> None:
    sizes(session)
    vocabulary(session)
    baseline(session)
    setting = setting_of(session)
    with lab_of(session, setting.parts) as lab:
        for tables in (heaps, batches, size, contexts, quality, losses, speed, subwords):
            tables(session, setting, lab)
    session.unmeasured(OPEN)
