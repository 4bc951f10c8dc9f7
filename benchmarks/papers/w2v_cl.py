"""002, W2V-CL: batches of the whole vocabulary, for GPUs; here on a processor.

Figures 14 to 21 are those of `benchmarks.context_matrix`, made small: an epoch of 30 MB with 100 dimensions, some 7
minutes by default. `benchmarks.context_matrix` makes them with the paper's settings. `--classifier cnn` labels texts as
the paper does: it takes minutes a set, and needs PyTorch, as do words made of their characters.
"""

from benchmarks.context_matrix.__main__ import FIGURES, TABLES
from benchmarks.context_matrix.lab import Setting, lab_of
from benchmarks.judges import judge_of
from benchmarks.papers.figures import Paper
from benchmarks.papers.session import Session

PAPER = Paper(
    "Li et al. (2019), Scaling Word2Vec on Big Corpus",
    "Tesla K80 GPUs, 8 a node; text8, 1 epoch, Adam; skip-gram, d=500, negative 5, window 2, min_count 50 "
    "(section 5.1)",
    FIGURES,
)

NETWORK_PARTS = 0.3  # of the corpus, at most, where W2V-Vanilla trains a network
PARTS = 3  # of the corpus, at most, for figures 14 to 21


def run(session: Session) -> None:
    options, d = session.options, session.options.vector_size
    setting = Setting(
        judge_of(options.classifier, options.texts),
        vector_size=d,
        seeds=session.seeds(1),
        context_size=1024,
        context_sizes=(64, 256, 1024),
        alphas=(0.005,),
        gathers=(16, 64),
        time_columns=256,
        subword_size=d,
        subword_columns=1024,
        network_parts=min(options.parts, NETWORK_PARTS),
    )
    with lab_of(session, min(options.parts, PARTS)) as lab:
        for table in TABLES.values():
            table(session, setting, lab)
