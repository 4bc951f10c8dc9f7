"""Which change closes the gap to plain minibatches: other negatives, or fewer of the most frequent contexts.

Without subsampling, most contexts are stop words. W2V-CL trains each table for its own sake, so that both have one
optimum only where negatives are drawn as often as words are contexts (`objectives.context_matrix.prepare`). The paper
draws them by counts ** 0.75.
"""

from typing import Any

from benchmarks.context_matrix.size import SETS
from benchmarks.context_matrix.training import AS_PAPER, MATRIX, TRAINING, Kind, Lab, Setting
from benchmarks.papers.session import Session
from benchmarks.vanilla import judged

PAPER = AS_PAPER["ns_exponent"]
CHANGES: dict[str, dict[str, Any]] = {
    "as the paper": AS_PAPER,
    "negatives by counts ** 0.75": {"ns_exponent": PAPER},
    "negatives by counts": {"ns_exponent": 1.0},
    "contexts thinned": {"ns_exponent": PAPER, "context_sample": 1e-3},
    "both": {"ns_exponent": 1.0, "context_sample": 1e-3},
    "text subsampled": {"ns_exponent": PAPER, "sample": 1e-4},
    "text subsampled, negatives by counts of what is left": {"ns_exponent": 1.0, "sample": 1e-4},
}


def contexts(session: Session, setting: Setting, lab: Lab) -> None:
    """Print a row for each change, and for the baseline."""
    kinds: dict[str, Kind] = {
        **setting.vanillas(),
        **{f"W2V-CL, {name}": setting.params(**changes) for name, changes in CHANGES.items()},
    }
    table = session.table(
        "section 5.5",
        f"the gap to plain minibatches, d={setting.vector_size}, l={setting.context_size:,}, "
        f"sample {setting.sample:g}: Spearman, 3CosAdd",
        (*SETS, MATRIX, TRAINING),
    )
    for name, kind in kinds.items():
        scores = lab.spreads(kind, judged, setting.seeds)
        table.row(name, *(scores[key] for key in (*SETS.values(), MATRIX, TRAINING)))
