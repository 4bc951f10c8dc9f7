"""003, Distributed Negative Sampling: words in partitions, and where negatives are drawn.

Some 13 minutes by default: 8 for the trainings of table 2, 5 for the times of table 3, with what workers sent.
`--partitions 8 64 --seeds 1 2 3` takes some 80 minutes. There are n² buckets a pass of n partitions: with the paper's
350 a training of `tns` takes four minutes. Those of `sns` and `bns` take more: their groups are small, as `sns`
diverges where 175 partitions stay together.
"""

from collections.abc import Sequence
from functools import partial

from benchmarks.epochs import training_of
from benchmarks.harness import alternate
from benchmarks.papers.figures import Figures, Paper
from benchmarks.papers.session import Session, params_of
from benchmarks.processes import cluster_of
from benchmarks.tables import Spread
from benchmarks.texts import MB
from daskw2v.config.params import Params
from daskw2v.errors import counted

ONE, RULES = "SGNS (Reference)", {"SG-BNS": "bns", "SG-SNS": "sns", "SG-TNS": "tns"}
KINDS = {"Semantic": "semantic", "Syntactic": "syntactic", "Total": "google_analogy"}
AVERAGING = "none there; 2 replicas, averaging"

_ACCURACIES = {
    ONE: (74.27, 69.35, 71.58),
    "SG-BNS": (73.10, 66.16, 69.31),
    "SG-SNS": (73.48, 68.08, 70.53),
    "SG-TNS": (74.72, 66.13, 70.03),
}
QUALITY = Figures(
    "table 2",
    {(name, kind): value for name, row in _ACCURACIES.items() for kind, value in zip(KINDS, row, strict=True)},
)
SECONDS = Figures("table 3", {ONE: 11507, "SG-BNS": 4378, "SG-SNS": 1331, "SG-TNS": 570})
SPEEDUPS = Figures("table 3", {ONE: 1, "SG-BNS": 2.6, "SG-SNS": 8.7, "SG-TNS": 20.2})
PAPER = Paper(
    "Stergiou et al. (2017), Distributed Negative Sampling for Word Embeddings",
    "nodes of 64 GB and 10 Gbps, their number not given (table 1); news, One Billion Words, UMBC and Wikipedia, 1 "
    "epoch, d=300, window 5, negative 5, sample 1e-5, min_count 10, 20 threads, 350 partitions (table 2)",
    (QUALITY, SECONDS, SPEEDUPS),
)
_WORKERS = 2  # where time is taken
_MAX_GROUP = 8  # partitions of a group, of rules with noise
_OFTEN = 16  # passes an epoch with bns: its negatives wait in other buckets than their pairs, longer with fewer passes


def groups_of(n_partitions: int, rule: str) -> int | None:
    """Return the number of groups of many partitions: one for each worker, or more where there is noise."""
    if n_partitions <= _MAX_GROUP:
        return None
    least = _WORKERS if rule == "tns" else -(-n_partitions // _MAX_GROUP)
    return next(n for n in range(least, n_partitions + 1) if n_partitions % n == 0)


def variants_of(epochs: int, partitions: Sequence[int]) -> dict[tuple[str, int], Params]:
    """Return the trainings by the paper's names and numbers of partitions: windows, and rotation with each rule."""
    plain = params_of("sgns", epochs=epochs)
    return {
        (ONE, 1): plain,
        **{
            (name, n): plain.replace(
                strategy="rotation", n_partitions=n, n_groups=groups_of(n, rule), negative_rule=rule
            )
            for n in partitions
            for name, rule in RULES.items()
        },
    }


def row_name(name: str, n_partitions: int) -> str:
    return name if n_partitions == 1 else f"{name}, {n_partitions} partitions"


def quality(session: Session) -> None:
    table = session.beside(
        QUALITY,
        "% of Google's analogies, 350 partitions there",
        [f"{who}: {kind.lower()}" for kind in KINDS for who in ("paper", "here")],
        ",.2f",
    )
    for (name, n), params in variants_of(session.options.epochs, session.options.partitions).items():
        often = params.replace(passes_per_epoch=_OFTEN) if params.flat().get("negative_rule") == "bns" else params
        scores = session.scores(often, session.seeds(1), session.place())
        pairs = [(QUALITY[name, kind], scores[key].scaled(100)) for kind, key in KINDS.items()]
        table.row(row_name(name, n), *(cell for pair in pairs for cell in pair))


def times(session: Session) -> None:
    """Train all variants on one worker and on two, in turn."""
    variants = variants_of(1, session.options.partitions)
    variants[AVERAGING, 1] = variants[ONE, 1].replace(n_replicas=2)
    table = session.beside(
        SECONDS,
        "an epoch; speedup is over one worker's",
        ("paper: s", "paper: speedup", "here: s", "here: speedup", "here: s of dealing", "here: MB sent"),
        ",.2f",
    )
    with cluster_of(1) as one, cluster_of(_WORKERS) as several_workers:
        clusters = {1: one, _WORKERS: several_workers}
        for params in variants.values():
            for client in clusters.values():
                training_of(client, session.small, params)  # compiles
        runs = {
            f"{row_name(name, parts)}, {counted(n, 'worker')}": partial(training_of, client, session.timed, params)
            for (name, parts), params in variants.items()
            for n, client in clusters.items()
            if name != ONE or n == 1
        }
        found = alternate(runs, session.options.times)
    seconds = {run: Spread.of(one.seconds for one in several) for run, several in found.items()}
    alone = next(iter(seconds.values())).middle
    for run, several in found.items():
        name, *_ = run.split(", ")
        table.row(
            run,
            SECONDS.get(name),
            SPEEDUPS.get(name),
            seconds[run],
            alone / seconds[run].middle,
            Spread.of(one.dealing for one in several),
            Spread.of(one.sent / MB for one in several),
        )


def run(session: Session) -> None:
    quality(session)
    times(session)
