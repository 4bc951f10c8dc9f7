"""The figures of README.md's first screen, and how they were measured, from the records that they are of."""

from benchmarks.records import Record, names
from daskw2v.errors import counted

_SGNS, _WHOLE = "sgns, d=100 sample 1e-4, {}, {}", "Whole runs on 2 threads, 5 epochs"
_STRATEGIES = ("averaging", "rotation")
_SETTINGS = {
    "averaging": "`averaging`, a replica a machine",
    "rotation": "`rotation`, a partition a thread, a group a worker, bfloat16",
    "rotation by auto": "`rotation` as `auto` sets it",
}
_THRICE = "the same 100 MB three times, five epochs, 133,000 words, d=100 (medians of three runs)"
_DRAWN = "50 million words, 1,000,000 distinct, d=300 (one run)"
_FORECAST = "100 GB, 1,000,000 words, d=300, machines of 16 threads at 10 Gbit/s"
_SETS = ("ws353", "simlex999", "google_analogy")


def _over(record: Record, tool: str, objective: str = "sgns") -> str:
    """Return how many times as fast as a tool daskw2v is on one thread."""
    ratio = record.number("Training speed", f"{objective}, d=100 sample 1e-4, 1 thread, {tool}", "ours / its")
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def _faults(*, last: bool) -> tuple[int, int]:
    """Return the faults of the last test, or of those before, whose rows begin with a day; how many left the same bits."""
    (table,) = Record.read("survival").tables
    rows = [cells for name, cells in table["rows"].items() if name[0].isdigit() != last]
    struck, same = (
        sum(cells[table["columns"].index(column)] for cells in rows) for column in ("struck", "the same bits")
    )
    return struck, same


def claims() -> str:
    """Return what README.md promises."""
    speed, speed_avx2 = Record.read("train_speed"), Record.read("train_speed_avx2")
    whole, whole_avx2 = Record.read("whole_runs"), Record.read("whole_runs_avx2")

    def seconds(tool: str) -> str:
        return f"{whole.number(_WHOLE, f'100 MB, {tool}', 's'):.0f}"

    def times(record: Record) -> str:
        return f"{record.number(_WHOLE, '100 MB, gensim', 'daskw2v, warm is so many times as fast'):.1f}"

    def scores(tool: str) -> list[str]:
        return [f"{whole.number(_WHOLE, f'100 MB, {tool}', name):.3f}".lstrip("0") for name in _SETS]

    replicas = [_kept("8 replicas, sequential", name) for name in _SETS]
    words = Record.read("unseen_words")
    ngrams = Record.read("train_speed_ngrams")
    struck, same = _faults(last=True)
    ws353, simlex, google = scores("daskw2v, warm")
    small = f"{words.number('Held-out words', 'the same, 100,000 n-grams, 2 dimensions a byte', 'file, MB'):.0f}"
    large = f"{words.number('Held-out words', 'fastText', 'file, MB'):.0f}"
    n_grams = f"{ngrams.number('Training speed', 'sgns, d=100 n-grams, 1 thread, fasttext', 'ours / its'):.0f}"
    return f"""
* **Fast.** Skip-gram, one thread: {_over(speed, "gensim")} times gensim and {_over(speed, "fasttext")} times fastText with AVX-512, \
{_over(speed_avx2, "gensim")} times gensim with AVX2 (1).
* **Short runs.** Text file to vectors on disk, two threads: {seconds("daskw2v, warm")} s; gensim takes \
{seconds("gensim")} s. {times(whole)} times as fast with AVX-512, {times(whole_avx2)} with AVX2 (2).
* **Same quality.** In these runs WordSim-353 {ws353}, SimLex-999 {simlex}, Google analogies {google}; gensim \
{", ".join(scores("gensim"))} (three seeds) (2).
* **Unseen words.** Character n-grams at {n_grams} times fastText's speed; better vectors from letters, in {small} MB instead \
of {large} (3).
* **Reproducible.** Files, blocks, workers, kills and restarts do not change a bit of the vectors (4).
* **Scalable.** 20 million words, 10 GB, on two workers of 1.5 GB; eight merged replicas keep \
{100 * min(replicas):.1f} % of each score or more (three seeds) (5).
* **Fault tolerant.** The same command resumes a run: in the last test {same} of {struck} runs with injected faults ended with the same bits (6).
"""


def _kept(variant: str, name: str) -> float:
    """Return the share of one replica's score that several keep on 100 MB."""
    record = Record.read("quality_replicas")
    several, one = (record.number("Replicas", f"sgns, 100 MB, 5 epochs, {of}", name) for of in (variant, "1 replica"))
    return several / one


def methods() -> str:
    """Return how these figures were measured."""
    speed, speed_avx2 = Record.read("train_speed"), Record.read("train_speed_avx2")
    whole = Record.read("whole_runs")
    shared = speed.number("Training speed", _SGNS.format("1 thread", "gensim"), "ours / its")
    pair = shared / speed.number("Training speed", _SGNS.format("1 thread", "daskw2v, pair"), "ours / its")
    fast, fast_avx2 = (
        record.number("Training speed", _SGNS.format("1 thread", "daskw2v"), "M words/s")
        for record in (speed, speed_avx2)
    )
    struck, same = _faults(last=False)
    ours, theirs = (whole.number(_WHOLE, f"100 MB, {tool}", "peak MB") for tool in ("daskw2v, warm", "gensim"))
    return f"""
1. 100 MB of Wikipedia, d=100, medians of three runs: {fast:.1f} million words/s with AVX-512, {fast_avx2:.1f} with AVX2 (one run). \
Here a window shares its negatives; with negatives drawn for each pair, as gensim draws them, daskw2v is \
{pair:.1f} times gensim. CBOW is \
{_over(speed, "gensim", "cbow_ns")} times gensim with AVX-512 and {_over(speed_avx2, "gensim", "cbow_ns")} with AVX2, \
skip-gram with hierarchical softmax {_over(speed, "gensim", "sg_hs")} and {_over(speed_avx2, "gensim", "sg_hs")}.
2. 100 MB of Wikipedia, five epochs, kernels compiled before, the same settings for both, a run a seed in turn; with AVX2 one run of each. \
A run takes {ours:.0f} MB of memory, gensim {theirs:.0f}. A machine's first run takes 5 to 12 s longer.
3. Speed on one thread, one run of each in turn. Held-out words, three seeds; the small file is of n-grams that were fitted to finished vectors.
4. Processors of one kind, one thread in each training task. With more threads in a task (Hogwild) `averaging` varies from run to run; on CPUs \
`rotation` and `columns` do not.
5. The large vocabulary is drawn by Zipf's law: `rotation`, one run. Replicas: 100 MB of Wikipedia.
6. Small models on drawn text. In earlier tests {struck - same} of {struck} did not end with the same bits; the causes were mended.

"""


def measured_scaling() -> str:
    """Return how many times as fast two workers train as one replica on one."""
    record, texts = (
        Record.read("scaling"),
        {"three times 100 MB, 5 epochs, d=100": _THRICE, "drawn, 1 epoch, d=300": _DRAWN},
    )
    lines = [
        "",
        "| training, two workers of one thread over one replica on one | `averaging` | `rotation` |",
        "|---|---|---|",
    ]
    for row, text in texts.items():
        times = (
            record.number("Workers of one thread", f"{row}, {strategy}, 2 workers", "speed-up of training")
            for strategy in _STRATEGIES
        )
        lines.append(f"| {text} | {' | '.join(f'{one:.2f} times as fast' for one in times)} |")
    threads = Record.read("scaling_threads")
    plain, turned = (
        threads.number("One worker", f"three times 100 MB, {how}, 2 threads", "speed-up of training")
        for how in ("one replica", "rotation")
    )
    return "\n".join(
        [
            *lines,
            "",
            *record.notes,
            "",
            f"Two threads of one worker, the same 100 MB three times: one replica {plain:.2f} times as fast as on one thread, since",
            f"threads write the same rows; `rotation` {turned:.2f} times, with the same bits on any number of threads.",
            "So `auto` takes it on one worker of several threads.",
            "",
            "",
        ]
    )


def forecast_scaling() -> str:
    """Return what machines are forecast to do, as shares of what so many could."""
    record = Record.read("forecast")
    _, shares = record.tables
    lines = [f"| forecast: {_FORECAST}; share of what so many could do | {' | '.join(shares['columns'])} |"]
    lines.append("|---" * (1 + len(shares["columns"])) + "|")
    for name in shares["rows"]:
        one, eight = (record.number("Hours", name, n) for n in ("1", "8"))
        cells = (f"{cell:.0f} %" for cell in shares["rows"][name])
        lines.append(
            f"| {_SETTINGS[name]}, an epoch takes {one:.2g} hours on 1, {eight:.2g} on 8 | {' | '.join(cells)} |"
        )
    return "\n".join(["", *lines, "", *record.notes, "", ""])


def replica_quality() -> str:
    """Return the scores of one replica, and those of rotation and of several replicas as percentages of them."""
    columns = ("rotation", *(f"{n} replicas" for n in (2, 4, 8, 16, 64, 256)))
    lines = [
        "| WordSim-353, SimLex-999, Google analogies | one replica | " + ", % | ".join(columns) + ", % |",
        "|---" * (2 + len(columns)) + "|",
    ]
    rows = dict[str, dict[str, str]]()
    for record in (Record.read(name) for name in names() if name.startswith("quality_replicas")):
        (table,) = record.tables
        for row in table["rows"]:
            *text, variant = row.removesuffix(", sequential").rsplit(", ", 1)
            if variant not in ("1 replica", *columns):
                continue  # with other numbers of merges
            cells = rows.setdefault(f"{text[0]} ({counted(len(record.seeds), 'seed')})", {})
            one = [record.number("Replicas", f"{text[0]}, 1 replica", name) for name in _SETS]
            these = [record.number("Replicas", row, name) for name in _SETS]
            shares = (f"{100 * score / of:.1f}" for score, of in zip(these, one, strict=True))
            scores = (f"{score:.3f}".lstrip("0") for score in one)
            cells[variant] = ", ".join(scores if variant == "1 replica" else shares)
    for text, found in rows.items():
        lines.append(f"| {text} | " + " | ".join(found.get(name, "") for name in ("1 replica", *columns)) + " |")
    return "\n".join(["", *lines, "", ""])
