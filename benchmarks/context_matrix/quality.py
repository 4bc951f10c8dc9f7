"""Figure 15: W2V-CL, W2V-Vanilla and SGNS on all sets that the paper judges by, and what they cost."""

import statistics
from collections.abc import Mapping

from benchmarks.context_matrix.training import MATRIX, TRAINING, Kind, Lab, Setting
from benchmarks.judges import NAMES
from benchmarks.papers.figures import Figures
from benchmarks.papers.session import Session
from benchmarks.tables import Spread

BETTER = Figures("section 5.5", {"sets": 20, "W2V-CL is better in": 12})
FASTER = Figures("section 1", {"W2V-CL, 1 GPU": 2})
OURS, SGNS = "W2V-CL", "SGNS"


def quality(session: Session, setting: Setting, lab: Lab) -> None:
    """Print a column for each way to train, with Adam as Chainer has it and lazy; below, the sums of it."""
    sgns = setting.params("sgns")
    kinds: dict[str, Kind] = {OURS: setting.params(), **setting.vanillas(), SGNS: sgns}
    found = {name: lab.spreads(kind, setting.judge, setting.seeds) for name, kind in kinds.items()}
    table = session.table(
        "figure 15",
        f"d={setting.vector_size}, l={setting.context_size:,}, sample {setting.sample:g}, {setting.epochs} epoch(s): "
        "Spearman, LRCos, purity, accuracy",
        tuple(found),
    )
    for name in NAMES:
        table.row(name, *(scores.get(name, "not at hand") for scores in found.values()))
    table.row("mean of all", *(mean_of(scores) for scores in found.values()))
    for cost in (MATRIX, TRAINING):
        table.row(cost, *(scores[cost] for scores in found.values()))
    summary(session, found)


def mean_of(scores: Mapping[str, Spread]) -> float:
    return statistics.mean(scores[name].middle for name in NAMES if name in scores)


def summary(session: Session, found: Mapping[str, Mapping[str, Spread]]) -> None:
    """Print in how many sets ours is at least as good as each other, and how many times as much those cost."""
    table = session.table(
        BETTER,
        "W2V-CL against the others",
        (
            "sets", "W2V-CL at least as good in", "mean of all, W2V-CL less theirs", "their core-s / W2V-CL's",
            "the same, with the matrix",
        ),
    )  # fmt: skip
    table.row("paper: W2V-Vanilla", BETTER["sets"], BETTER["W2V-CL is better in"], None, FASTER["W2V-CL, 1 GPU"], None)
    ours = found[OURS]
    for name, scores in found.items():
        if name == OURS:
            continue
        sets = [key for key in NAMES if key in scores and key in ours]
        good = sum(ours[key].middle >= scores[key].middle for key in sets)
        theirs, training = scores[TRAINING].middle, ours[TRAINING].middle
        ratios = theirs / training, theirs / (training + ours[MATRIX].middle)
        table.row(name, len(sets), good, mean_of(ours) - mean_of(scores), *ratios)
