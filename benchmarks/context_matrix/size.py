"""Figure 14: quality by context size, and what matrix and training cost."""

from benchmarks.context_matrix.training import MATRIX, TRAINING, Lab, Setting
from benchmarks.papers.figures import Figures
from benchmarks.papers.session import Session
from benchmarks.vanilla import judged

MATRIX_TIME = Figures("section 3", {"seconds": 400})
SETS = {"WordSim353": "ws353", "Sim 999": "simlex999", "Mech Turk": "mturk287", "Google": "google_analogy"}


def size(session: Session, setting: Setting, lab: Lab) -> None:
    """Print a row for each size; its cost is that of one core."""
    for sample in setting.samples:
        table = session.table(
            "figure 14",
            f"quality by context size l, d={setting.vector_size}, sample {sample:g}"
            f"{', updates as the paper' if setting.as_paper else ''}: Spearman, 3CosAdd",
            (*SETS, MATRIX, TRAINING, "M dot products"),
        )
        for columns in setting.context_sizes:
            params = setting.params(context_size=columns, sample=sample)
            scores = lab.spreads(params, judged, setting.seeds)
            work = lab.text.vocabulary.size * columns * setting.epochs / 1e6
            table.row(
                f"l={columns:,}",
                *(scores[name] for name in SETS.values()),
                scores[MATRIX],
                scores[TRAINING],
                work,
            )
    session.note(
        "The paper's scores, in a figure only, stop growing at l=65,536. Its matrix takes "
        f"{MATRIX_TIME['seconds']} s on one thread ({MATRIX_TIME.source})."
    )
