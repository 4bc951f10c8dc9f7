"""Figures 14 and 15 of paper 002, and which change closes the gap to plain minibatches (section 5.5)."""

import statistics
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from benchmarks.context_matrix.lab import ADAM, AS_PAPER, MATRIX, TRAINING, Kind, Lab, Setting
from benchmarks.context_matrix.speed import GATHER
from benchmarks.judges import FEW, NAMES, by_few
from benchmarks.papers.figures import Figures
from benchmarks.papers.session import Session
from benchmarks.tables import Spread
from benchmarks.texts import name_of

MATRIX_TIME = Figures("section 3", {"seconds": 400})
BETTER = Figures("section 5.5", {"sets": 20, "W2V-CL is better in": 12})
FASTER = Figures("section 1", {"W2V-CL, 1 GPU": 2})
SAID = (MATRIX_TIME, BETTER, FASTER)
OURS, SGNS = "W2V-CL", "SGNS"
_PAPER = AS_PAPER["ns_exponent"]
# Without subsampling, most contexts are stop words. W2V-CL trains each table for its own sake, so that both have one
# optimum only where negatives are drawn as often as words are contexts (`objectives.context_matrix.prepare`).
CHANGES: dict[str, dict[str, Any]] = {
    "as the paper": AS_PAPER,
    "negatives by counts ** 0.75": {"ns_exponent": _PAPER},
    "negatives by counts": {"ns_exponent": 1.0},
    "contexts thinned": {"ns_exponent": _PAPER, "context_sample": 1e-3},
    "both": {"ns_exponent": 1.0, "context_sample": 1e-3},
    "text subsampled": {"ns_exponent": _PAPER, "sample": 1e-4},
    "text subsampled, negatives by counts of what is left": {"ns_exponent": 1.0, "sample": 1e-4},
}

# W2V-Vanilla with the freedom that ours has; its rates are those of --alphas
FREEDOM: dict[str, dict[str, Any]] = {
    "centered": {"centered": True},
    "negatives by counts": {"ns_exponent": 1.0},
    "negatives by counts, centered": {"ns_exponent": 1.0, "centered": True},
}


def size(session: Session, setting: Setting, lab: Lab) -> None:
    """Print quality by columns of the matrix, and what matrix and training cost."""
    sizes = {f"l={n:,}": setting.params(context_size=n) for n in setting.context_sizes}
    how = ", updates as the paper" if setting.as_paper else ""
    _few(session, setting, lab, "figure 14", f"quality by context size l{how}", sizes)
    session.note(
        "The paper's scores, in a figure only, stop growing at l=65,536. Its matrix takes "
        f"{MATRIX_TIME['seconds']} s on one thread ({MATRIX_TIME.source})."
    )


def contexts(session: Session, setting: Setting, lab: Lab) -> None:
    """Print a row for each change, and for the baseline."""
    changed = {f"W2V-CL, {name}": setting.params(**changes) for name, changes in CHANGES.items()}
    free = {
        f"{plain}, {name}": replace(vanilla, **changes)
        for plain, vanilla in setting.vanillas().items()
        for name, changes in FREEDOM.items()
    }
    title = f"the gap to plain minibatches, l={setting.context_size:,}"
    _few(session, setting, lab, "section 5.5", title, {**setting.vanillas(), **free, **changed})


def network(session: Session, setting: Setting, lab: Lab) -> None:
    """Print a row for each training of rows of words' own, and of a network of characters, for equal epochs."""
    if find_spec("torch") is None:
        session.note("Figure 20: words are made of their characters with PyTorch, which is not installed.")
        return
    small = replace(setting, vector_size=setting.subword_size, context_size=setting.subword_columns)
    kinds: dict[str, Kind] = {
        OURS: small.params(),
        f"{OURS}, of characters": small.params("subwords", gather_every=GATHER),
        ADAM: small.vanilla(),
        f"{ADAM}, of characters": small.vanilla(of_characters=True),
    }
    title = f"words by rows of their own and by a network of characters, {name_of(setting.network_parts)}"
    _few(session, small, Lab(lab.client, session, setting.network_parts, setting.min_count), "figure 20", title, kinds)


def _few(session: Session, setting: Setting, lab: Lab, source: str, title: str, kinds: Mapping[str, Kind]) -> None:
    about = f"{title}, d={setting.vector_size}, sample {setting.sample:g}: Spearman, 3CosAdd"
    table = session.beside(source, about, (*FEW, MATRIX, TRAINING))
    for name, kind in kinds.items():
        scores = lab.spreads(kind, by_few, setting.seeds)
        table.row(name, *(scores.get(key) for key in (*FEW.values(), MATRIX, TRAINING)))


def quality(session: Session, setting: Setting, lab: Lab) -> None:
    """Print W2V-CL, W2V-Vanilla and SGNS on all sets that the paper judges by, and what they cost; then sums."""
    kinds: dict[str, Kind] = {OURS: setting.params(), **setting.vanillas(), SGNS: setting.params("sgns")}
    found = {name: lab.spreads(kind, setting.judge, setting.seeds) for name, kind in kinds.items()}
    table = session.beside(
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
    table = session.beside(
        BETTER,
        "W2V-CL against the others",
        (
            "sets",
            "W2V-CL at least as good in",
            "mean of all, W2V-CL less theirs",
            "their core-s / W2V-CL's",
            "the same, with the matrix",
        ),
    )
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
