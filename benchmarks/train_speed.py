"""Training speed against gensim and fastText, in the same run on the same text, and against the processor.

Speed is in raw in-vocabulary corpus words per second, before subsampling. What is timed of ours is the whole task
that a worker runs (reading shards, subsampling, training, copying the model in and out); `benchmarks.peers` says what
is timed of others. GFLOP/s counts the multiplications and additions that the updates are made of (see
`count_operations`), and no others; the peak is measured in the same run (`benchmarks.fma_peak`). Where the peak of two
threads is not twice that of one, others use the machine: then what two threads gain says nothing.

All of it is 24 combinations, and the peers take nearly all of the time: some three hours. Choose with the options:

    python -m benchmarks.train_speed [--parts 3] [--times 5] [--objectives sgns cbow_ns] [--threads 1 2]
        [--settings "d=100 sample 1e-4"] [--tools daskw2v gensim fasttext] [--json]
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

import numpy as np

from benchmarks.common import alternate, finish, spread
from benchmarks.epochs import our_speed
from benchmarks.fma_peak import measure_peak
from benchmarks.options import Smoke, parsed
from benchmarks.peers import KINDS, SPEED
from benchmarks.texts import Text, encode
from benchmarks.windows import count_contexts
from daskw2v.objectives import settled
from daskw2v.params import Params
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.rng import Purpose, stream
from daskw2v.sampling.segments import cut, keep_thresholds
from daskw2v.vocabulary.huffman import huffman_tree

SETTINGS = {
    "d=100 sample 1e-4": Params(vector_size=100, sample=1e-4),
    "d=128 sample off": Params(vector_size=128, sample=0),
    "d=300 sample 1e-4": Params(vector_size=300, sample=1e-4),
}
TOOLS = ("daskw2v", *SPEED)


@dataclass(frozen=True)
class Row:
    """A median; `gflops` and `share_of_peak` are known of daskw2v only."""

    objective: str
    setting: str
    threads: int
    tool: str
    words_per_second: float
    spread: str
    gflops: float | None = None
    share_of_peak: float | None = None


def count_operations(text: Text, params: Params) -> float:
    """Return the floating-point operations that an epoch needs, counted over its own windows.

    A target (the word and its negatives, or the nodes on the way to it) takes 6 * vector_size: its dot product, its
    own move, and what it adds to the move of the other side. Skip-gram meets all targets once for each context;
    CBOW once a window, and takes 2 * vector_size for each context, to add it up and to move it.
    """
    kind, counts = KINDS[params.objective], text.vocabulary.load().counts
    n_targets = np.diff(huffman_tree(counts).starts) if kind.tree else np.full(len(counts), 1 + params.negative)
    reader = SegmentReader(text.work, text.corpus, text.vocabulary)
    keep, key = keep_thresholds(counts, params.sample), stream(params.seed, Purpose.SUBSAMPLE)
    operations = 0
    for start, stop in cut(0, text.corpus.n_tokens):
        segment, _ = reader.read(start, stop, params.window, keep, key)
        centers = slice(*segment.centers(start, stop))
        contexts = count_contexts(segment, params)[centers]
        targets = n_targets[segment.tokens[centers]]
        if kind.skip_gram:
            operations += 6 * int(contexts @ targets)
        else:
            operations += 6 * int(targets[contexts > 0].sum()) + 2 * int(contexts.sum())
    return float(operations * params.vector_size)


def compare(text: Text, objective: str, setting: str, threads: int, tools: Sequence[str], times: int) -> list[Row]:
    """Measure all tools in turn."""
    params = SETTINGS[setting].replace(objective=objective)
    params = settled(params)
    runs: dict[str, Callable[[], float]] = {"peak": partial(measure_peak, threads)}
    for tool in tools:
        ours = tool == "daskw2v"
        runs[tool] = (
            our_speed(text, params, threads) if ours else SPEED[tool](text.path, text.vocabulary, params, threads)
        )
    results = alternate(runs, times)
    peak, rows = max(results.pop("peak")), []
    for tool, speeds in results.items():
        speed, gflops, share = statistics.median(speeds), None, None
        if tool == "daskw2v":
            gflops = count_operations(text, params) / text.vocabulary.total * speed / 1e9
            share = gflops / peak
        rows.append(Row(objective, setting, threads, tool, speed, spread(speeds), gflops, share))
    return rows


def report(rows: Sequence[Row], out: TextIO) -> None:
    """Print a line: million words/s of each tool, and how many times its speed ours is."""
    ours = next((row for row in rows if row.gflops is not None), None)
    parts = []
    for row in rows:
        part = f"{row.tool} {row.words_per_second / 1e6:.3f} ({row.spread})"
        if row.gflops is not None and row.share_of_peak is not None:
            part += f" at {row.gflops:.1f} GFLOP/s, {row.share_of_peak:.0%} of {row.gflops / row.share_of_peak:.0f}"
        elif ours is not None:
            part += f" {ours.words_per_second / row.words_per_second:.1f}x"
        parts.append(part)
    first = rows[0]
    print(
        f"{first.objective}, {first.setting}, {first.threads} thread(s), million words/s: {'; '.join(parts)}",
        file=out, flush=True,
    )  # fmt: skip


def report_threads(rows: Sequence[Row], out: TextIO) -> None:
    """Print what more threads gain of ours, for each objective and setting."""
    speeds = {(r.objective, r.setting, r.threads): r.words_per_second for r in rows if r.tool == "daskw2v"}
    for (objective, setting, threads), speed in speeds.items():
        one = speeds.get((objective, setting, 1))
        if threads > 1 and one is not None:
            print(f"{objective}, {setting}: {threads} threads are {speed / one:.2f}x one", file=out)


SMOKE = Smoke(
    {"parts": 0.05, "times": 1, "settings": ["d=100 sample 1e-4"]},
    (*KINDS, *TOOLS),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=float, default=3, help="tenths of the 100 MB corpus")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--objectives", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    options = parsed(parser, SMOKE)
    out, rows = sys.stderr if options.json else sys.stdout, []
    with tempfile.TemporaryDirectory() as folder:
        text = encode(Path(folder), options.parts)
        for objective in options.objectives:
            for setting in options.settings:
                for threads in options.threads:
                    found = compare(text, objective, setting, threads, options.tools, options.times)
                    report(found, out)
                    rows += found
    report_threads(rows, out)
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
