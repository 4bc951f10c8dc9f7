"""000, Cythnn: hierarchical softmax whose threads keep the top of the tree to themselves.

Some 2 minutes by default; `--tools gensim` adds 3. The paper's table of quality is missing in our copy; quality of
`sg_hs` is that of `benchmarks.quality`. The paper's gain is that of many cores; here are as many as --threads has.
"""

from benchmarks.epochs import our_epoch
from benchmarks.harness import alternate
from benchmarks.papers.figures import Figures, Paper
from benchmarks.papers.session import Session, params_of
from benchmarks.peers import gensim_epoch
from benchmarks.tables import Spread
from daskw2v.config.resources import Resources
from daskw2v.errors import counted
from daskw2v.training.devices import Threads

SECONDS = Figures(
    "section 4.2, of figure 1", {"31 cached rows": 157, "gensim": 385, "word2vec.c": 630}
)  # the fastest of each over the number of cores
TIMES = Figures("section 4.2, of figure 1", {"gensim": 2.5, "word2vec.c": 3.9})
SAVED = Figures("section 4.2, of figure 2", {"1 cached row": 0.4})

PAPER = Paper(
    "Vuurens, Eickhoff and de Vries (2016), Efficient Parallel Learning of Word2Vec",
    "two Xeon E5-2698 v3, 32 cores; text8, 10 epochs; skip-gram with hierarchical softmax, d=100, window 5, sample "
    "1e-3, min_count 5 (section 4.1)",
    (SECONDS, TIMES, SAVED),
)

ROWS = (0, 1, 15, 31, None)
NONE = "no cached rows"


def name_of(rows: int | None) -> str:
    if rows is None:
        return "cached rows by default"
    return counted(rows, "cached row") if rows else NONE


def times(session: Session) -> None:
    """Take the times of an epoch; the paper's figures, its best over cores, stand beside those of most threads."""
    params, text = params_of("sg_hs", sample=1e-3), session.timed
    table = session.beside(
        "figures 1 and 2, section 4.2",
        "time by cached rows; the paper's is of its whole run, with the best number of cores",
        (
            "paper: s",
            "paper: times as long as 31 rows",
            "paper: saved over no rows, at least",
            "here: s an epoch",
            "here: times as long as 31 rows",
            "here: saved over no rows",
        ),
    )
    for n in sorted(session.options.threads):
        most = n == max(session.options.threads)
        chosen = ROWS if n > 1 else ROWS[:1]  # a thread alone caches nothing
        runs = {name_of(rows): our_epoch(text, params, Threads(n, Resources(hot_rows=rows).device)) for rows in chosen}
        if "gensim" in session.options.tools:
            runs["gensim"] = gensim_epoch(text.path, text.vocabulary, params, n)
        results = alternate(runs, session.options.times)
        found = {name: Spread.of(epoch.seconds for epoch in epochs) for name, epochs in results.items()}
        cached = found.get(name_of(31), found[NONE]).middle
        for name, seconds in found.items():
            theirs = [figures.get(name) if most else None for figures in (SECONDS, TIMES, SAVED)]
            saved = None if name == "gensim" else 1 - seconds.middle / found[NONE].middle
            table.row(f"{name}, {counted(n, 'thread')}", *theirs, seconds, seconds.middle / cached, saved)
    for name in [name for name in SECONDS.values if name not in found]:
        table.row(f"{name}: not run here", SECONDS[name], TIMES.get(name), None, None, None, None)


def run(session: Session) -> None:
    times(session)
