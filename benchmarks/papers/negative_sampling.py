"""003, Distributed Negative Sampling: words in partitions, and where negatives are drawn.

Some 15 minutes by default: 8 for the trainings of table 2, 5 for the times of table 3, 2 for the constants of the
cost model. `--constants FILE` keeps those: made once, read later.
"""

import argparse
import sys

from benchmarks.calibration import read_constants
from benchmarks.common import cluster_of
from benchmarks.distributed_negative_sampling import ONE, judged_of, times_of, variants_of
from benchmarks.papers.figures import Figures, Paper
from benchmarks.papers.session import Session
from benchmarks.scale_model import DATA, calibrated, clusters, plans
from benchmarks.scale_model import PAPER as SETTING
from daskw2v.config.params import Params
from daskw2v.training.cost.constants import Constants
from daskw2v.training.cost.load import zipf

NAMES = {ONE: "SGNS (Reference)", "bns": "SG-BNS", "sns": "SG-SNS", "tns": "SG-TNS"}
KINDS = {"Semantic": "semantic", "Syntactic": "syntactic", "Total": "google_analogy"}

_ACCURACIES = {
    "SGNS (Reference)": (74.27, 69.35, 71.58),
    "SG-BNS": (73.10, 66.16, 69.31),
    "SG-SNS": (73.48, 68.08, 70.53),
    "SG-TNS": (74.72, 66.13, 70.03),
}
QUALITY = Figures(
    "table 2",
    {(name, kind): value for name, row in _ACCURACIES.items() for kind, value in zip(KINDS, row, strict=True)},
)
SECONDS = Figures("table 3", {"SGNS (Reference)": 11507, "SG-BNS": 4378, "SG-SNS": 1331, "SG-TNS": 570})
SPEEDUPS = Figures("table 3", {"SGNS (Reference)": 1, "SG-BNS": 2.6, "SG-SNS": 8.7, "SG-TNS": 20.2})
LARGE = {
    name: Figures(source, dict(zip(("words", "types", "partitions", "seconds"), DATA[name], strict=True)))
    for name, source in (("Query-Ads", "table 4"), ("Web", "table 5"))
}

PAPER = Paper(
    "Stergiou et al. (2017), Distributed Negative Sampling for Word Embeddings",
    "nodes of 64 GB and 10 Gbps, their number not given (table 1); news, One Billion Words, UMBC and Wikipedia, 1 "
    "epoch, d=300, window 5, negative 5, sample 1e-5, min_count 10, 20 threads, 350 partitions (table 2)",
    (QUALITY, SECONDS, SPEEDUPS, *LARGE.values()),
)


def chosen(session: Session, epochs: int) -> argparse.Namespace:
    """Return the options by which `benchmarks.distributed_negative_sampling` makes its variants."""
    return argparse.Namespace(epochs=epochs, partitions=session.options.partitions, rules=["bns", "sns", "tns"])


def theirs(variant: str, params: Params) -> str:
    return NAMES.get(params.negative_rule if params.strategy == "rotation" else variant, "")


def quality(session: Session) -> None:
    table = session.table(
        QUALITY,
        f"% of Google's analogies, {session.options.partitions} partitions here",
        [f"{who}: {kind.lower()}" for kind in KINDS for who in ("paper", "here")],
        ",.2f",
    )
    for name, params in judged_of(chosen(session, session.options.epochs)).items():
        scores, paper = session.scores(params, session.seeds(1), session.place()), theirs(name, params)
        pairs = [(QUALITY[paper, kind], scores[key].scaled(100)) for kind, key in KINDS.items()]
        table.row(f"{paper}; {name}", *(cell for pair in pairs for cell in pair))


def times(session: Session) -> None:
    variants = variants_of(chosen(session, epochs=1))
    several = {**variants, "2 replicas, averaging": variants[ONE].replace(n_replicas=2)}
    table = session.table(
        SECONDS,
        f"an epoch, {session.options.partitions} partitions here; speedup is over one worker's",
        (
            "paper: s", "paper: speedup", "here: s, spread", "here: speedup", "here: s of dealing", "here: MB sent",
            "here: MB by the paper's scheme",
        ),
        ",.2f",
    )  # fmt: skip
    text = session.timed.path
    with cluster_of(1) as one, cluster_of(2) as two:
        found = times_of(several, {1: one, 2: two}, text, session.folder, session.first.path, session.options.times)
    alone = next(time.seconds for time in found if time.variant == ONE)
    for time in found:
        paper = theirs(time.variant, several[time.variant])
        table.row(
            f"{paper or 'none there'}; {time.variant}, {time.workers} worker(s)",
            SECONDS.get(paper), SPEEDUPS.get(paper),
            f"{time.seconds:.2f} ({time.spread})", alone / time.seconds, time.deal_seconds, time.sent_mb, time.paper_mb,
        )  # fmt: skip


def constants_of(session: Session) -> Constants:
    """Return the constants of the file that the options name, or measured here."""
    file = session.options.constants
    if file and file.exists():
        return read_constants(file)
    folder = session.folder / "calibration"
    folder.mkdir()
    parts, rows = min(2, session.options.parts), session.options.table_rows
    return calibrated(folder, parts, rows, session.options.passes, file, sys.stderr).constants


def forecasts(session: Session) -> None:
    """Print what our cost model says of the paper's data, on nodes like its own and on modern ones."""
    constants = constants_of(session)
    for name, figures in LARGE.items():
        types, partitions = int(figures["types"]), int(figures["partitions"])
        table = session.table(
            figures,
            f"{name}, {figures['words'] / 1e9:,.0f} billion words, {types / 1e6:,.0f} million types: s of an epoch "
            "here by the cost model (benchmarks.scale_model), not by a training; ! does not fit into memory",
            ("paper: s", "here: s", "here: TB sent", "here: GB a node"),
            ",.1f",
        )
        table.row(f"{partitions} partitions", figures["seconds"], None, None, None)
        for hardware in clusters(partitions):
            for plan, seconds, sent, memory, *_ in plans(zipf(figures["words"], types, SETTING), hardware, constants):
                table.row(f"{plan}: {hardware.nodes} nodes of {hardware.name}", None, seconds, sent, memory)


def run(session: Session) -> None:
    quality(session)
    times(session)
    forecasts(session)
