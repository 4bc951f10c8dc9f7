"""001, BlazingText: replicas on several GPUs, merged once an epoch.

Some 20 minutes by default: 15 for trainings with 1, 2, 4 and 8 replicas by the rule `sequential`, 5 for times, most of
them fastText's. `--workers 1 2 3 4 5 6 7 8 --rules sequential mean` is the whole table: two hours a seed.
"""

from benchmarks.papers.figures import Figures, Paper
from benchmarks.papers.gpu import speed_on_gpu
from benchmarks.papers.session import Session, params_of
from benchmarks.tables import Cell, Spread
from daskw2v.errors import counted

OBJECTIVES = {"Skipgram": "sgns", "CBOW": "cbow_ns"}
CORPORA = {"text8": "text8", "1 billion words": "1bw"}
SCORES = {"WS-353": "ws353", "Google": "google_analogy"}
SYSTEMS = (*(counted(n, "GPU") for n in range(1, 9)), *(f"FastText, {n} CPUs" for n in (8, 16, 32)))

_ROWS = {
    ("text8", "WS-353", "Skipgram"): (0.716, 0.713, 0.710, 0.707, 0.703, 0.699, 0.695, 0.694, 0.707, 0.706, 0.7),
    ("text8", "WS-353", "CBOW"): (0.711, 0.708, 0.705, 0.689, 0.683, 0.681, 0.679, 0.675, 0.694, 0.689, 0.69),
    ("text8", "Google", "Skipgram"): (0.327, 0.324, 0.321, 0.311, 0.299, 0.297, 0.296, 0.295, 0.329, 0.330, 0.326),
    ("text8", "Google", "CBOW"): (0.321, 0.329, 0.32, 0.299, 0.295, 0.289, 0.285, 0.281, 0.323, 0.326, 0.325),
    ("1bw", "WS-353", "Skipgram"): (0.659, 0.658, 0.656, 0.653, 0.655, 0.659, 0.651, 0.650, 0.660, 0.659, 0.656),
    ("1bw", "WS-353", "CBOW"): (0.609, 0.607, 0.599, 0.598, 0.601, 0.604, 0.598, 0.597, 0.610, 0.607, 0.608),
    ("1bw", "Google", "Skipgram"): (0.301, 0.305, 0.299, 0.299, 0.298, 0.297, 0.295, 0.289, 0.300, 0.302, 0.301),
    ("1bw", "Google", "CBOW"): (0.299, 0.296, 0.295, 0.29, 0.289, 0.289, 0.287, 0.288, 0.311, 0.314, 0.312),
}
QUALITY = Figures(
    "table 1",
    {(*of, system): value for of, values in _ROWS.items() for system, value in zip(SYSTEMS, values, strict=True)},
)
SPEED = Figures("section 5.1, of figures 1 and 2", {"Skipgram": 13.2, "CBOW": 42.5})
RATIO = Figures("section 5.1, of figures 1 and 2", {"Skipgram": 3, "CBOW": 3})

PAPER = Paper(
    "Gupta and Khare (2017), BlazingText: Scaling and Accelerating Word2Vec using Multiple GPUs",
    "8 K80 GPUs, Xeon E5-2686 v4 of 32 threads; text8, 20 epochs, and One Billion Words, 10 epochs; d=100, window 5, "
    "sample 1e-4, alpha 0.05; means of 10 runs (section 5)",
    (QUALITY, SPEED, RATIO),
)

WORKERS, RULES = (1, 2, 4, 8), ("sequential",)


def quality(session: Session, objective: str) -> None:
    """Print a row for each number of replicas and rule, and one for each system that has no replicas."""
    options, seeds = session.options, session.seeds(1)
    table = session.beside(
        QUALITY,
        f"{objective}, by models side by side; they are merged once an epoch there, and here as often as by default",
        [f"{where}, {score}" for score in SCORES for where in (*(f"paper: {name}" for name in CORPORA), "here")],
    )

    def add(name: str, system: str, ours: dict[str, Spread]) -> None:
        cells = list[Cell]()
        for score, key in SCORES.items():
            cells += [QUALITY.get((corpus, score, objective, system)) for corpus in CORPORA.values()]
            cells.append(ours.get(key))
        table.row(name, *cells)

    plain = params_of(OBJECTIVES[objective], epochs=options.epochs)
    for n in options.workers:
        system = SYSTEMS[n - 1] if n <= 8 else ""
        for rule in options.rules if n > 1 else options.rules[:1]:  # one replica has nothing to merge
            params = plain.replace(n_replicas=n, merge=rule) if n > 1 else plain
            name = counted(n, "replica") + (f", {rule}" if n > 1 else "")
            add(f"{system}; {name}" if system else name, system, session.scores(params, seeds, session.place()))
    if objective == "Skipgram":
        turned = plain.replace(strategy="rotation", n_partitions=8)
        scores = session.scores(turned, seeds, session.place())
        add("rotation of 8 partitions: the same with any number of workers", "", scores)
    theirs = session.scores(plain, seeds, session.place(), "gensim")
    if theirs:
        add("gensim", "", theirs)
    for system in SYSTEMS[8:]:
        add(system, system, {})


def speed(session: Session) -> None:
    """Print million words/s; the paper's figures stand beside those of most threads."""
    table = session.beside(
        SPEED,
        "million words/s; the paper's on 8 GPUs, and over FastText on 32 threads, at least",
        ("paper", "paper: over FastText", "here", "here: over fastText"),
    )
    for objective, name in OBJECTIVES.items():
        for n in sorted(session.options.threads):
            most = n == max(session.options.threads)
            found = session.speeds(params_of(name), n, ["fasttext"])
            ours, theirs = found["daskw2v"], found.get("fasttext")
            cells = [figures[objective] if most else None for figures in (SPEED, RATIO)]
            ratio = ours.middle / theirs.middle if theirs else None
            table.row(f"{objective}, {counted(n, 'thread')}", *cells, ours, ratio)
            if theirs:
                table.row(f"{objective}, {counted(n, 'thread')}, fastText", None, None, theirs, None)
        kernel, task = speed_on_gpu(session, params_of(name))
        table.row(f"{objective}, one GPU, kernel alone", None, None, kernel, None)
        table.row(f"{objective}, one GPU, whole task", None, None, task, None)


def run(session: Session) -> None:
    speed(session)
    for objective in OBJECTIVES:
        quality(session, objective)
