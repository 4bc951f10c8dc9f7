"""004, FULL-W2V: SGNS on a GPU that keeps rows in registers and shared memory.

Speed of reading text and of training, and quality, with 128 dimensions; on a GPU, where there is one. Some 5 minutes by
default; `--tools gensim` adds 7 minutes for each training whose score is not kept, and 3 for times.
"""

from benchmarks.epochs import segment_of
from benchmarks.papers.figures import Figures, Paper
from benchmarks.papers.gpu import speed_on_gpu
from benchmarks.papers.session import Session, params_of
from benchmarks.quality import judged
from benchmarks.tables import Spread
from benchmarks.texts import ANALOGY
from daskw2v.errors import counted
from daskw2v.evaluation import evaluate
from daskw2v.models.queries.vectors import Vectors

BATCHING = {
    "text8": Figures("table 1", {"FULL-W2V": 210.340633, "Wombat": 16.957496, "accSGNS": 16.527374}),
    "One Billion Words": Figures("table 1", {"FULL-W2V": 265.212834, "Wombat": 16.653851, "accSGNS": 15.263448}),
}
SCORES = {"WS-353": "ws353", "SimLex-999": "simlex999", "COS-ADD": "google_analogy", "COS-MUL": "3cosmul"}
_TRIALS = {
    "pWord2Vec": (0.6070, 0.3499, 29.895, 29.166),
    "Wombat": (0.5952, 0.3596, 29.661, 28.988),
    "FULL-W2V": (0.5923, 0.3582, 29.775, 29.386),
}
QUALITY = Figures(
    "table 7", {(name, of): value for name, row in _TRIALS.items() for of, value in zip(SCORES, row, strict=True)}
)
RATIOS = Figures(
    "section 5.2, of figures 6 and 7",
    {"accSGNS, V100": 5.724, "Wombat, V100": 8.647, "accSGNS, P100": 6.754, "Wombat, P100": 5.910},
)
GENERATIONS = Figures("section 1", {"V100 over P100": 2.966, "over multithreaded CPUs": 5.44})
DEMAND = Figures("table 4", {"L1": 94.760, "L2": 88.723, "DRAM": 41.851})  # GB an epoch of text8
PAPER = Paper(
    "Randall, Allen and Ge (2021), FULL-W2V: Fully Exploiting Data Reuse for W2V on GPU-Accelerated Systems",
    "V100, Titan XP and P100 GPUs with 40, 24 and 28 cores (table 2); text8, 20 epochs, and One Billion Words, 5 "
    "epochs; d=128, window 5, negative 5 (section 5.1)",
    (*BATCHING.values(), DEMAND, QUALITY, RATIOS, GENERATIONS),
)


def batching(session: Session) -> None:
    """Print how fast a worker reads and subsamples text; several share nothing in it."""
    params, text = params_of("sgns"), session.timed
    table = session.beside(
        BATCHING["text8"],
        "CPU batching, million words/s; here reading and subsampling for training",
        (*(f"paper: {corpus}" for corpus in BATCHING), "here"),
    )
    for name in BATCHING["text8"].values:
        table.row(name, *(figures[name] for figures in BATCHING.values()), None)
    speed = Spread.of(1e-6 / segment_of(text, params)[1] for _ in range(session.options.times))
    table.row("daskw2v, one worker of one thread", None, None, speed)


def by_both_offsets(vectors: Vectors) -> dict[str, float]:
    """Return the usual scores, and that of Google's analogies by 3CosMul."""
    (methods,) = evaluate(vectors, analogy=ANALOGY, analogy_methods=("3cosmul",)).analogy.values()
    score = methods["3cosmul"].accuracy
    return judged(vectors) if score is None else {**judged(vectors), "3cosmul": score}


def quality(session: Session) -> None:
    params, seeds = params_of("sgns", vector_size=128, epochs=session.options.epochs), session.seeds(3)
    table = session.beside(
        QUALITY,
        "means of five trials on One Billion Words there; Spearman, and % of Google's analogies",
        [f"{who}: {of}" for of in SCORES for who in ("paper", "here")],
        ".4f",
    )
    for name in _TRIALS:
        table.row(name, *(cell for of in SCORES for cell in (QUALITY[name, of], None)))

    def add(name: str, scores: dict[str, Spread]) -> None:
        percent = {of: 100 if of.startswith("COS") else 1 for of in SCORES}
        ours = {of: scores[key].scaled(percent[of]) for of, key in SCORES.items()}
        table.row(name, *(cell for of in SCORES for cell in (None, ours[of])))

    place = session.place(judge=by_both_offsets)
    add("daskw2v, sgns", session.scores(params, seeds, place))
    if theirs := session.scores(params, seeds, place, "gensim"):
        add("gensim", theirs)


def speed(session: Session) -> None:
    """Print million words/s on this processor; the paper's are in figures without numbers."""
    table = session.beside("figures 6 and 7", "million words/s, d=128, N=5, W=5", ("paper", "here"))
    for sample in (1e-4, 0):
        for n in session.options.threads:
            found = session.speeds(params_of("sgns", vector_size=128, sample=sample), n, ["gensim"])
            for tool, value in found.items():
                table.row(f"{tool}, sample {sample:g}, {counted(n, 'thread')}", "in a figure only", value)
        fixed = params_of("sgns", vector_size=128, sample=sample, window=3, shrink_windows=False)  # 5 on average
        kernel, task = speed_on_gpu(session, fixed)
        table.row(f"daskw2v, sample {sample:g}, GPU, kernel alone", "in a figure only", kernel)
        table.row(f"daskw2v, sample {sample:g}, GPU, whole task", "in a figure only", task)


def run(session: Session) -> None:
    batching(session)
    speed(session)
    quality(session)
    claims = ", ".join(f"{name} {value:g}" for said in (RATIOS, GENERATIONS) for name, value in said.values.items())
    session.note(f"The paper has FULL-W2V so many times as fast as others: {claims}.")
